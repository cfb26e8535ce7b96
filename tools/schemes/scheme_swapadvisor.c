/* SPDX-License-Identifier: Apache-2.0
 *
 * SwapAdvisor (Huang, Jin, Li: SwapAdvisor: Pushing Deep Learning Beyond the GPU Memory Limit via Smart Swapping,
 * ASPLOS 2020): its swap planner. The genetic search over the order of ops and the classes of its pool is not here: the
 * order is the program's, and the pool has blocks of one size only.
 *
 *   victims      an op without free memory evicts the tensor with the furthest next use (Belady) that it does not use
 *                itself; one whose last use is too recent for its copy out only if there is no other
 *   double pass  the first pass begins with no resident weights, which are the tensors that live across iterations;
 *                those resident at its end are resident at the begin of the second pass. A victim of the second pass
 *                before its first use is removed from that set, so that the plan suits every iteration
 *   swap-in      as early as a victim's eviction frees memory, by the common part
 *
 * Ours: the threshold of recency is the time of the victim's own copy out. */
#include "schemes/schemes.h"

#include "base/pqueue.h"
#include "plan/swaps.h"

#include <stdio.h>

struct candidate {
	int64_t next_use; /* position in this pass; INT64_MAX: dead content */
	uint32_t swap;
};

struct advisor {
	struct um_scheme_input *s;
	struct um_swaps swaps;
	struct um_scheme_result *a;
	uint8_t *in, *out, *left; /* by swap: candidate; evicted now; evicted in the plan */
	uint32_t *ending, *first_ending; /* by op: swaps whose gap ends there */
	uint32_t *first_starting; /* by op: swaps from it on; they are in that order */
	struct candidate *heap; /* heap of current and former candidates: the furthest next use on top */
	struct candidate *aside; /* too recent for an eviction */
	uint32_t n_heap;
	int64_t *next_use; /* by swap: its pass */
	int32_t absent, stuck; /* blocks, op */
};

static int init(struct advisor *x)
{
	const struct um_swaps *w = &x->swaps;
	int32_t n = x->s->b->n_ops;

	x->in = calloc(w->n + 1ull, 1);
	x->out = calloc(w->n + 1ull, 1);
	x->left = calloc(w->n + 1ull, 1);
	x->ending = malloc((w->n + 1ull) * sizeof *x->ending);
	x->heap = malloc((2ull * w->n + 1) * sizeof *x->heap);
	x->aside = malloc((2ull * w->n + 1) * sizeof *x->aside);
	x->next_use = calloc(w->n + 1ull, sizeof *x->next_use);
	x->first_ending = calloc(n + 2ull, sizeof *x->first_ending);
	x->first_starting = calloc(n + 2ull, sizeof *x->first_starting);
	if (!x->in || !x->out || !x->left || !x->ending || !x->heap || !x->aside || !x->next_use || !x->first_ending ||
	    !x->first_starting)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++) {
		x->first_ending[w->at[i].to % n + 2]++;
		x->first_starting[w->at[i].from]++;
	}
	for (int32_t op = 0; op <= n; op++) {
		x->first_ending[op + 1] += x->first_ending[op];
		x->first_starting[op + 1] += x->first_starting[op];
	}
	for (uint32_t i = 0; i < w->n; i++)
		x->ending[x->first_ending[w->at[i].to % n + 1]++] = i;
	return 0;
}

static void fini(struct advisor *x)
{
	free(x->in);
	free(x->out);
	free(x->left);
	free(x->ending);
	free(x->heap);
	free(x->aside);
	free(x->next_use);
	free(x->first_ending);
	free(x->first_starting);
	um_swaps_fini(&x->swaps);
}

static int before(const struct candidate *a, const struct candidate *b)
{
	return a->next_use != b->next_use ? a->next_use > b->next_use : a->swap < b->swap;
}

UM_PQUEUE(candidates, struct candidate, before)

static void push(struct advisor *x, struct candidate c)
{
	x->heap[x->n_heap] = c;
	candidates_rise(x->heap, x->n_heap++);
}

static struct candidate pop(struct advisor *x)
{
	struct candidate top = x->heap[0];

