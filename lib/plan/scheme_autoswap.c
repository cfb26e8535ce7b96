/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_autoswap.c - evicts tensors in gaps around the peak of the load, ranked by scores
 *
 * AutoSwap (Zhang, Yeung, Shu, He, Wang: Efficient Memory Management for GPU-based Deep Learning Systems, 2019): gaps
 * that straddle the peak of the load, by one of four scores (scores.h) or by a sum of the four, standardised, whose
 * weights Bayesian optimisation finds (bayes.h) to minimise the time of the iteration. Copies out begin right after the
 * use; copies back are one after the other in the order of need, as late as is early enough.
 *
 * Two modes. Stick to limit: swaps are taken until the peak is below the limit; delays are accepted. No overhead: only
 * swaps that delay no op (link_booking.h), which lower the peak as far as they can.
 *
 * Points that the paper leaves open: once a peak is below another one, gaps are chosen at the other one. The threshold
 * of 1 MB is always met, since the unit is a block of 2 MiB. The optimisation starts with the four single scores, each
 * carried through to a proved plan, so that the sum is never worse than the best of them. Without overhead, the paper's
 * limit is the lowest reachable one; it is found by bisection.
 */
#include "plan/link_booking.h"
#include "plan/scores.h"

#include <stdio.h>

#define HALVINGS 12

struct auto_swap {
	struct um_scheme_input *s;
	struct um_scheme_result *a;
	struct um_swaps swaps;
	struct um_scores scores;
	double *sum; /* by swap */
	int no_overhead;
	int32_t limit, reached; /* blocks; without overhead */
	int32_t stuck;
};

static uint32_t *rank(struct auto_swap *x, const double *weight)
{
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		x->sum[i] = 0;
		for (int k = 0; k < UM_SCORES; k++)
			x->sum[i] += weight[k] * x->scores.of[k][i];
	}
	return um_swaps_rank(&x->swaps, x->sum);
}

/* Without overhead, for one limit. */
static int book(struct auto_swap *x, const uint32_t *order, int32_t limit, struct um_scheme_result *a)
{
	int err = um_scheme_result_init(a, x->s->b, x->a->choice.keep_resident);

	return err ? err : um_link_booking_choose(&x->swaps, x->s, order, limit, a, &x->reached);
}

/* Finds the lowest load that can be reached, down to the limit; `a` is the result for it. */
static int find_lowest(struct auto_swap *x, const uint32_t *order, struct um_scheme_result *a)
{
	int32_t lo = x->limit, hi = um_load_max(&x->a->choice.load, 0, x->s->b->n_ops), best = hi, limit = lo, at = hi;
	int err = 0;

	for (int i = 0; !err && i < HALVINGS && lo <= hi; i++) {
		err = book(x, order, limit, a);
		if (!err && x->reached < best) {
			best = x->reached;
			at = limit;
		}
		if (x->reached <= limit)
			hi = limit - 1;
		else
			lo = limit + 1;
		limit = lo + (hi - lo) / 2;
		um_scheme_result_fini(a);
	}
	return err ? err : book(x, order, at, a);
}

/* Replaces the result by the one for these weights. */
static int decide(struct auto_swap *x, const double *weight)
{
	uint32_t *order = rank(x, weight);
	struct um_scheme_result a;
	int err = order ? 0 : -ENOMEM;

	if (!err && x->no_overhead) {
		err = find_lowest(x, order, &a);
		if (!err) {
			um_scheme_result_fini(x->a);
			*x->a = a;
		}
	} else if (!err) {
		err = um_swaps_choose(&x->swaps, order, x->swaps.n, x->limit, x->a, &x->stuck);
		if (!err)
			err = um_swaps_chain(&x->swaps, x->s, x->a);
	}
	free(order);
	return err;
}

/* Writes the reason. */
static int refuse(const struct auto_swap *x)
{
	unsigned budget = 2 * (unsigned)x->s->carry.capacity;

	if (x->no_overhead)
		snprintf(x->s->why, x->s->why_size,
			 "autoswap without overhead: the lowest load is %u MiB, above the budget of %u MiB",
			 2 * (unsigned)x->reached, budget);
	else
		snprintf(x->s->why, x->s->why_size, "autoswap: no further gap around op %d '%s' for a budget of %u MiB",
			 x->stuck, x->s->sched->ops.at[x->stuck].name, budget);
	return -E2BIG;
}

int um_scheme_autoswap(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct auto_swap x = {.s = s, .a = a, .no_overhead = mode == UM_AUTOSWAP_NO_OVERHEAD};
	double single[UM_SCORES] = {0};
	const double *weight = mode < UM_SCORES ? single : s->weight;
	unsigned wanted = 0;
	int err;

	if (um_load_max(&a->choice.load, 0, s->b->n_ops) <= s->carry.capacity)
		return 0;
	x.limit = s->carry.capacity;
	if (mode < UM_SCORES)
		single[mode] = 1;
	for (int k = 0; k < UM_SCORES; k++)
		wanted |= (unsigned)(weight[k] != 0) << k;
	err = um_swaps_build(&x.swaps, s, a->choice.keep_resident);
	x.sum = malloc((x.swaps.n + 1ull) * sizeof *x.sum);
	if (!x.sum)
		err = -ENOMEM;
	if (!err)
		err = um_scores_build(&x.scores, wanted, &x.swaps, s, &a->choice.load);
	if (!err)
		um_scores_standardise(&x.scores, x.swaps.n);
	if (!err)
		err = decide(&x, weight);
	if (!err && x.no_overhead)
		s->value = x.reached;
	if (err == -E2BIG || (!err && x.no_overhead && x.reached > x.limit))
		err = refuse(&x);
	um_scores_fini(&x.scores);
	um_swaps_fini(&x.swaps);
	free(x.sum);
	return err;
}
