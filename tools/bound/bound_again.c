/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ops must be launched again for a byte that was dropped in a gap, and the share of their time that it bears.
 *
 *     own     all ops that wrote it since one overwrote it without reading it
 *     others  ops that make anew what these launches read, if it is freed, overwritten or declared dead before they
 *             can come. Scratch memory holds it then, and only launches of the iteration fill that; they may come at
 *             any time since the op itself
 *
 * What is lost and cannot be made again makes the byte impossible to compute again. What is not lost is assumed
 * resident.
 *
 * A launch serves each byte that it writes once, since it comes after that byte was dropped, and, by what it leaves in
 * scratch memory, each other byte once in each gap. So an op's time is divided among
 *
 *     the bytes that need it as one of their own + the bytes that need it as another, once for each gap
 *
 * and all that its launches serve in an iteration bears no more time than they take. Only drops count that last over an
 * op around which memory exceeds the budget; the byte's launches come after the first such op of its gap.
 */
#include "bound/bound_again.h"

#define MOST_LAUNCHES 64 /* of one chain of gaps */

struct launch {
	int32_t op;
	int own;
};

struct finder {
	struct bound_work *w;
	const struct bound_history *h;
	uint32_t *first, *by_op; /* touches by op: by_op[first[i]] ... by_op[first[i + 1] - 1] */
	int64_t *next_over; /* by op: ops to the next around which memory exceeds the budget, in a circle */
	double *mib; /* by op: served by its launches */
	uint32_t *seen, round; /* by op */
	struct launch launch[MOST_LAUNCHES];
	int n;
};

static double to_mib(uint64_t bytes)
{
	return (double)bytes / 1048576.0;
}

static int is_made_again(const struct um_schedule *s, const struct um_sched_op *op, uint32_t slot)
{
	for (uint32_t i = op->first_relaunch; op->relaunchable && i < op->first_relaunch + op->n_relaunch; i++)
		if (s->relaunch.at[i] == slot)
			return 1;
	return 0;
}

static int init(struct finder *f, uint64_t budget)
{
	const struct bound_history *h = f->h;
	size_t n = (size_t)h->n_ops;
	int64_t next = INT32_MAX;

	f->first = calloc(n + 2, sizeof *f->first);
	f->by_op = malloc((h->n + 1ull) * sizeof *f->by_op);
	f->next_over = malloc((n + 1) * sizeof *f->next_over);
	f->mib = calloc(n + 1, sizeof *f->mib);
	f->seen = calloc(n + 1, sizeof *f->seen);
	if (!f->first || !f->by_op || !f->next_over || !f->mib || !f->seen)
		return -ENOMEM;
	for (uint32_t k = 0; k < h->n; k++)
		f->first[h->touch[k].op + 2]++;
	for (size_t i = 0; i < n; i++)
		f->first[i + 1] += f->first[i];
	for (size_t i = 2 * n; i-- > 0; next++) {
		if (f->w->need[i % n] > (int64_t)budget)
			next = 0;
		f->next_over[i % n] = next;
	}
	for (uint32_t k = 0; k < h->n; k++)
		f->by_op[f->first[h->touch[k].op + 1]++] = k;
	return 0;
}

/* The first op inside the gap around which memory exceeds the budget, counted on over iterations; -1: none. */
static int64_t first_useful(const struct finder *f, const struct bound_gap *gap)
{
	int64_t n = f->h->n_ops, from = gap->from / 2 + 1, to = gap->to / 2, op;

	if (from >= to)
		return -1;
	op = from + f->next_over[from % n];
	return op < to ? op : -1;
}

/* Does touch `k` find the content that the touch before it leaves? */
static int is_next(const struct bound_history *h, uint32_t k)
{
	return k > h->first[h->touch[k].atom] && h->touch[k - 1].next == k && h->touch[k - 1].kept;
}

/* Is what touch `k` found lost once op `at` has run, which may be one of a later iteration? */
static int is_lost(const struct bound_history *h, uint32_t k, int64_t at)
{
	int64_t pos = h->touch[k].op;

	if (h->touch[k].writes)
		return pos <= at;
	for (;;) {
		const struct bound_touch *t = &h->touch[k];

		if (t->next == BOUND_NO_TOUCH) {
			int32_t dies = bound_dies_at(h, h->slot_of[t->atom], t->op);

			return dies != INT32_MAX && pos - t->op + dies <= at;
		}
		pos += t->apart;
		k = t->next;
		if (pos > at)
			return 0;
		if (!t->kept || h->touch[k].writes)
			return 1;
	}
}

