/* SPDX-License-Identifier: Apache-2.0
 *
 * hints.c - writes and orders the hints of a plan
 *
 * Evictions are sorted by op; returns and arrivals come in the engine's order, which becomes the order of the file:
 * each is issued at the earliest op that preserves it. Hints issued in the previous iteration go to the file's end,
 * with the slot that the tensor has there. Then both are merged by `at`.
 */
#include "plan/hints.h"

struct piece {
	uint32_t block, slot;
	uint32_t bytes;
	uint64_t off;
	int32_t at, after;
	enum um_hint_kind kind;
};

/* A part that returns after a gap, by the touch before it. */
struct back {
	uint32_t touch, next; /* next: UINT32_MAX, none */
};

struct writer {
	struct um_plan *out;
	const struct um_blocks *b;
	const struct um_choice *c;
	const struct um_returns *r;
	uint32_t *back; /* by visit after which a block is off the device: the last of its parts that return, UINT32_MAX
			   none */
	UM_VEC(struct back) backs;
	UM_VEC(struct piece) evictions, arriving; /* arriving: one move at a time */
	UM_VEC(struct um_hint) mends; /* of parts that the CPU has used in blocks that stay */
	UM_VEC(struct um_hint) fetch[2]; /* prefetches issued in the iteration of the need, and in the one before */
	uint64_t merge;
};

/* --- evictions ---------------------------------------------------------------------------------------------------- */

/* 1: the next visit is an access of the CPU, or of another tensor in the same place. */
static int must_leave(const struct um_blocks *b, uint32_t v)
{
	return b->visit[v].changes || (b->after[v] != UINT32_MAX && b->visit[b->after[v]].on_cpu);
}

/* After visit v, before the op after it. After the last op that is in the next iteration, with the slot that the tensor
 * has there. No hint if the next op visits the block, unless that is an access of the CPU, or of another tensor: after
 * a paged op the block would only return. No hint after an access of the CPU either: the block is on the host. */
static int add_eviction(struct writer *w, uint32_t t, uint32_t v)
{
	const struct um_touch *x = &w->b->touch[t];
	const struct um_part *p = &w->b->part[x->part];
	int32_t op = w->b->visit[v].op;
	struct piece e = {p->block, p->slot, p->bytes, p->off, op + 1, op, UM_HINT_EVICT};

	if (w->b->visit[v].on_cpu || (w->b->visit[v].held <= op + 1 && !must_leave(w->b, v)))
		return 0;
	if (x->liveness != UM_LIVENESS_NEEDED)
		e.kind = UM_HINT_DISCARD;
	if (op + 1 == w->b->n_ops) {
		e.at = 0;
		e.after = -1;
		e.slot = w->b->successor[p->slot];
	}
	return um_vec_push(&w->evictions, e);
}

/* After visit v, with a return. */
static int leave_for_now(struct writer *w, uint32_t t, uint32_t v)
{
	if (add_eviction(w, t, v) || um_vec_push(&w->backs, ((struct back){t, w->back[v]})))
		return -ENOMEM;
	w->back[v] = (uint32_t)w->backs.n - 1;
	return 0;
}

/* All gaps after a touch in which its part is off the device (at least one): it is evicted in each, unless it is dead
 * after the first. */
static int add_evictions(struct writer *w, uint32_t t)
{
	const struct um_blocks *b = w->b;
	const struct um_touch *x = &b->touch[t];
	const struct um_block *bl = &b->block[b->part[x->part].block];
	uint32_t v = um_choice_first(w->c, t);
	int32_t wrap = b->visit[v].op < x->op ? b->n_ops : 0;

	if (x->liveness != UM_LIVENESS_NEEDED) {
		/* freed at once: no hint is needed */
		if (x->liveness == UM_LIVENESS_FREED && x->until <= b->visit[v].op + wrap + 1)
			return 0;
		return add_eviction(w, t, v);
	}
	do {
		if (leave_for_now(w, t, v))
			return -ENOMEM;
		v = v + 1 < bl[1].first_visit ? w->c->next[v + 1] : UINT32_MAX;
		if (v == UINT32_MAX && !wrap && x->until > b->n_ops && !bl->rotates) {
			v = w->c->next[bl->first_visit];
			wrap = b->n_ops;
		}
	} while (v != UINT32_MAX && b->visit[v].op + wrap < x->until);
	return 0;
}

/* By time, then by block, which is the order of the timeline. */
static int by_departure(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind > y->kind ? -1 : 1; /* discards first: they make room at once */
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Sorts pieces that are nearly always in order. */
static void sort_pieces(struct piece *p, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (by_departure(&p[i - 1], &p[i]) <= 0)
			continue;
		qsort(p, n, sizeof *p, by_departure);
		return;
	}
}

