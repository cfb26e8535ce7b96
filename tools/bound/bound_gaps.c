/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the gaps in which bytes may be evicted from a schedule.
 *
 * Only certain costs count. Content that was never written, declared dead, overwritten as a whole next or not used
 * again needs no copy.
 */
#include "bound/bound_again.h"

struct builder {
	struct bound_work *w;
	const struct bound_request *r;
	struct bound_history h;
};

enum content { CONTENT_NONE, CONTENT_STALE, CONTENT_CLEAN };

/* The driver copies written content out in each gap in which it is evicted. */
static int add_gap_alone(struct builder *b, const struct bound_chain *like)
{
	struct bound_chain c = *like;

	c.first = (uint32_t)b->w->gaps.n - 1;
	c.n = 1;
	c.written = b->w->gaps.at[c.first].from;
	return um_vec_push(&b->w->chains, c);
}

/* Walks the gaps after touch `k`, which leaves such content, until it is lost, overwritten or modified. */
static int add_chain(struct builder *b, uint32_t k, enum content what)
{
	struct bound_touch *touch = b->h.touch;
	struct bound_work *w = b->w;
	struct bound_chain c = {.bytes = b->h.atoms.bytes[touch[k].atom], .first = (uint32_t)w->gaps.n, .maker = k};
	int64_t at = touch[k].op;
	int alone = b->r->copies && what == CONTENT_STALE;

	c.again.own = BOUND_NEVER;
	c.written = what == CONTENT_STALE ? 2 * at + 1 : BOUND_CLEAN;
	touch[k].seen = 1;
	for (;;) {
		const struct bound_touch *t = &touch[k];

		if (t->next == BOUND_NO_TOUCH || !t->kept || !touch[t->next].reads)
			break;
		if (what != CONTENT_NONE &&
		    um_vec_push(&w->gaps, ((struct bound_gap){2 * at + 1, 2 * (at + t->apart)})))
			return -ENOMEM;
		if (alone && add_gap_alone(b, &c))
			return -ENOMEM;
		at += t->apart;
		k = t->next;
		/* Stops after one round of read-only content. */
		if (touch[k].writes || touch[k].seen)
			break;
		touch[k].seen = 1;
	}
	c.n = alone ? 0 : (uint32_t)w->gaps.n - c.first;
	return c.n ? um_vec_push(&w->chains, c) : 0;
}

/* Content that is on the host at the begin of each iteration and found by the first touch. */
static int from_host(const struct bound_history *h, uint32_t k)
{
	uint32_t atom = h->touch[k].atom, slot = h->slot_of[atom];
	const struct um_slot *t = &h->s->slots.at[slot];

	return k == h->first[atom] && um_slot_alive_first(t) && t->carry == UM_NO_SLOT &&
	       !(t->flags & UM_SLOT_TRANSIENT) && (t->death < 0 || h->touch[k].op < t->death) &&
	       !bound_dead_between(h, slot, -1, h->touch[k].op);
}

/* Content comes from a write, from the host, or, if an iteration only reads it, from the previous one. */
static int add_chains(struct builder *b)
{
	const struct bound_touch *touch = b->h.touch;
	uint32_t n = b->h.n;
	int err = 0;

	for (uint32_t k = 0; k < n && !err; k++)
		if (touch[k].writes)
			err = add_chain(b, k, CONTENT_STALE);
	for (uint32_t k = 0; k < n && !err; k++)
		if (!touch[k].seen && !touch[k].fed)
			err = add_chain(b, k, from_host(&b->h, k) ? CONTENT_CLEAN : CONTENT_NONE);
	for (uint32_t k = 0; k < n && !err; k++)
		if (!touch[k].seen)
			err = add_chain(b, k, CONTENT_CLEAN);
	return err;
}

static void find_need(struct bound_work *w)
{
	int64_t sum = 0, n = w->n_ops;

	for (size_t c = 0; c < w->chains.n; c++) {
		const struct bound_chain *x = &w->chains.at[c];

		for (uint32_t g = x->first; g < x->first + x->n; g++) {
			int64_t from = w->gaps.at[g].from / 2 + 1, to = w->gaps.at[g].to / 2, bytes = (int64_t)x->bytes;

			for (; to - from >= n; from += n)
				w->need[0] += bytes;
			if (from >= to)
				continue;
			w->need[from % n] += bytes;
			w->need[to % n] -= bytes;
			if (to % n < from % n)
				w->need[0] += bytes;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		sum += w->need[i];
		w->need[i] = sum + w->uses[i];
	}
}

static int build(struct builder *b)
{
	struct bound_work *w = b->w;
	size_t n = b->r->sched->ops.n;
	int err = bound_history_init(&b->h, b->r->sched);

	if (err)
		return err;
	w->before = calloc(n + 1, sizeof *w->before);
	w->need = calloc(n + 1, sizeof *w->need);
	w->uses = b->h.uses;
	b->h.uses = NULL;
	if (!w->before || !w->need)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		w->before[i + 1] = w->before[i] + b->r->sched->ops.at[i].ns;
	err = add_chains(b);
	if (err)
		return err;
	find_need(w);
	return b->r->recompute ? bound_again_find(w, &b->h, b->r->budget) : 0;
}

int bound_work_init(struct bound_work *w, const struct bound_request *r)
{
	struct builder b = {.w = w, .r = r};
	int err;

	memset(w, 0, sizeof *w);
	w->n_ops = (int32_t)r->sched->ops.n;
	err = build(&b);
	bound_history_fini(&b.h);
	if (err)
		bound_work_fini(w);
	return err;
}

void bound_work_fini(struct bound_work *w)
{
	free(w->before);
	free(w->need);
	free(w->uses);
	um_vec_fini(&w->gaps);
	um_vec_fini(&w->chains);
	memset(w, 0, sizeof *w);
}
