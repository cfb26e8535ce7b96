/* SPDX-License-Identifier: Apache-2.0
 *
 * scores.c - computes the scores of swaps
 *
 * The area under the load is kept in two trees of partial sums: the amounts added from an op on, and these times the
 * op's start. SWDOA takes the best swap repeatedly: since a score only falls as the load does, a heap needs to
 * recompute only the top.
 */
#include "plan/scores.h"

#include "base/pqueue.h"

#include <math.h>

struct area {
	const struct um_scheme_input *s;
	int32_t n;
	double *rate, *moment; /* partial sums, n + 2 */
};

static void add_from(struct area *a, int32_t op, double blocks)
{
	double time = (double)a->s->clock[op];

	for (int32_t x = op + 1; x <= a->n + 1; x += x & -x) {
		a->rate[x] += blocks;
		a->moment[x] += blocks * time;
	}
}

/* From the begin of the iteration to that of an op. */
static double area_to(const struct area *a, int32_t op)
{
	double rate = 0, moment = 0;

	for (int32_t x = op + 1; x > 0; x -= x & -x) {
		rate += a->rate[x];
		moment += a->moment[x];
	}
	return rate * (double)a->s->clock[op] - moment;
}

static double area_of(const struct area *a, const struct um_swap *w)
{
	int32_t from = w->from % a->n, length = w->to - w->from;
	double iteration_area = area_to(a, a->n), sum = length / a->n * iteration_area;

	length %= a->n;
	if (from + length <= a->n)
		return sum + area_to(a, from + length) - area_to(a, from);
	return sum + iteration_area - area_to(a, from) + area_to(a, from + length - a->n);
}

static void take_off(struct area *a, const struct um_swap *w)
{
	int32_t from = w->from % a->n, length = w->to - w->from;
	double blocks = (double)w->n;

	for (; length >= a->n; length -= a->n) {
		add_from(a, 0, -blocks);
		add_from(a, a->n, blocks);
	}
	add_from(a, from, -blocks);
	add_from(a, from + length <= a->n ? from + length : a->n, blocks);
	if (from + length > a->n) {
		add_from(a, 0, -blocks);
		add_from(a, from + length - a->n, blocks);
	}
}

struct top {
	double score;
	uint32_t swap;
};

static int before(const struct top *a, const struct top *b)
{
	return a->score != b->score ? a->score > b->score : a->swap < b->swap;
}

UM_PQUEUE(top, struct top, before)

static int submodular(struct um_scores *c, const struct um_swaps *w, struct area *a)
{
	struct top *heap = malloc((w->n + 1ull) * sizeof *heap);
	size_t n = w->n;

	if (!heap)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++)
		heap[i] = (struct top){c->of[UM_SCORE_WDOA][i], i};
	for (size_t i = n / 2; i-- > 0;)
		top_sink(heap, n, i);
	while (n) {
		uint32_t i = heap[0].swap;
		double now = area_of(a, &w->at[i]);

		/* partial sums differ in the last digits */
		if (now < heap[0].score * (1 - 1e-9)) {
			heap[0].score = now;
		} else {
			c->of[UM_SCORE_SWDOA][i] = heap[0].score;
			take_off(a, &w->at[i]);
			heap[0] = heap[--n];
		}
		top_sink(heap, n, 0);
	}
	free(heap);
	return 0;
}

/* The load as partial sums. */
static void area_fill(struct area *a, const struct um_load *load)
{
	int32_t last = 0;

	for (int32_t op = 0; op < a->n; op++) {
		int32_t now = um_load_at(load, op);

		add_from(a, op, now - last);
		last = now;
	}
}

int um_scores_build(struct um_scores *c, unsigned wanted, const struct um_swaps *w, const struct um_scheme_input *s,
		    const struct um_load *load)
{
	struct area a = {s, s->b->n_ops, calloc(s->b->n_ops + 2ull, sizeof(double)),
			 calloc(s->b->n_ops + 2ull, sizeof(double))};
	int err = a.rate && a.moment ? 0 : -ENOMEM, by_area = wanted & (1u << UM_SCORE_WDOA | 1u << UM_SCORE_SWDOA);

	c->wanted = wanted;
	for (int k = 0; k < UM_SCORES; k++) {
		c->of[k] = calloc(w->n + 1ull, sizeof *c->of[k]);
		if (!c->of[k])
			err = -ENOMEM;
	}
	if (!err && by_area)
		area_fill(&a, load);
	for (uint32_t i = 0; !err && i < w->n; i++) {
		const struct um_swap *x = &w->at[i];
		double doa = (double)um_swap_absence(s, x) - (double)x->out_ns - (double)x->in_ns;

		c->of[UM_SCORE_DOA][i] = doa;
		c->of[UM_SCORE_AOA][i] = doa >= 0 ? doa * (double)x->bytes : doa / (double)x->bytes;
		if (by_area)
			c->of[UM_SCORE_WDOA][i] = area_of(&a, x);
	}
	if (!err && wanted & 1u << UM_SCORE_SWDOA)
		err = submodular(c, w, &a);
	free(a.rate);
	free(a.moment);
	if (err)
		um_scores_fini(c);
	return err;
}

void um_scores_fini(struct um_scores *c)
{
	for (int k = 0; k < UM_SCORES; k++) {
		free(c->of[k]);
		c->of[k] = NULL;
	}
}

void um_scores_standardise(struct um_scores *c, uint32_t n)
{
	for (int k = 0; k < UM_SCORES; k++) {
		double mean = 0, square = 0;

		if (!(c->wanted & 1u << k))
			continue;
		for (uint32_t i = 0; i < n; i++)
			mean += c->of[k][i] / n;
		for (uint32_t i = 0; i < n; i++)
			square += (c->of[k][i] - mean) * (c->of[k][i] - mean) / n;
		for (uint32_t i = 0; i < n; i++)
			c->of[k][i] = square > 0 ? (c->of[k][i] - mean) / sqrt(square) : 0;
	}
}
