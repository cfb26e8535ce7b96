/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes whose gaps hold the same cuts are one group: the program is the same for all of them.
 */
#include "base/hash.h"
#include "bound_master.h"

/* How many cuts lie at or before a moment, from the first of iteration 0 on. */
static int32_t rank(const struct bound_cuts *c, int64_t moment, int64_t lap)
{
	int64_t laps = moment / lap, rest = moment % lap;
	int lo = 0, hi = c->n;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (c->moment[mid] <= rest)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (int32_t)(laps * c->n + lo);
}

/* Appends a chain's key: 0 gaps if no cut lies in any. Counted from the cut before the first one. */
static int push_key(struct bound_groups *g, const struct bound_work *w, const struct bound_cuts *c,
                    const struct bound_chain *x, uint32_t *gaps)
{
	int64_t lap = 2ll * w->n_ops;
	size_t at = g->keys.n;
	int32_t shift;

	*gaps = 0;
	if (um_vec_reserve(&g->keys, 2 * (size_t)x->n + 1))
		return -ENOMEM;
	g->keys.at[g->keys.n++] = x->written == BOUND_CLEAN ? INT32_MIN : rank(c, x->written, lap) - 1;
	for (uint32_t k = x->first; k < x->first + x->n; k++) {
		int32_t first = rank(c, w->gaps.at[k].from, lap), last = rank(c, w->gaps.at[k].to - 1, lap) - 1;

		if (first > last)
			continue;
		g->keys.at[g->keys.n++] = first;
		g->keys.at[g->keys.n++] = last;
		++*gaps;
	}
	if (!*gaps)
		return 0;
	shift = g->keys.at[at + 1] / c->n * c->n;
	for (size_t i = at; i < g->keys.n; i++)
		if (g->keys.at[i] != INT32_MIN)
			g->keys.at[i] -= shift;
	return 0;
}

static int find(const struct bound_groups *g, const uint32_t *table, size_t mask, uint32_t key, uint32_t gaps,
                size_t *slot)
{
	size_t bytes = (2ull * gaps + 1) * sizeof *g->keys.at;
	uint64_t h = gaps;

	for (uint32_t i = 0; i <= 2 * gaps; i++)
		h = um_hash_u64(h, (uint32_t)g->keys.at[key + i]);
	for (*slot = h & mask; table[*slot]; *slot = (*slot + 1) & mask) {
		const struct bound_group *x = &g->at.at[table[*slot] - 1];

		if (x->gaps == gaps && !memcmp(g->keys.at + x->key, g->keys.at + key, bytes))
			return 1;
	}
	return 0;
}

static int add(struct bound_groups *g, uint32_t *table, size_t mask, uint32_t key, uint32_t gaps, uint64_t bytes)
{
	size_t slot;

	if (find(g, table, mask, key, gaps, &slot)) {
		g->at.at[table[slot] - 1].mib += (double)bytes / 1048576.0;
		g->keys.n = key;
		return 0;
	}
	table[slot] = (uint32_t)g->at.n + 1;
	return um_vec_push(&g->at, ((struct bound_group){(double)bytes / 1048576.0, key, gaps}));
}

int bound_groups_init(struct bound_groups *g, const struct bound_work *w, const struct bound_cuts *c)
{
	size_t size = 64, pieces = 0;
	uint32_t *table;
	int err = 0;

	memset(g, 0, sizeof *g);
	for (size_t i = 0; i < w->chains.n; i++)
		pieces += w->chains.at[i].written == BOUND_CLEAN ? w->chains.at[i].n : 1;
	while (size < 2 * pieces)
		size *= 2;
	table = calloc(size, sizeof *table);
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < w->chains.n && !err; i++) {
		struct bound_chain x = w->chains.at[i];
		uint32_t left = x.n;

		/* What is clean anyway has gaps that do not know of each other. */
		for (x.n = x.written == BOUND_CLEAN ? 1 : x.n; left && !err; x.first += x.n, left -= x.n) {
			uint32_t key = (uint32_t)g->keys.n, gaps;

			err = push_key(g, w, c, &x, &gaps);
			if (!err && gaps)
				err = add(g, table, size - 1, key, gaps, x.bytes);
			else
				g->keys.n = key;
		}
	}
	free(table);
	if (err)
		bound_groups_fini(g);
	return err;
}

void bound_groups_fini(struct bound_groups *g)
{
	um_vec_fini(&g->at);
	um_vec_fini(&g->keys);
}

/* --- the best day ------------------------------------------------------------------------------------------------- */

static int wrap(int32_t i, int n)
{
	return (int)(((i % n) + n) % n);
}

/* The best stay away within cuts [lo, hi]: its worth, 0 if none is worth it. */
static double stay(int32_t lo, int32_t hi, int n, const struct bound_prices *p)
{
	double best = 0, open = 0;

	for (int32_t i = hi; i >= lo; i--) {
		int k = wrap(i, n);

		if (i == hi || open < -p->in[k])
			open = -p->in[k];
		open += p->room[k];
		best = open > best ? open : best;
	}
	return best;
}

/* The best time to copy out: all stays behind it are free then. */
static double copied_once(const int32_t *key, uint32_t gaps, int n, const struct bound_prices *p)
{
	double later = 0, here = 0, open = 0, best = 0;
	uint32_t g = gaps;

	/* From the last cut back; `here`: the best stay of the gap that i is in, as far as seen. */
	for (int32_t i = key[2 * gaps]; i > key[0]; i--) {
		int k = wrap(i, n);
		double worth;

		while (g && i < key[2 * g - 1]) {
			later += here;
			here = 0;
			g--;
		}
		if (g && i <= key[2 * g]) {
			if (i == key[2 * g] || open < -p->in[k])
				open = -p->in[k];
			open += p->room[k];
			here = open > here ? open : here;
		}
		worth = later + here - p->out[wrap(i - 1, n)];
		best = worth > best ? worth : best;
	}
	return best;
}

double bound_day_worth(const int32_t *key, uint32_t gaps, int n, const struct bound_prices *p)
{
	double sum = 0;

	if (key[0] != INT32_MIN)
		return copied_once(key, gaps, n, p);
	for (uint32_t g = 0; g < gaps; g++)
		sum += stay(key[2 * g + 1], key[2 * g + 2], n, p);
	return sum;
}
