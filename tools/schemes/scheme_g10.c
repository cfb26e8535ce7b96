/* SPDX-License-Identifier: Apache-2.0
 *
 * G10 (Zhang, Zhou, Wang, Zhou, Huang: G10: Enabling An Efficient Unified GPU Memory and Storage Architecture with
 * Smart Tensor Migrations, MICRO 2023), with the host as the only destination.
 *
 *   periods    of inactivity, of every tensor, around the end of the iteration as well
 *   benefit    size x the time that the load is above the capacity between the end of the copy out and the begin of the
 *              copy back; their times follow from the bookings of the link, op by op and per direction: out as early,
 *              back as late as possible. A period in which the two would overlap is excluded
 *   cost       the time of both copies
 *   choice     the period with the largest benefit / cost, is booked and subtracted from the load; then all are
 *              compared again, until the load is nowhere above the capacity. Of equal ones, the one with the larger
 *              size x time
 *   prefetch   latest safe time first; then, in that order, each as early as memory allows, by the common part
 *
 * The published code sorts by the benefit alone and stops at 99 % of the capacity; this is the paper's. What remains
 * above the capacity when no period is left that could hide its copies is the fault handler's there. A plan here must
 * fit: so more periods are taken then, by the same ratio of the whole absence, and the ops wait for them. */
#include "schemes/schemes.h"

#include "base/pqueue.h"
#include "plan/link_booking.h"

#include <stdio.h>

struct top {
	double score;
	double size; /* of equal scores: the larger one */
	uint32_t swap;
};

struct g10 {
	struct um_scheme_input *s;
	struct um_scheme_result *a;
	struct um_swaps swaps;
	struct um_link_booking out, in;
	int32_t *load; /* by op, blocks: copies count as resident */
	double *above; /* a tree of partial sums: time of ops whose load is above the capacity; n + 1 */
	int32_t n, over; /* ops; those above the capacity */
	struct top *heap;
	size_t n_heap;
	int32_t stuck; /* op */
};

static double ns_of(const struct g10 *x, int32_t op)
{
	return (double)(x->s->clock[op + 1] - x->s->clock[op]);
}

static void add_above(struct g10 *x, int32_t op, double ns)
{
	for (int32_t i = op + 1; i <= x->n; i += i & -i)
		x->above[i] += ns;
}

static double above_before(const struct g10 *x, int32_t op)
{
	double sum = 0;

	for (int32_t i = op; i > 0; i -= i & -i)
		sum += x->above[i];
	return sum;
}

/* Wraps around the end of the iteration, at most once. */
static double above_in(const struct g10 *x, int64_t from, int64_t to)
{
	int32_t a = (int32_t)(from % x->n);
	int64_t b = a + (to - from);

	if (to - from >= x->n)
		return above_before(x, x->n);
	if (b <= x->n)
		return above_before(x, (int32_t)b) - above_before(x, a);
	return above_before(x, x->n) - above_before(x, a) + above_before(x, (int32_t)(b - x->n));
}

static int before(const struct top *a, const struct top *b)
{
	if (a->score != b->score)
		return a->score > b->score;
	return a->size != b->size ? a->size > b->size : a->swap < b->swap;
}

UM_PQUEUE(top, struct top, before)

/* Interval between the copies if they were booked now. 0: they overlap. */
static int window(struct g10 *x, const struct um_swap *w, int64_t *from, int64_t *to)
{
	*from = um_link_booking_add(&x->out, w->from, w->to, 1, w->out_ns, 0) + 1;
	*to = um_link_booking_add(&x->in, w->to - 1, w->from - 1, -1, w->in_ns, 0);
	if (!w->live) {
		*from = w->from;
		*to = w->to;
	}
	return *from < *to;
}

static double ratio(const struct um_swap *w, double above)
{
	return (double)w->n * above / ((double)w->out_ns + (double)w->in_ns + 1);
}

static double score(struct g10 *x, uint32_t i)
{
	const struct um_swap *w = &x->swaps.at[i];
	int64_t from, to;

	return window(x, w, &from, &to) ? ratio(w, above_in(x, from, to)) : 0;
}

