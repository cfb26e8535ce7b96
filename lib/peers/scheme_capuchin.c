/* SPDX-License-Identifier: Apache-2.0
 *
 * Capuchin (Peng, Shi, Dai, Jin, Ma, Xiong, Yang, Qian: Capuchin: Tensor-based GPU Memory Management for Deep Learning,
 * ASPLOS 2020), the part that swaps.
 *
 *   SwapTime    bytes / bandwidth
 *   FT          back access - SwapTime - (evicted access + SwapTime): the free time of a pair of accesses. Pairs around
 *               the peak are taken by descending FT, so those whose copies cost nothing go first
 *   in-trigger  the last access of any tensor before the back access less SwapTime: there the copy back is asked for
 *   feedback    who is still on its way at the back access is asked for earlier by 5 % of its SwapTime, from then on
 *
 * The paper measures one iteration and then corrects triggers from one to the next. Here the iteration is carried out
 * on paper (carry.h) as often as ROUNDS says; the triggers of the fastest one count. Where no pair is free the paper
 * weighs swapping against computing again; without that, the pair that costs least is swapped. That a trigger must not
 * lie inside the peak is seen to by the common part: nothing comes back before there is room.
 *
 * Ours: a pair may go around the end of the iteration, or the optimizer's state would never leave. Somebody waited for a
 * tensor means for either of its copies, since the room that it leaves is waited for, too. */
#include "peers/peers.h"

#include "plan/swaps.h"

#include <stdio.h>

#define ROUNDS 40
#define FEW_ROUNDS 8
#define MANY_TOUCHES 100000u /* from here on few */
#define STEP 20 /* of SwapTime: 5 % */

struct capuchin {
	struct um_scheme_case *s;
	struct um_scheme_answer *a;
	struct um_swaps swaps;
	uint8_t *taken; /* by swap */
	uint32_t *late; /* by swap: how often it was late */
	uint32_t *best; /* likewise, in the fastest iteration so far */
	uint64_t best_ns;
	int32_t stuck; /* op */
};

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
	int32_t lo = w->from, hi = w->to;

	while (lo < hi) {
		int32_t mid = lo + (hi - lo + 1) / 2;

		if (time_of(x, mid) <= start)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

static void set_triggers(const struct capuchin *x, int32_t *not_before)
{
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		const struct um_swap *w = &x->swaps.at[i];
		int32_t at = x->taken[i] ? trigger(x, i) : 0;

		for (uint32_t k = w->first; x->taken[i] && k < w->first + w->n; k++)
			not_before[x->swaps.visit[k]] = at;
	}
}

/* Who was waited for; 0: nobody. */
static uint32_t take_feedback(struct capuchin *x, const struct um_timeline *line)
{
	uint32_t n = 0;

	if (line->ns < x->best_ns) {
		x->best_ns = line->ns;
		memcpy(x->best, x->late, x->swaps.n * sizeof *x->best);
	}
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		const struct um_swap *w = &x->swaps.at[i];
		uint64_t waited = 0;

		for (uint32_t k = w->first; x->taken[i] && k < w->first + w->n; k++)
			waited += line->blame[x->swaps.visit[k]];
		/* No earlier than right behind its departure. */
		if (waited && trigger(x, i) > w->from) {
			x->late[i]++;
			n++;
		}
	}
	return n;
}

/* Carries out one iteration under the triggers. */
static int measure(struct capuchin *x, uint32_t *n_late)
{
	const struct um_blocks *b = x->s->b;
	struct um_scheme_answer a = {0};
	struct um_carry carry = x->s->carry;
	struct um_timeline line = {0};
	uint8_t *pinned = malloc(b->n_visits + 1ull);
	int err = pinned ? 0 : -ENOMEM;

	if (!err) {
		memcpy(pinned, x->a->choice.pinned, b->n_visits);
		err = um_scheme_answer_init(&a, b, pinned);
	}
	if (!err) {
		for (uint32_t i = 0; i < x->swaps.n; i++)
			if (x->taken[i])
				um_swaps_take(&x->swaps, i, &a);
		um_choice_settle(&a.choice, b);
		set_triggers(x, a.not_before);
		carry.not_before = a.not_before;
		err = um_carry_out(b, x->s->sched, &a.choice, &carry, &line, NULL);
		if (!err)
			*n_late = take_feedback(x, &line);
		um_timeline_fini(&line);
		um_scheme_answer_fini(&a);
	}
	free(pinned);
	return err;
}

static int adjust(struct capuchin *x)
{
	int rounds = x->s->b->n_touches > MANY_TOUCHES ? FEW_ROUNDS : ROUNDS, err = 0;
	uint32_t n_late = 1;

	for (uint32_t i = 0; i < x->swaps.n; i++)
		x->taken[i] = x->a->choice.away[x->swaps.visit[x->swaps.at[i].first]];
	x->best_ns = UINT64_MAX;
	for (int i = 0; !err && n_late && i < rounds; i++)
		err = measure(x, &n_late);
	if (err)
		return err;
	memcpy(x->late, x->best, x->swaps.n * sizeof *x->late);
	set_triggers(x, x->a->not_before);
	return 0;
}

int um_scheme_capuchin(struct um_scheme_case *s, int mode, struct um_scheme_answer *a)
{
	struct capuchin x = {.s = s, .a = a};
	int err;

	(void)mode;
	if (um_load_max(&a->choice.load, 0, s->b->n_ops) <= s->carry.capacity)
		return 0;
	err = um_swaps_build(&x.swaps, s, a->choice.pinned);
	x.taken = calloc(x.swaps.n + 1ull, 1);
	x.late = calloc(x.swaps.n + 1ull, sizeof *x.late);
	x.best = calloc(x.swaps.n + 1ull, sizeof *x.best);
	if (!x.taken || !x.late || !x.best)
		err = -ENOMEM;
	if (!err)
		err = by_free_time(&x);
	if (!err)
		err = adjust(&x);
	if (err == -E2BIG)
		snprintf(s->why, s->why_size, "capuchin: no pair of accesses is left around op %d '%s' for %d MiB",
		         x.stuck, s->sched->ops.at[x.stuck].name, 2 * s->carry.capacity);
	free(x.taken);
	free(x.late);
	free(x.best);
	um_swaps_fini(&x.swaps);
	return err;
}
