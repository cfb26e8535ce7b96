/* SPDX-License-Identifier: Apache-2.0
 *
 * swaps.c - finds, ranks and chooses swaps
 *
 * Choosing repeatedly needs the best ranked swap around one op. Swaps are in a tree over the ops, each at the few nodes
 * that make up its range, in the order of rank; the swaps around an op are the lists on the path to the root. A list is
 * read once from front to back, since taken swaps stay taken.
 */
#include "plan/swaps.h"

#include "base/bisect.h"

#define FEW 64 /* maximum number of pieces that are sorted by insertion */

static uint64_t copy_ns(const struct um_scheme_input *s, uint64_t bytes, uint64_t rate)
{
	return bytes ? s->fixed_ns + (uint64_t)((double)bytes * 1e9 / (double)rate + 0.5) : 0;
}

struct piece {
	uint32_t slot, visit;
	int32_t to;
};

static int by_slot(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->visit < y->visit ? -1 : x->visit > y->visit;
}

/* The pieces of an op are few, or nearly in order. */
static void sort_by_slot(struct piece *p, size_t n)
{
	if (n > FEW) {
		qsort(p, n, sizeof *p, by_slot);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct piece x = p[i];
		size_t k = i;

		for (; k > 0 && by_slot(&x, &p[k - 1]) < 0; k--)
			p[k] = p[k - 1];
		p[k] = x;
	}
}

/* The visits of one op that a gap may follow, by the slot whose part comes first in the block. */
static size_t list_op(struct piece *p, const struct um_blocks *b, int32_t op, const uint8_t *keep_resident)
{
	size_t n = 0;

	for (uint32_t k = b->first_of_op[op]; k < b->first_of_op[op + 1]; k++) {
		uint32_t v = b->of_op[k], part = b->touch[b->visit[v].first_touch].part;

		if (b->visit[v].can_leave && !um_choice_must_leave(b, v) && !keep_resident[v])
			p[n++] = (struct piece){b->part[part].slot, v, b->visit[v].held};
	}
	sort_by_slot(p, n);
	return n;
}

int um_swaps_build(struct um_swaps *w, const struct um_scheme_input *s, const uint8_t *keep_resident)
{
	const struct um_blocks *b = s->b;
	struct piece *p = malloc((b->n_visits + 1ull) * sizeof *p);
	uint32_t total = 0;

	memset(w, 0, sizeof *w);
	w->at = malloc((b->n_visits + 1ull) * sizeof *w->at);
	w->visit = malloc((b->n_visits + 1ull) * sizeof *w->visit);
	if (!p || !w->at || !w->visit) {
		free(p);
		um_swaps_fini(w);
		return -ENOMEM;
	}
	for (int32_t op = 0; op < b->n_ops; op++) {
		size_t n = list_op(p, b, op, keep_resident);

		for (size_t i = 0; i < n; i++) {
			struct um_swap *x = w->n ? &w->at[w->n - 1] : NULL;

			if (!i || p[i].slot != p[i - 1].slot || p[i].to != p[i - 1].to) {
				x = &w->at[w->n++];
				*x = (struct um_swap){.from = op + 1, .to = p[i].to, .first = total, .slot = p[i].slot};
			}
			w->visit[total++] = p[i].visit;
			x->n++;
			x->live += b->visit[p[i].visit].live;
			x->bytes += UM_BLOCK_BYTES;
		}
	}
	for (uint32_t i = 0; i < w->n; i++) {
		w->at[i].out_ns = copy_ns(s, w->at[i].live, s->carry.timing.d2h);
		w->at[i].in_ns = copy_ns(s, w->at[i].live, s->carry.timing.h2d);
	}
	free(p);
	return 0;
}

void um_swaps_fini(struct um_swaps *w)
{
	free(w->at);
	free(w->visit);
	memset(w, 0, sizeof *w);
}

/* When the op at a position starts. */
static int64_t time_at(const struct um_scheme_input *s, int64_t position)
{
	int32_t n = s->b->n_ops;

	return position / n * (int64_t)s->clock[n] + (int64_t)s->clock[position % n];
}

int64_t um_swap_absence(const struct um_scheme_input *s, const struct um_swap *w)
{
	return time_at(s, w->to) - time_at(s, w->from);
}

void um_swaps_take(const struct um_swaps *w, uint32_t i, struct um_scheme_result *a)
{
	const struct um_swap *x = &w->at[i];

	for (uint32_t k = x->first; k < x->first + x->n; k++)
		a->choice.evicted[w->visit[k]] = 1;
	um_load_add(&a->choice.load, x->from, x->to, -(int32_t)x->n);
}

/* --- around one op ------------------------------------------------------------------------------------------------ */

struct tree {
	int32_t n, size; /* ops, leaves */
	uint32_t *first, *next; /* by node: its list, and how far it is read */
	uint32_t *item; /* ranks */
};

/* Adds a rank to the nodes of [from, to), not around the end; only counts if item does not exist yet. */
static void add_flat(struct tree *t, int32_t from, int32_t to, uint32_t rank)
{
	for (int32_t x = from + t->size, y = to + t->size; x < y; x /= 2, y /= 2) {
		int32_t node[2] = {x & 1 ? x++ : 0, y & 1 ? --y : 0};

		for (int i = 0; i < 2; i++) {
			if (!node[i])
				continue;
			if (t->item)
				t->item[t->next[node[i]]++] = rank;
			else
				t->first[node[i] + 1]++;
		}
	}
}

static void add_range(struct tree *t, const struct um_swap *w, uint32_t rank)
{
	int32_t from = w->from % t->n, length = w->to - w->from;

	if (length >= t->n) {
		add_flat(t, 0, t->n, rank);
	} else if (from + length <= t->n) {
		add_flat(t, from, from + length, rank);
	} else {
		add_flat(t, from, t->n, rank);
		add_flat(t, 0, from + length - t->n, rank);
	}
}