static void take(struct g10 *x, uint32_t i)
{
	const struct um_swap *w = &x->swaps.at[i];
	int64_t from, to;

	window(x, w, &from, &to);
	if (w->live) {
		um_link_booking_add(&x->out, w->from, w->to, 1, w->out_ns, 1);
		um_link_booking_add(&x->in, w->to - 1, w->from - 1, -1, w->in_ns, 1);
	}
	for (int64_t at = from; at < to && at < from + x->n; at++) {
		int32_t op = (int32_t)(at % x->n), was = x->load[op];

		x->load[op] -= (int32_t)w->n;
		if (was > x->s->carry.capacity && x->load[op] <= x->s->carry.capacity) {
			add_above(x, op, -ns_of(x, op));
			x->over--;
		}
	}
	um_swaps_take(&x->swaps, i, x->a);
}

/* The whole periods, if the copies cannot be hidden. */
static int rank(struct g10 *x, uint32_t **order)
{
	double *value = malloc((x->swaps.n + 1ull) * sizeof *value);

	if (!value)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->swaps.n; i++)
		value[i] = ratio(&x->swaps.at[i], above_in(x, x->swaps.at[i].from, x->swaps.at[i].to));
	*order = um_swaps_rank(&x->swaps, value);
	free(value);
	return *order ? 0 : -ENOMEM;
}

/* Scores only fall as others are chosen, so only the top one needs an update. */
static void choose(struct g10 *x)
{
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		const struct um_swap *w = &x->swaps.at[i];
		struct top t = {score(x, i), (double)w->n * (double)um_swap_absence(x->s, w), i};

		if (t.score > 0)
			x->heap[x->n_heap++] = t;
	}
	for (size_t i = x->n_heap / 2; i-- > 0;)
		top_sink(x->heap, x->n_heap, i);
	while (x->n_heap && x->over) {
		double now = score(x, x->heap[0].swap);

		/* Tolerance for rounding of partial sums. */
		if (now > 0 && now < x->heap[0].score * (1 - 1e-9)) {
			x->heap[0].score = now;
		} else {
			if (now > 0)
				take(x, x->heap[0].swap);
			x->heap[0] = x->heap[--x->n_heap];
		}
		top_sink(x->heap, x->n_heap, 0);
	}
}

/* A chosen period is not chosen again. */
static int choose_rest(struct g10 *x, uint32_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->swaps.n; i++)
		if (!x->a->choice.evicted[x->swaps.visit[x->swaps.at[order[i]].first]])
			order[n++] = order[i];
	return um_swaps_choose(&x->swaps, order, n, x->s->carry.capacity, x->a, &x->stuck);
}

static int prepare(struct g10 *x)
{
	int err = um_swaps_build(&x->swaps, x->s, x->a->choice.keep_resident);

	x->n = x->s->b->n_ops;
	if (!err)
		err = um_link_booking_init(&x->out, x->s);
	if (!err)
		err = um_link_booking_init(&x->in, x->s);
	x->load = malloc((size_t)x->n * sizeof *x->load);
	x->above = calloc(x->n + 1ull, sizeof *x->above);
	x->heap = malloc((x->swaps.n + 1ull) * sizeof *x->heap);
	if (!x->load || !x->above || !x->heap)
		return -ENOMEM;
	for (int32_t op = 0; !err && op < x->n; op++) {
		x->load[op] = um_load_at(&x->a->choice.load, op);
		if (x->load[op] > x->s->carry.capacity) {
			add_above(x, op, ns_of(x, op));
			x->over++;
		}
	}
	return err;
}

int um_scheme_g10(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct g10 x = {.s = s, .a = a};
	uint32_t *order = NULL;
	int err = prepare(&x);

	(void)mode;
	if (!err)
		err = rank(&x, &order);
	if (!err) {
		choose(&x);
		err = choose_rest(&x, order);
	}
	if (err == -E2BIG)
		snprintf(s->why, s->why_size, "g10: no period is left around op %d '%s' for %d MiB", x.stuck,
			 s->sched->ops.at[x.stuck].name, 2 * s->carry.capacity);
	free(order);
	free(x.load);
	free(x.above);
	free(x.heap);
	um_link_booking_fini(&x.out);
	um_link_booking_fini(&x.in);
	um_swaps_fini(&x.swaps);
	return err;
}