static void add_launch(struct finder *f, int32_t op, int own)
{
	if (f->seen[op] == f->round || f->n == MOST_LAUNCHES)
		return;
	f->seen[op] = f->round;
	f->launch[f->n++] = (struct launch){op, own};
}

/* Adds the ops that wrote the content which touch `k` leaves. 0: one of them must not be launched again. */
static int add_writers(struct finder *f, uint32_t k, int own)
{
	const struct bound_history *h = f->h;

	for (;; k--) {
		const struct bound_touch *t = &h->touch[k];

		if (t->writes) {
			if (!is_made_again(h->s, &h->s->ops.at[t->op], h->slot_of[t->atom]))
				return 0;
			add_launch(f, t->op, own);
			if (!t->reads)
				return 1;
		}
		if (!is_next(h, k))
			return 1;
	}
}

/* Adds what makes anew the content that touch `k` found. 0: nothing does. */
static int add_source(struct finder *f, uint32_t k)
{
	const struct bound_history *h = f->h;

	while (is_next(h, k)) {
		k--;
		if (h->touch[k].writes)
			return add_writers(f, k, 0);
	}
	/* From before the iteration, or undefined. */
	return !h->touch[k].fed;
}

/* Adds what makes anew the inputs of launch `i` that are lost once op `at` has run. `slot`: the launches' own. */
static int add_sources(struct finder *f, int i, uint32_t slot, int64_t at)
{
	const struct bound_history *h = f->h;
	int32_t op = f->launch[i].op;

	for (uint32_t u = f->first[op]; u < f->first[op + 1]; u++) {
		uint32_t k = f->by_op[u], input = h->slot_of[h->touch[k].atom];
		int side = h->touch[k].writes && !is_made_again(h->s, &h->s->ops.at[op], input);

		if (!h->touch[k].reads || input == slot || side || !is_lost(h, k, at))
			continue;
		if (!add_source(f, k))
			return 0;
	}
	return 1;
}

/* Finds the launches for a chain's first useful gap; those for later ones include them. Number of useful gaps; 0 also
 * if the content cannot be made again. */
static uint32_t find_launches(struct finder *f, const struct bound_chain *x)
{
	uint32_t slot = f->h->slot_of[f->h->touch[x->maker].atom], useful = 0;
	int64_t at = 0;

	if (x->written == BOUND_CLEAN)
		return 0;
	for (uint32_t g = x->first + x->n; g-- > x->first;) {
		int64_t op = first_useful(f, &f->w->gaps.at[g]);

		if (op < 0)
			continue;
		at = op;
		useful++;
	}
	f->n = 0;
	f->round++;
	if (!useful || !add_writers(f, x->maker, 1))
		return 0;
	for (int i = 0; i < f->n; i++)
		if (!add_sources(f, i, slot, at))
			return 0;
	return useful;
}

static void share(struct finder *f)
{
	for (size_t c = 0; c < f->w->chains.n; c++) {
		const struct bound_chain *x = &f->w->chains.at[c];
		uint32_t useful = find_launches(f, x);

		for (int i = 0; useful && i < f->n; i++)
			f->mib[f->launch[i].op] += to_mib(x->bytes) * (f->launch[i].own ? 1 : useful);
	}
}

static void price(struct finder *f)
{
	for (size_t c = 0; c < f->w->chains.n; c++) {
		struct bound_chain *x = &f->w->chains.at[c];
		struct bound_again a = {.from = x->written};

		if (!find_launches(f, x))
			continue;
		for (int i = 0; i < f->n; i++) {
			const struct launch *l = &f->launch[i];
			double ms = (double)f->h->s->ops.at[l->op].ns / 1e6 / f->mib[l->op];

			*(l->own ? &a.own : &a.others) += ms;
			if (!l->own && 2ll * l->op + 1 < a.from)
				a.from = 2ll * l->op + 1;
		}
		x->again = a;
	}
}

int bound_again_find(struct bound_work *w, const struct bound_history *h, uint64_t budget)
{
	struct finder f = {.w = w, .h = h};
	int err = init(&f, budget);

	if (!err) {
		share(&f);
		price(&f);
	}
	free(f.first);
	free(f.by_op);
	free(f.next_over);
	free(f.mib);
	free(f.seen);
	return err;
}
