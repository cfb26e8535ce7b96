/* SPDX-License-Identifier: Apache-2.0
 *
 * Capuchin (Peng, Shi, Dai, Jin, Ma, Xiong, Yang, Qian: Capuchin: Tensor-based GPU Memory Management for Deep Learning,
 * ASPLOS 2020), the part that swaps. Recomputation is in scheme_capuchin_drops.c.
 *
 *   SwapTime    bytes / bandwidth
 *   FT          back access - SwapTime - (evicted access + SwapTime): the free time of a pair of accesses. Pairs
 *               around the peak are taken by descending FT, so those whose copies cost nothing go first
 *   in-trigger  the last access of any tensor before the back access less SwapTime: begin of the prefetch
 *   feedback    a swap that is late at the back access is triggered earlier by 5 % of its SwapTime from then on
 *
 * The paper measures one iteration and then corrects triggers from one to the next. Here iterations are simulated with
 * the delays of the link only, until ROUNDS are over or PATIENCE in a row were no faster; the triggers of the fastest
 * one count. If no pair is free, the cheapest one is swapped: what is made again was chosen before. The common part
 * ensures that a trigger does not lie inside the peak: prefetches wait for free memory.
 *
 * Ours: the link works in the order of need, so who is needed sooner is asked for no later than who is needed later.
 * A pair may go around the end of the iteration, or the optimizer's state would never leave. */
#include "schemes/schemes.h"

#include "base/bisect.h"
#include "plan/swaps.h"

#include <stdio.h>

#define ROUNDS 400
#define PATIENCE 40
#define ITERATIONS 3 /* until an iteration equals the previous one */
#define STEP 20 /* of SwapTime: 5 % */

struct capuchin {
	struct um_scheme_input *s;
	struct um_scheme_result *a;
	struct um_swaps swaps;
	uint32_t *taken, n_taken; /* swaps that copy, by need */
	uint32_t *late; /* by swap: number of late arrivals */
	uint8_t *was_late; /* by swap: the last time */
	int32_t *asked; /* by swap: position of its prefetch */
	int64_t *start; /* by position: when the op began */
	int32_t stuck; /* op */
};

static int is_taken(const struct capuchin *x, uint32_t swap)
{
	return x->a->choice.evicted[x->swaps.visit[x->swaps.at[swap].first]];
}

static int by_free_time(struct capuchin *x)
{
	double *ft = malloc((x->swaps.n + 1ull) * sizeof *ft);
	uint32_t *order = NULL;
	int err = -ENOMEM;

	for (uint32_t i = 0; ft && i < x->swaps.n; i++) {
		const struct um_swap *w = &x->swaps.at[i];

		ft[i] = (double)um_swap_absence(x->s, w) - (double)w->out_ns - (double)w->in_ns;
	}
	if (ft)
		order = um_swaps_rank(&x->swaps, ft);
	if (order)
		err = um_swaps_choose(&x->swaps, order, x->swaps.n, x->s->carry.capacity, x->a, &x->stuck);
	free(order);
	free(ft);
	return err;
}

static int64_t time_of(const struct capuchin *x, int64_t position)
{
	int32_t n = x->s->b->n_ops;

	return position / n * (int64_t)x->s->clock[n] + (int64_t)x->s->clock[position % n];
}

/* The last position in the gap that starts early enough. */
static int32_t trigger(const struct capuchin *x, uint32_t i)
{
	const struct um_swap *w = &x->swaps.at[i];
	int64_t start = time_of(x, w->to) - (int64_t)(w->in_ns + w->in_ns / STEP * x->late[i]);
	int32_t late = w->from + 1;

	UM_BISECT(late, w->to + 1, k, time_of(x, k) <= start)
	return late - 1;
}

