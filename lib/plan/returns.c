/* SPDX-License-Identifier: Apache-2.0
 *
 * returns.c - places returns into the free room before their needs
 */
#include "plan/returns.h"

struct ret {
	int32_t need, after;
	uint32_t visit;
};

/* Among returns needed by the same op. */
static int by_start(const void *a, const void *b)
{
	const struct ret *x = a, *y = b;

	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return x->visit < y->visit ? -1 : x->visit > y->visit;
}

/* Sorts returns in order of need from some op on, then of visits: needs before that op come first, equal needs are
 * ordered by start. */
static void sort(struct ret *ret, struct ret *scratch, uint32_t n)
{
	uint32_t cut = 0;

	while (cut + 1 < n && ret[cut].need <= ret[cut + 1].need)
		cut++;
	cut = cut + 1 < n ? cut + 1 : 0;
	memcpy(scratch, ret, cut * sizeof *ret);
	memmove(ret, ret + cut, (n - cut) * sizeof *ret);
	memcpy(ret + (n - cut), scratch, cut * sizeof *ret);
	for (uint32_t from = 0, to; from < n; from = to) {
		int sorted = 1;

		for (to = from + 1; to < n && ret[to].need == ret[from].need; to++)
			sorted &= by_start(&ret[to - 1], &ret[to]) < 0;
		if (!sorted)
			qsort(ret + from, to - from, sizeof *ret, by_start);
	}
}

/* Finds the earliest start of each return. Returns that are needed first take room first, so the circle is cut at the
 * op with minimum load: returns that would cross it are extended after all others are placed. */
static void place(struct ret *ret, uint32_t n, const struct um_blocks *b, struct um_choice *c, int32_t limit,
		  const int32_t *not_before)
{
	for (int iteration = 0; iteration < 2; iteration++) {
		for (uint32_t i = 0; i < n; i++) {
			const struct um_visit *x = &b->visit[ret[i].visit];
			/* not before the iteration that needs it if the tensor was off the device all through the
			 * previous one */
			int64_t base = x->end - x->end % b->n_ops, at;
			int64_t from = x->op + 1 > base - b->n_ops ? x->op + 1 : base;
			int64_t cut = x->end - ret[i].need, to = iteration ? cut : x->end;

			if (from <= x->paged_at)
				from = (int64_t)x->paged_at + 1;
			if (not_before && from < not_before[ret[i].visit])
				from = not_before[ret[i].visit];
			if (iteration && (from >= cut || ret[i].after > cut - 1 - base))
				continue;
			if (!iteration && from < cut)
				from = cut;
			at = um_load_last(&c->load, from, to, limit);
			um_load_add(&c->load, at + 1, to, 1);
			ret[i].after = (int32_t)(at - base);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		ret[i].need = b->visit[ret[i].visit].end % b->n_ops;
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
	struct ret *ret = malloc((2ull * c->n_evicted + 1) * sizeof *ret); /* and scratch for sorting */
	uint32_t n;

	memset(r, 0, sizeof *r);
	r->back = malloc((c->n_evicted + 1ull) * sizeof *r->back);
	r->move = malloc((c->n_evicted + 1ull) * sizeof *r->move);
	if (!ret || !r->back || !r->move || um_choice_list_returns(c, b, c->min_load_op, r->back, &n)) {
		free(ret);
		um_returns_fini(r);
		return -ENOMEM;
	}
	/* `need` counts from the op with minimum load until all have their place */
	for (uint32_t i = 0; i < n; i++) {
		int32_t need = (b->visit[r->back[i]].end + b->n_ops - c->min_load_op) % b->n_ops;

		ret[i] = (struct ret){need, 0, r->back[i]};
	}
	place(ret, n, b, c, limit, not_before);
	sort(ret, ret + c->n_evicted, n);
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
