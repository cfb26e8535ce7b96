/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/relaunches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the launches so far did to a slot. */
struct history {
	uint32_t writers; /* launches of the program that wrote it */
	uint32_t writer; /* 1 + the last of them */
	uint32_t used; /* 1 + the last launch that used it */
};

/* Is the slot's tensor the same from launch `from` to launch `to`, and alive? */
static int is_alive(const struct um_slot *t, int32_t from, int32_t to)
{
	if (t->flags & (UM_SLOT_SCRATCH | UM_SLOT_UNMANAGED))
		return 0;
	if (t->birth < 0)
		return t->death < 0 || t->death > to;
	return t->birth <= from && (t->death < 0 || t->death > to || t->death <= t->birth);
}

/* May relaunch `at` of launch `own` use this, now and at any time since? */
static int may_use(const struct um_schedule *s, const struct um_sched_use *u, const struct history *h, uint32_t own,
		   uint32_t at)
{
	const struct um_slot *t = &s->slots.at[u->slot];

	if (!is_alive(t, (int32_t)own, (int32_t)at))
		return 0;
	if (u->access == UM_READ)
		return h->writer <= own;
	return u->access == UM_WRITE && !u->off && u->bytes == t->bytes && h->writers == 1 && h->writer == own + 1;
}

static int add_relaunch(struct um_relaunches *r, const struct um_schedule *s, struct history *history, uint32_t own,
			uint32_t at)
{
	const struct um_sched_op *op = &s->ops.at[at];

	for (uint32_t k = op->first_use; k < op->first_use + op->n_uses; k++) {
		const struct um_sched_use *u = &s->uses.at[k];
		struct history *h = &history[u->slot];

		if (!may_use(s, u, h, own, at))
			return -EINVAL;
		if (u->access == UM_WRITE &&
		    um_vec_push(&r->gaps, ((struct um_relaunch_gap){u->slot, h->used - 1, at})))
			return -ENOMEM;
		r->last.at[u->slot] = at + 1;
	}
	return 0;
}

static void note_op(const struct um_schedule *s, struct history *history, uint32_t at, int again)
{
	const struct um_sched_op *op = &s->ops.at[at];

	for (uint32_t k = op->first_use; k < op->first_use + op->n_uses; k++) {
		const struct um_sched_use *u = &s->uses.at[k];
		struct history *h = &history[u->slot];

		h->used = at + 1;
		if (!again && u->access & UM_WRITE) {
			h->writers += h->writer != at + 1;
			h->writer = at + 1;
		}
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct um_relaunch_gap *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* By op of the program: its launch. NULL: out of memory. */
static uint32_t *launches_of(const struct um_schedule *s, const uint32_t *again)
{
	uint32_t *own = malloc((s->ops.n + 1) * sizeof *own), n = 0;

	for (uint32_t i = 0; own && i < s->ops.n; i++)
		if (!again[i])
			own[n++] = i;
	return own;
}

int um_relaunches_build(struct um_relaunches *r, const struct um_schedule *s, const uint32_t *again)
{
	struct history *history = calloc(s->slots.n + 1, sizeof *history);
	uint32_t *own = launches_of(s, again);
	int err =
		history && own && !um_vec_reserve(&r->again, s->ops.n + 1) && !um_vec_reserve(&r->last, s->slots.n + 1)
			? 0
			: -ENOMEM;

	if (!err)
		memset(r->last.at, 0, (s->slots.n + 1) * sizeof *r->last.at);
	for (uint32_t i = 0; !err && i < s->ops.n; i++) {
		if (s->ops.at[i].stream != s->ops.at[0].stream || s->ops.at[i].stream == UM_STREAM_CPU ||
		    s->ops.at[i].paged)
			err = -EINVAL;
		if (!err && again[i])
			err = add_relaunch(r, s, history, own[again[i] - 1], i);
		note_op(s, history, i, again[i] != 0);
		r->again.at[i] = again[i];
	}
	if (!err && um_vec_reserve(&r->open, r->gaps.n + 1))
		err = -ENOMEM;
	free(history);
	free(own);
	if (err) {
		um_relaunches_fini(r);
		return err;
	}
	r->again.n = s->ops.n;
	r->last.n = s->slots.n;
	if (r->gaps.n)
		qsort(r->gaps.at, r->gaps.n, sizeof *r->gaps.at, by_begin);
	return 0;
}

void um_relaunches_fini(struct um_relaunches *r)
{
	um_vec_fini(&r->again);
	um_vec_fini(&r->gaps);
	um_vec_fini(&r->last);
	um_vec_fini(&r->open);
	um_vec_fini(&r->uses);
	memset(r, 0, sizeof *r);
}

uint32_t um_relaunches_first(const struct um_relaunches *r)
{
	uint32_t first = r->gaps.at[r->open.at[0]].to;

	for (size_t i = 1; i < r->open.n; i++) {
		uint32_t to = r->gaps.at[r->open.at[i]].to;

		first = r->again.at[to] < r->again.at[first] ? to : first;
	}
	return first;
}