static int by_need(const void *a, const void *b, void *user)
{
	const struct capuchin *x = user;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int32_t n = x->s->b->n_ops, need = x->swaps.at[i].to % n, other = x->swaps.at[k].to % n;

	if (need != other)
		return need < other ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* Prefetches follow the order of need. Two passes, because the last ones of one iteration precede the first ones of the
 * next. */
static void set_triggers(struct capuchin *x)
{
	int64_t n = x->s->b->n_ops, earliest = INT64_MAX;

	for (uint32_t i = x->n_taken ? 2 * x->n_taken : 0; i-- > 0;) {
		uint32_t swap = x->taken[i % x->n_taken];
		const struct um_swap *w = &x->swaps.at[swap];
		int64_t base = w->to - w->to % n - (i >= x->n_taken ? n : 0), at = trigger(x, swap) - base;

		earliest = at < earliest ? at : earliest;
		x->asked[swap] = (int32_t)(earliest + base < w->from ? w->from : earliest + base);
	}
}

/* Start of an op: `time`, or the end of its prefetches. */
static int64_t wait_for(struct capuchin *x, uint32_t *next, int64_t position, int64_t time, int64_t *link)
{
	int32_t n = x->s->b->n_ops, op = (int32_t)(position % n);
	int64_t due = time;

	for (; *next < x->n_taken && x->swaps.at[x->taken[*next]].to % n == op; ++*next) {
		uint32_t swap = x->taken[*next];
		const struct um_swap *w = &x->swaps.at[swap];
		int64_t from = position - (w->to - x->asked[swap]), asked = due;

		if (from < position)
			asked = from < 0 ? 0 : x->start[from];
		*link = (*link > asked ? *link : asked) + (int64_t)w->in_ns;
		x->was_late[swap] = *link > due;
		time = *link > time ? *link : time;
	}
	return time;
}

/* Simulates some iterations under the triggers, with delays of the link only. Returns the time of the last one and its
 * late swaps. */
static int64_t measure(struct capuchin *x)
{
	int32_t n = x->s->b->n_ops;
	int64_t time = 0, link = 0;

	for (int iteration = 0; iteration < ITERATIONS; iteration++) {
		uint32_t next = 0;

		for (int32_t op = 0; op < n; op++) {
			int64_t position = (int64_t)iteration * n + op;

			time = wait_for(x, &next, position, time, &link);
			x->start[position] = time;
			time += (int64_t)(x->s->clock[op + 1] - x->s->clock[op]);
		}
	}
	return time - x->start[(int64_t)(ITERATIONS - 1) * n];
}

/* Moves triggers of late swaps earlier, but not before their eviction. 0: none moved. */
static uint32_t take_feedback(struct capuchin *x)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->n_taken; i++) {
		uint32_t swap = x->taken[i];

		if (x->was_late[swap] && x->asked[swap] > x->swaps.at[swap].from) {
			x->late[swap]++;
			n++;
		}
	}
	return n;
}

static void ask(const struct capuchin *x)
{
	for (uint32_t i = 0; i < x->n_taken; i++) {
		const struct um_swap *w = &x->swaps.at[x->taken[i]];

		for (uint32_t k = w->first; k < w->first + w->n; k++)
			x->a->not_before[x->swaps.visit[k]] = x->asked[x->taken[i]];
	}
}

/* The triggers of the fastest iteration. */
static void adjust(struct capuchin *x)
{
	int64_t best_ns = INT64_MAX;

	for (uint32_t i = 0; i < x->swaps.n; i++)
		if (is_taken(x, i) && x->swaps.at[i].live)
			x->taken[x->n_taken++] = i;
	qsort_r(x->taken, x->n_taken, sizeof *x->taken, by_need, x);
	for (int i = 0, idle = 0; i < ROUNDS && idle < PATIENCE; i++, idle++) {
		int64_t ns;

		set_triggers(x);
		ns = measure(x);
		if (ns < best_ns) {
			best_ns = ns;
			idle = 0;
			ask(x);
		}
		if (!take_feedback(x))
			break;
	}
}

int um_scheme_capuchin(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct capuchin x = {.s = s, .a = a};
	int err;

	(void)mode;
	if (um_load_max(&a->choice.load, 0, s->b->n_ops) <= s->carry.capacity)
		return 0;
	err = um_swaps_build(&x.swaps, s, a->choice.keep_resident);
	x.taken = calloc(x.swaps.n + 1ull, sizeof *x.taken);
	x.late = calloc(x.swaps.n + 1ull, sizeof *x.late);
	x.was_late = calloc(x.swaps.n + 1ull, 1);
	x.asked = calloc(x.swaps.n + 1ull, sizeof *x.asked);
	x.start = calloc((size_t)ITERATIONS * (size_t)s->b->n_ops, sizeof *x.start);
	if (!x.taken || !x.late || !x.was_late || !x.asked || !x.start)
		err = -ENOMEM;
	if (!err)
		err = by_free_time(&x);
	if (!err)
		adjust(&x);
	if (err == -E2BIG)
		snprintf(s->why, s->why_size, "capuchin: no pair of accesses is left around op %d '%s' for %d MiB",
			 x.stuck, s->sched->ops.at[x.stuck].name, 2 * s->carry.capacity);
	free(x.taken);
	free(x.late);
	free(x.was_late);
	free(x.asked);
	free(x.start);
	um_swaps_fini(&x.swaps);
	return err;
}