static void tree_fini(struct tree *t)
{
	free(t->first);
	free(t->next);
	free(t->item);
}

static int tree_init(struct tree *t, const struct um_swaps *w, const uint32_t *order, uint32_t n, int32_t ops)
{
	memset(t, 0, sizeof *t);
	t->n = ops;
	for (t->size = 1; t->size < ops; t->size *= 2)
		;
	t->first = calloc(2 * (size_t)t->size + 1, sizeof *t->first);
	t->next = malloc((2 * (size_t)t->size + 1) * sizeof *t->next);
	if (!t->first || !t->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		add_range(t, &w->at[order[i]], i);
	for (int32_t x = 0; x < 2 * t->size; x++)
		t->first[x + 1] += t->first[x];
	memcpy(t->next, t->first, (2 * (size_t)t->size + 1) * sizeof *t->next);
	t->item = malloc((t->first[2 * t->size] + 1ull) * sizeof *t->item);
	if (!t->item)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		add_range(t, &w->at[order[i]], i);
	memcpy(t->next, t->first, (2 * (size_t)t->size + 1) * sizeof *t->next);
	return 0;
}

/* The best rank around an op that was not taken; UINT32_MAX if there is none. */
static uint32_t best_at(struct tree *t, int32_t op, const uint8_t *taken)
{
	uint32_t best = UINT32_MAX;

	for (int32_t x = op + t->size; x > 0; x /= 2) {
		while (t->next[x] < t->first[x + 1] && taken[t->item[t->next[x]]])
			t->next[x]++;
		if (t->next[x] < t->first[x + 1] && t->item[t->next[x]] < best)
			best = t->item[t->next[x]];
	}
	return best;
}

int um_swaps_choose(const struct um_swaps *w, const uint32_t *order, uint32_t n, int32_t limit,
		    struct um_scheme_result *a, int32_t *stuck)
{
	struct um_load *load = &a->choice.load;
	struct tree t;
	uint8_t *taken = calloc(n + 1ull, 1);
	int err = tree_init(&t, w, order, n, load->n);

	if (!taken)
		err = -ENOMEM;
	while (!err && um_load_max(load, 0, load->n) > limit) {
		int32_t peak = (int32_t)um_load_last(load, 0, load->n, um_load_max(load, 0, load->n));
		uint32_t rank = best_at(&t, peak, taken);

		if (rank == UINT32_MAX) {
			*stuck = peak;
			err = -E2BIG;
		} else {
			taken[rank] = 1;
			um_swaps_take(w, order[rank], a);
		}
	}
	free(taken);
	tree_fini(&t);
	return err;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

struct ranked {
	double score;
	uint32_t swap;
};

static int by_score(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->swap < y->swap ? -1 : x->swap > y->swap;
}

uint32_t *um_swaps_rank(const struct um_swaps *w, const double *score)
{
	struct ranked *r = malloc((w->n + 1ull) * sizeof *r);
	uint32_t *order = malloc((w->n + 1ull) * sizeof *order);

	if (r && order) {
		for (uint32_t i = 0; i < w->n; i++)
			r[i] = (struct ranked){score[i], i};
		qsort(r, w->n, sizeof *r, by_score);
		for (uint32_t i = 0; i < w->n; i++)
			order[i] = r[i].swap;
	} else {
		free(order);
		order = NULL;
	}
	free(r);
	return order;
}

struct due {
	int32_t need; /* op */
	uint32_t swap;
};

static int by_need(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->need != y->need)
		return x->need < y->need ? -1 : 1;
	return x->swap < y->swap ? -1 : x->swap > y->swap;
}

/* The op that runs at a time, as a position; negative before the iteration begins. */
static int64_t position_at(const struct um_scheme_input *s, int64_t time)
{
	int64_t iteration_ns = (int64_t)s->clock[s->b->n_ops],
		iterations = time < 0 ? -((iteration_ns - 1 - time) / iteration_ns) : time / iteration_ns;
	int32_t next = 1;

	UM_BISECT(next, s->b->n_ops, i, (int64_t)s->clock[i] <= time - iterations * iteration_ns)
	return iterations * s->b->n_ops + next - 1;
}

static void evict_from(const struct um_swaps *w, const struct um_swap *x, int64_t position, struct um_scheme_result *a)
{
	if (position < x->from)
		position = x->from;
	for (uint32_t k = x->first; k < x->first + x->n; k++)
		a->not_before[w->visit[k]] = (int32_t)position;
}

int um_swaps_chain(const struct um_swaps *w, const struct um_scheme_input *s, struct um_scheme_result *a)
{
	struct due *due = malloc((w->n + 1ull) * sizeof *due);
	int64_t iteration_ns = (int64_t)s->clock[s->b->n_ops], start = INT64_MAX;
	size_t n = 0;

	if (!due)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++)
		if (w->at[i].live && a->choice.evicted[w->visit[w->at[i].first]])
			due[n++] = (struct due){w->at[i].to % s->b->n_ops, i};
	qsort(due, n, sizeof *due, by_need);
	/* twice around: the last return of one iteration must not collide with the first of the next */
	for (size_t i = iteration_ns ? 2 * n : 0; i-- > 0;) {
		const struct um_swap *x = &w->at[due[i % n].swap];
		int64_t time = (int64_t)s->clock[due[i % n].need] + (i >= n ? iteration_ns : 0);

		start = (start < time ? start : time) - (int64_t)x->in_ns;
		if (i < n)
			evict_from(w, x, position_at(s, start) + x->to - due[i].need, a);
	}
	free(due);
	return 0;
}