/* Pieces were found block by block: counting sort by op and kind, then a sort within a block. */
static int sort_evictions(struct writer *w)
{
	uint32_t *at = calloc(2ull * w->b->n_ops + 1, sizeof *at);
	struct piece *sorted = malloc((w->evictions.n + 1) * sizeof *sorted);

	if (!at || !sorted) {
		free(at);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < w->evictions.n; i++)
		at[2 * w->evictions.at[i].at + (w->evictions.at[i].kind == UM_HINT_EVICT) + 1]++;
	for (int32_t i = 0; i < 2 * w->b->n_ops; i++)
		at[i + 1] += at[i];
	for (size_t i = 0; i < w->evictions.n; i++)
		sorted[at[2 * w->evictions.at[i].at + (w->evictions.at[i].kind == UM_HINT_EVICT)]++] =
			w->evictions.at[i];
	for (size_t from = 0, to; from < w->evictions.n; from = to) {
		const struct piece *x = &sorted[from];

		for (to = from + 1; to < w->evictions.n && sorted[to].at == x->at && sorted[to].kind == x->kind &&
				    sorted[to].block == x->block;
		     to++)
			;
		sort_pieces(sorted + from, to - from);
	}
	free(at);
	free(w->evictions.at);
	w->evictions.at = sorted;
	w->evictions.cap = w->evictions.n + 1;
	return 0;
}

static int find_departures(struct writer *w)
{
	const struct um_blocks *b = w->b;

	w->back = malloc((b->n_visits + 1ull) * sizeof *w->back);
	if (!w->back)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->c->n_evicted; i++)
		w->back[w->c->gone[i]] = UINT32_MAX;
	for (uint32_t i = 0; i < w->c->n_left; i++)
		if (add_evictions(w, w->c->left[i]))
			return -ENOMEM;
	return sort_evictions(w);
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

static struct um_hint hint_of(const struct piece *p)
{
	return (struct um_hint){.kind = p->kind,
				.at = p->at,
				.after = p->after,
				.slot = p->slot,
				.off = p->off,
				.bytes = p->bytes,
				.copy = p->kind == UM_HINT_EVICT};
}

static int joins(const struct um_hint *h, const struct piece *p, uint64_t most)
{
	return h->kind == p->kind && h->at == p->at && h->after == p->after && h->slot == p->slot &&
	       h->off + h->bytes == p->off && h->bytes + p->bytes <= most;
}

/* The engine's order is kept: pieces of one move are sorted among themselves only. */
static int flush_arrivals(struct writer *w, int before)
{
	size_t first = w->fetch[before].n;

	sort_pieces(w->arriving.at, w->arriving.n);
	for (size_t i = 0; i < w->arriving.n; i++) {
		size_t n = w->fetch[before].n;

		if (n > first && joins(&w->fetch[before].at[n - 1], &w->arriving.at[i], UINT64_MAX))
			w->fetch[before].at[n - 1].bytes += w->arriving.at[i].bytes;
		else if (um_vec_push(&w->fetch[before], hint_of(&w->arriving.at[i])))
			return -ENOMEM;
	}
	um_vec_clear(&w->arriving);
	return 0;
}

static int write_return(struct writer *w, const struct um_move *m, int32_t at)
{
	int before = at < 0;
	int32_t wrap = before ? w->b->n_ops : 0;

	for (uint32_t i = m->first; i < m->first + m->n; i++) {
		for (uint32_t k = w->back[w->r->back[i]]; k != UINT32_MAX; k = w->backs.at[k].next) {
			uint32_t touch = w->backs.at[k].touch, to = w->b->to[touch];
			const struct um_part *p = &w->b->part[w->b->touch[before ? touch : to].part];
			struct piece e = {p->block,  p->slot,	      p->bytes,	       p->off,
					  at + wrap, m->after + wrap, UM_HINT_PREFETCH};

			/* before the iteration's end, although it could start after it */
			if (!before && e.after < -1)
				e.after = -1;
			if (um_vec_push(&w->arriving, e))
				return -ENOMEM;
		}
	}
	return flush_arrivals(w, before);
}

static int write_arrivals(struct writer *w, const struct um_arrivals *a, const struct um_move *m)
{
	for (uint32_t k = a->first[m->need]; k < a->first[m->need + 1]; k++) {
		const struct um_part *p = &w->b->part[w->b->touch[a->touch[k]].part];
		const struct um_slot *s = &w->out->sched.slots.at[p->slot];
		struct piece e = {p->block,	   p->slot, p->bytes, p->off, m->need, m->after < -1 ? -1 : m->after,
				  UM_HINT_PREFETCH};

		/* Not while the previous iteration's tensor has the same name. */
		if (s->birth >= 0 && s->death <= s->birth && m->need >= s->birth && e.after < s->death - 1)
			e.after = s->death - 1;
		if (um_vec_push(&w->arriving, e))
			return -ENOMEM;
	}
	return flush_arrivals(w, 0);
}

static int write_moves(struct writer *w, const struct um_arrivals *a, const struct um_timeline *t)
{
	int32_t at = -w->b->n_ops;
	int err = 0;

	for (size_t i = 0; !err && i < t->moves.n; i++) {
		const struct um_move *m = &t->moves.at[i];

		if (m->n) {
			if (at < m->after + 1)
				at = m->after + 1;
			err = write_return(w, m, at < m->need ? at : m->need);
		} else {
			if (at < m->need)
				at = m->need;
			err = write_arrivals(w, a, m);
		}
	}
	return err;
}