	x->heap[0] = x->heap[--x->n_heap];
	candidates_sink(x->heap, x->n_heap, 0);
	return top;
}

/* Makes a swap a candidate. */
static void enter(struct advisor *x, uint32_t i, int64_t to)
{
	if (x->in[i])
		return;
	x->in[i] = 1;
	x->next_use[i] = x->swaps.at[i].live ? to : INT64_MAX;
	push(x, (struct candidate){x->next_use[i], i});
}

static int is_recent(const struct advisor *x, uint32_t i, int32_t op)
{
	const struct um_swap *w = &x->swaps.at[i];

	/* Swaps that began in the previous pass are left out. */
	return w->from <= op && x->s->clock[op] - x->s->clock[w->from] < w->out_ns;
}

/* Removes and returns the victim; UINT32_MAX: none. */
static uint32_t find_victim(struct advisor *x, int32_t op)
{
	uint32_t n_aside = 0, back, found = UINT32_MAX;

	while (x->n_heap && found == UINT32_MAX) {
		struct candidate c = pop(x);

		if (!x->in[c.swap] || x->next_use[c.swap] != c.next_use) /* what it once was */
			continue;
		if (is_recent(x, c.swap, op))
			x->aside[n_aside++] = c;
		else
			found = c.swap;
	}
	back = found == UINT32_MAX && n_aside;
	if (back)
		found = x->aside[0].swap;
	for (uint32_t k = back; k < n_aside; k++)
		push(x, x->aside[k]);
	return found;
}

/* One op: gaps that end with it, memory for it, gaps that begin after it. */
static int step(struct advisor *x, int32_t op)
{
	const struct um_swaps *w = &x->swaps;
	int32_t load = um_load_at(&x->a->choice.load, op);

	for (uint32_t k = x->first_ending[op]; k < x->first_ending[op + 1]; k++) {
		uint32_t i = x->ending[k];

		x->in[i] = 0;
		if (x->out[i])
			x->absent -= (int32_t)w->at[i].n;
		x->out[i] = 0;
	}
	while (load - x->absent > x->s->carry.capacity) {
		uint32_t i = find_victim(x, op);

		if (i == UINT32_MAX) {
			x->stuck = op;
			return -E2BIG;
		}
		x->in[i] = 0;
		x->out[i] = x->left[i] = 1;
		x->absent += (int32_t)w->at[i].n;
	}
	for (uint32_t i = x->first_starting[op]; i < x->first_starting[op + 1]; i++)
		if (!x->out[i])
			enter(x, i, w->at[i].to);
	return 0;
}

/* One iteration. Swaps evicted at its begin are evicted in the plan. */
static int pass(struct advisor *x)
{
	int32_t n = x->s->b->n_ops;
	int err = 0;

	x->n_heap = 0;
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		x->left[i] = x->out[i];
		x->in[i] = 0;
		if (x->swaps.at[i].to > n && !x->out[i])
			enter(x, i, x->swaps.at[i].to - n);
	}
	for (int32_t op = 0; !err && op < n; op++)
		err = step(x, op);
	return err;
}

static int plan(struct advisor *x)
{
	int32_t n = x->s->b->n_ops;
	int err;

	for (uint32_t i = 0; i < x->swaps.n; i++)
		if (x->swaps.at[i].to > n) {
			x->out[i] = 1;
			x->absent += (int32_t)x->swaps.at[i].n;
		}
	err = pass(x);
	if (!err)
		err = pass(x);
	for (uint32_t i = 0; !err && i < x->swaps.n; i++)
		if (x->left[i])
			um_swaps_take(&x->swaps, i, x->a);
	return err;
}

int um_scheme_swapadvisor(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct advisor x = {.s = s, .a = a};
	int err = um_swaps_build(&x.swaps, s, a->choice.keep_resident);

	(void)mode;
	if (!err)
		err = init(&x);
	if (!err)
		err = plan(&x);
	if (err == -E2BIG)
		snprintf(s->why, s->why_size, "swapadvisor: nothing is left to go at op %d '%s' for %d MiB", x.stuck,
			 s->sched->ops.at[x.stuck].name, 2 * s->carry.capacity);
	fini(&x);
	return err;
}
