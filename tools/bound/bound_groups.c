/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes whose gaps contain the same cuts form one group with the same variables.
 */
#include "base/bisect.h"
#include "base/hash.h"
#include "bound/bound_master.h"

#include <math.h>

/* Number of cuts at or before a moment, counted from the first one of iteration 0. */
static int32_t rank(const struct bound_cuts *c, int64_t moment, int64_t length)
{
	int64_t iterations = moment / length, rest = moment % length;
	int lo = 0;

	UM_BISECT(lo, c->n, i, c->moment[i] <= rest)
	return (int32_t)(iterations * c->n + lo);
}

/* Appends a chain's key: 0 gaps if none contains a cut. Counted from the cut before the first one. */
static int push_key(struct bound_groups *g, const struct bound_work *w, const struct bound_cuts *c,
		    const struct bound_chain *x, uint32_t *gaps)
{
	int64_t length = 2ll * w->n_ops;
	size_t at = g->keys.n;
	int32_t shift;

	*gaps = 0;
	if (um_vec_reserve(&g->keys, 2 * (size_t)x->n + 2))
		return -ENOMEM;
	g->keys.at[g->keys.n++] = x->written == BOUND_CLEAN ? INT32_MIN : rank(c, x->written, length) - 1;
	for (uint32_t k = x->first; k < x->first + x->n; k++) {
		int32_t first = rank(c, w->gaps.at[k].from, length), last = rank(c, w->gaps.at[k].to - 1, length) - 1;

		if (first > last)
			continue;
		g->keys.at[g->keys.n++] = first;
		g->keys.at[g->keys.n++] = last;
		++*gaps;
	}
	if (!*gaps)
		return 0;
	g->keys.at[g->keys.n++] = x->again.others > 0 ? rank(c, x->again.from, length) - 1 : INT32_MIN;
	shift = g->keys.at[at + 1] / c->n * c->n;
	for (size_t i = at; i < g->keys.n; i++)
		if (g->keys.at[i] != INT32_MIN)
			g->keys.at[i] -= shift;
	return 0;
}

static int is_same(double a, double b)
{
	return !(a < b) && !(a > b);
}

static int find(const struct bound_groups *g, const uint32_t *table, size_t mask, const struct bound_group *like,
		size_t *slot)
{
	uint32_t n = 2 * like->gaps + 2;
	uint64_t h = like->gaps;

	for (uint32_t i = 0; i < n; i++)
		h = um_hash_u64(h, (uint32_t)g->keys.at[like->key + i]);
	for (*slot = h & mask; table[*slot]; *slot = (*slot + 1) & mask) {
		const struct bound_group *x = &g->at.at[table[*slot] - 1];

		if (x->gaps == like->gaps && is_same(x->own, like->own) && is_same(x->others, like->others) &&
		    !memcmp(g->keys.at + x->key, g->keys.at + like->key, n * sizeof *g->keys.at))
			return 1;
	}
	return 0;
}

static int add(struct bound_groups *g, uint32_t *table, size_t mask, const struct bound_group *x)
{
	size_t slot;

	if (find(g, table, mask, x, &slot)) {
		g->at.at[table[slot] - 1].mib += x->mib;
		g->keys.n = x->key;
		return 0;
	}
	table[slot] = (uint32_t)g->at.n + 1;
	return um_vec_push(&g->at, *x);
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

		/* Gaps of clean bytes are independent. */
		for (x.n = x.written == BOUND_CLEAN ? 1 : x.n; left && !err; x.first += x.n, left -= x.n) {
			struct bound_group y = {(double)x.bytes / 1048576.0, x.again.own, x.again.others,
						(uint32_t)g->keys.n, 0};

			err = push_key(g, w, c, &x, &y.gaps);
			if (!err && y.gaps)
				err = add(g, table, size - 1, &y);
			else
				g->keys.n = y.key;
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

/* Largest gain of an eviction within cuts [lo, hi], copied in again, or 0. */
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

/* Gain of a gap whose content is computed again. */
static double anew(const struct bound_groups *g, const struct bound_group *x, uint32_t gap, int n,
		   const struct bound_prices *p)
{
	const int32_t *key = g->keys.at + x->key;
	int32_t lo = key[2 * gap + 1], hi = key[2 * gap + 2], from = key[2 * x->gaps + 1];
	double best = 0, room = 0, others = INFINITY;

	if (x->own < 0)
		return 0;
	if (from == INT32_MIN)
		from = lo;
	for (int32_t i = from; i <= hi; i++) {
		int k = wrap(i, n);
		double gain;

		others = p->time[k] < others ? p->time[k] : others;
		if (i < lo)
			continue;
		room += p->room[k];
		gain = room - x->own * p->time[k] - x->others * others;
		best = gain > best ? gain : best;
	}
	return best;
}

/* The best time of the copy to the host, or none: all later evictions need no copy. */
static double copied_once(const struct bound_groups *groups, const struct bound_group *x, int n,
			  const struct bound_prices *p)
{
	const int32_t *key = groups->keys.at + x->key;
	double later = 0, here = 0, open = 0, earlier = 0, best;
	uint32_t g = x->gaps;

	for (uint32_t i = 0; i < g; i++)
		earlier += anew(groups, x, i, n, p);
	best = earlier;
	/* From the last cut backwards; `here`: the best eviction so far in the gap of cut i; `earlier`: in the gaps
	 * before it. */
	for (int32_t i = key[2 * g]; i > key[0]; i--) {
		int k = wrap(i, n);
		double worth;

		while (g && i < key[2 * g - 1]) {
			later += here;
			here = 0;
			g--;
		}
		if (g && i <= key[2 * g]) {
			if (i == key[2 * g]) {
				here = anew(groups, x, g - 1, n, p);
				earlier -= here;
			}
			if (i == key[2 * g] || open < -p->in[k])
				open = -p->in[k];
			open += p->room[k];
			here = open > here ? open : here;
		}
		worth = earlier + later + here - p->out[wrap(i - 1, n)];
		best = worth > best ? worth : best;
	}
	return best;
}

double bound_day_worth(const struct bound_groups *g, const struct bound_group *x, int n, const struct bound_prices *p)
{
	const int32_t *key = g->keys.at + x->key;
	double sum = 0;

	if (key[0] != INT32_MIN)
		return copied_once(g, x, n, p);
	for (uint32_t i = 0; i < x->gaps; i++)
		sum += stay(key[2 * i + 1], key[2 * i + 2], n, p);
	return sum;
}