static int add_mend(struct writer *w, const struct um_touch *x)
{
	const struct um_part *p = &w->b->part[x->part];
	int end = x->op + 1 == w->b->n_ops;

	if (end && w->b->successor[p->slot] == UM_NO_SLOT)
		return 0;
	return um_vec_push(&w->mends, ((struct um_hint){.kind = UM_HINT_PREFETCH,
							.at = end ? 0 : x->op + 1,
							.after = end ? -1 : x->op,
							.slot = end ? w->b->successor[p->slot] : p->slot,
							.off = p->off,
							.bytes = p->bytes,
							.copy = 1}));
}

static int by_at(const void *a, const void *b)
{
	const struct um_hint *x = a, *y = b;

	return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->slot != y->slot ? (x->slot < y->slot ? -1 : 1) : 0;
}

/* After an access of the CPU: what an op uses next of that returns to its block. */
static int write_mends(struct writer *w)
{
	const struct um_blocks *b = w->b;

	for (uint32_t v = 0; v < b->n_visits; v++)
		for (uint32_t t = b->visit[v].first_touch;
		     b->visit[v].in_part && !w->c->evicted[v] && t < b->visit[v + 1].first_touch; t++)
			if (b->to[t] != UINT32_MAX && !b->visit[b->touch[b->to[t]].visit].in_part &&
			    add_mend(w, &b->touch[t]))
				return -ENOMEM;
	if (w->mends.n)
		qsort(w->mends.at, w->mends.n, sizeof *w->mends.at, by_at);
	return 0;
}

/* Advice for ranges that no touch covers because they are host-resident. */
static int write_advice(struct writer *w)
{
	static const int both[] = {UM_ADVICE_PREFERRED, UM_ADVICE_ACCESSED_BY};

	for (uint32_t s = 0; w->b->host_resident && s < w->out->sched.slots.n; s++) {
		const struct um_host_resident *range = &w->b->host_resident[s];

		for (int i = 0; range->bytes && i < 2; i++)
			if (um_vec_push(&w->out->hints, ((struct um_hint){.kind = UM_HINT_ADVISE,
									  .after = -1,
									  .slot = s,
									  .off = range->off,
									  .bytes = range->bytes,
									  .copy = 1,
									  .advice = (int16_t)both[i]})))
				return -ENOMEM;
	}
	return 0;
}

/* Evictions, prefetches for this iteration, those for the next one: merged by `at`, in that order where it is equal. */
static int merge_all(struct writer *w)
{
	struct um_plan *out = w->out;
	size_t i = 0, j = 0, k = 0, m = 0, total;

	um_vec_clear(&out->hints);
	if (write_advice(w) || write_mends(w))
		return -ENOMEM;
	total = w->evictions.n + w->mends.n + w->fetch[0].n + w->fetch[1].n;
	if (um_vec_reserve(&out->hints, total))
		return -ENOMEM;
	while (i < w->evictions.n || m < w->mends.n || j < w->fetch[0].n || k < w->fetch[1].n) {
		int32_t a = i < w->evictions.n ? w->evictions.at[i].at : INT32_MAX;
		int32_t b = j < w->fetch[0].n ? w->fetch[0].at[j].at : INT32_MAX;
		int32_t c = k < w->fetch[1].n ? w->fetch[1].at[k].at : INT32_MAX;
		int32_t d = m < w->mends.n ? w->mends.at[m].at : INT32_MAX;
		struct um_hint *last = out->hints.n ? &out->hints.at[out->hints.n - 1] : NULL;

		if (a <= b && a <= c && a <= d) {
			if (last && joins(last, &w->evictions.at[i], w->merge))
				last->bytes += w->evictions.at[i].bytes;
			else
				out->hints.at[out->hints.n++] = hint_of(&w->evictions.at[i]);
			i++;
		} else if (d <= b && d <= c) {
			out->hints.at[out->hints.n++] = w->mends.at[m++];
		} else if (b <= c) {
			out->hints.at[out->hints.n++] = w->fetch[0].at[j++];
		} else {
			out->hints.at[out->hints.n++] = w->fetch[1].at[k++];
		}
	}
	return 0;
}

/* Frees data that the merge does not need. */
static void drop_returns(struct writer *w)
{
	free(w->back);
	w->back = NULL;
	um_vec_fini(&w->backs);
	um_vec_fini(&w->arriving);
}

int um_hints_build(struct um_plan *out, const struct um_blocks *b, const struct um_choice *c,
		   const struct um_arrivals *a, const struct um_returns *r, const struct um_timeline *t, uint32_t merge)
{
	struct writer w = {.out = out, .b = b, .c = c, .r = r, .merge = merge * UM_BLOCK_BYTES};
	int err = find_departures(&w);

	if (!err)
		err = write_moves(&w, a, t);
	drop_returns(&w);
	if (!err)
		err = merge_all(&w);
	um_vec_fini(&w.evictions);
	um_vec_fini(&w.mends);
	um_vec_fini(&w.fetch[1]);
	um_vec_fini(&w.fetch[0]);
	return err;
}
