/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_appobmem.c - evicts the largest tensors, each in its longest gap
 *
 * AppObMem (Application-oblivious memory scheduling for DNNs below the framework, ACM TACO 2022, doi 10.1145/3535355).
 *
 * From the abstract: it uses the device runtime's trace of blocks only, without layers or graph; accesses of blocks are
 * iterative, regular and extremal; the cost of a swap between host and device is easy to model. More was not available.
 *
 * Our interpretation: extremal means that the accesses of a block are at the two ends of its life, with one long gap in
 * between. So each tensor has one candidate, its longest gap, and by the linear model (fixed + bytes / rate, both ways)
 * that gap is useful if it is longer than its copies take. Of the candidates around the peak of the load, the one with
 * the most bytes is evicted first, and of equal ones the one with the longest gap; gaps that are too short come last.
 * Copies back follow each other, as late as the needs allow.
 */
#include "plan/swaps.h"

#include <stdio.h>

/* By slot: the longest absence and the swap that it is, UINT32_MAX for none. */
static uint32_t *find_extremal(const struct um_swaps *w, const struct um_scheme_input *s)
{
	uint32_t *best = malloc((s->sched->slots.n + 1) * sizeof *best);

	if (!best)
		return NULL;
	memset(best, 0xff, (s->sched->slots.n + 1) * sizeof *best);
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t *x = &best[w->at[i].slot];

		if (*x == UINT32_MAX || um_swap_absence(s, &w->at[i]) > um_swap_absence(s, &w->at[*x]))
			*x = i;
	}
	return best;
}

/* Swaps in that order; `*n`: the number of candidates. */
static uint32_t *rank(const struct um_swaps *w, const struct um_scheme_input *s, uint32_t *n)
{
	uint32_t *extremal = find_extremal(w, s), *order = NULL;
	double *score = malloc((w->n + 1ull) * sizeof *score);
	double iteration_ns = (double)s->clock[s->b->n_ops] + 1;

	*n = 0;
	if (extremal && score) {
		for (uint32_t i = 0; i < w->n; i++) {
			const struct um_swap *x = &w->at[i];
			double absence = (double)um_swap_absence(s, x);
			int is_short = absence < (double)x->out_ns + (double)x->in_ns;

			/* the absence adds less than a block: it decides between equal sizes only */
			score[i] = (double)x->n + absence / (8 * iteration_ns) - (is_short ? 1e10 : 0);
			if (extremal[x->slot] != i)
				score[i] -= 1e12;
			else
				++*n;
		}
		order = um_swaps_rank(w, score);
	}
	free(extremal);
	free(score);
	return order;
}

int um_scheme_appobmem(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct um_swaps swaps;
	uint32_t *order = NULL, n;
	int32_t stuck = 0;
	int err = um_swaps_build(&swaps, s, a->choice.keep_resident);

	(void)mode;
	if (!err) {
		order = rank(&swaps, s, &n);
		err = order ? um_swaps_choose(&swaps, order, n, s->carry.capacity, a, &stuck) : -ENOMEM;
	}
	if (!err)
		err = um_swaps_chain(&swaps, s, a);
	if (err == -E2BIG)
		snprintf(s->why, s->why_size,
			 "appobmem: one gap of each tensor does not suffice at op %d '%s' for a budget of %d MiB",
			 stuck, s->sched->ops.at[stuck].name, 2 * s->carry.capacity);
	free(order);
	um_swaps_fini(&swaps);
	return err;
}
