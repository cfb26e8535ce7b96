/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/returns.h"

struct ret {
	int32_t need, after;
	uint32_t visit;
};

static int by_need(const void *a, const void *b)
{
	const struct ret *x = a, *y = b;

	if (x->need != y->need)
		return x->need < y->need ? -1 : 1;
	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return x->visit < y->visit ? -1 : x->visit > y->visit;
}

/* In order of need from the calmest op on, which `need` counts from. */
static uint32_t list(struct ret *ret, const struct um_blocks *b, const struct um_choice *c)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < b->n_visits; v++)
		if (c->away[v] && b->visit[v].live && b->after[v] != UINT32_MAX)
			ret[n++] = (struct ret){(b->visit[v].end + b->n_ops - c->calm) % b->n_ops, 0, v};
	qsort(ret, n, sizeof *ret, by_need);
	return n;
}

/* The earliest start of each. Those needed first take room first, so the circle is cut at the calmest op: what
 * would reach back over it is extended only when all others have their place. */
static void place(struct ret *ret, uint32_t n, const struct um_blocks *b, struct um_choice *c, int32_t limit,
                  const int32_t *not_before)
{
	for (int lap = 0; lap < 2; lap++) {
		for (uint32_t i = 0; i < n; i++) {
			const struct um_visit *x = &b->visit[ret[i].visit];
			/* Not before the iteration that needs it if the tensor was away all through the one before. */
			int64_t base = x->end - x->end % b->n_ops, at;
			int64_t from = x->op + 1 > base - b->n_ops ? x->op + 1 : base;
			int64_t cut = x->end - ret[i].need, to = lap ? cut : x->end;

			if (not_before && from < not_before[ret[i].visit])
				from = not_before[ret[i].visit];
			if (lap && (from >= cut || ret[i].after > cut - 1 - base))
				continue;
			if (!lap && from < cut)
				from = cut;
			at = um_load_last(&c->load, from, to, limit);
			um_load_add(&c->load, at + 1, to, 1);
			ret[i].after = (int32_t)(at - base);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		ret[i].need = b->visit[ret[i].visit].end % b->n_ops;
	qsort(ret, n, sizeof *ret, by_need);
}

static void merge(struct um_returns *r, const struct ret *ret, uint32_t n, const struct um_blocks *b, uint32_t most)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct um_visit *x = &b->visit[ret[i].visit];
		struct um_move *m = r->n_moves ? &r->move[r->n_moves - 1] : NULL;

		r->back[i] = ret[i].visit;
		if (m && m->need == ret[i].need && m->after == ret[i].after && m->n < most &&
		    b->visit[ret[i - 1].visit].block + 1 == x->block) {
			m->n++;
			m->bytes += x->live;
		} else {
			r->move[r->n_moves++] = (struct um_move){ret[i].need, ret[i].after, i, 1, x->live};
		}
	}
	r->n_back = n;
}

int um_returns_build(struct um_returns *r, const struct um_blocks *b, struct um_choice *c, int32_t limit, uint32_t most,
                     const int32_t *not_before)
{
	struct ret *ret = malloc((c->n_away + 1ull) * sizeof *ret);
	uint32_t n;

	memset(r, 0, sizeof *r);
	r->back = malloc((c->n_away + 1ull) * sizeof *r->back);
	r->move = malloc((c->n_away + 1ull) * sizeof *r->move);
	if (!ret || !r->back || !r->move) {
		free(ret);
		um_returns_fini(r);
		return -ENOMEM;
	}
	n = list(ret, b, c);
	place(ret, n, b, c, limit, not_before);
	merge(r, ret, n, b, most);
	free(ret);
	return 0;
}

void um_returns_fini(struct um_returns *r)
{
	free(r->back);
	free(r->move);
	memset(r, 0, sizeof *r);
}
