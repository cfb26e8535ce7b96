/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/relaunches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the launches so far did to a slot. */
struct history {
	uint32_t base; /* 1 + the launch of the program that overwrote it last as a whole; 0: none */
	uint32_t writers; /* launches of the program that wrote it since, with that one */
	uint32_t writer; /* 1 + the last of them */
	uint32_t used; /* 1 + the last launch that used it */
	uint32_t again, made; /* number of relaunches of the burst at hand that wrote it; 1 + the last of them */
};

struct build {
	struct um_relaunches *r;
	const struct um_schedule *s;
	struct history *history; /* by slot */
	uint32_t *own; /* by op of the program: its launch */
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

static int is_whole(const struct um_schedule *s, const struct um_sched_use *u)
{
	return u->access == UM_WRITE && !u->off && u->bytes == s->slots.at[u->slot].bytes;
}

/* Of two groups one. The first relaunch of a group is before the others. */
static void join(uint32_t *group, uint32_t a, uint32_t b)
{
	uint32_t to = group[a] < group[b] ? group[a] : group[b], from = group[a] < group[b] ? group[b] : group[a];

	for (uint32_t i = from - 1; i <= a || i <= b; i++)
		group[i] = group[i] == from ? to : group[i];
}

/* Relaunch `at` of launch `own` uses this. */
static int add_use(struct build *x, const struct um_sched_use *u, uint32_t own, uint32_t at)
{
	struct history *h = &x->history[u->slot];

	if (!is_alive(&x->s->slots.at[u->slot], (int32_t)own, (int32_t)at))
		return -EINVAL;
	if (u->access == UM_READ)
		return h->writer <= own ? 0 : -EINVAL;
	if (!h->again && h->base != own + 1)
		return -EINVAL;
	if (h->again)
		join(x->r->group.at, h->made - 1, at);
	h->again += h->made != at + 1;
	h->made = at + 1;
	return 0;
}

static const struct um_sched_use *uses_of(const struct build *x, uint32_t at)
{
	return x->s->uses.at + x->s->ops.at[at].first_use;
}

/* The gaps that relaunch `at` of a burst, which ends at `end`, begins to end. */
static int add_gaps(struct build *x, uint32_t at, uint32_t end)
{
	struct um_relaunches *r = x->r;
	const struct um_sched_use *u = uses_of(x, at);
	uint32_t own = x->own[r->again.at[at] - 1], to = end - 1;

	while (r->group.at[to] != r->group.at[at])
		to--;
	for (uint32_t k = 0; k < x->s->ops.at[at].n_uses; k++, u++) {
		struct history *h = &x->history[u->slot];
		uint32_t from = x->own[r->again.at[to] - 1];

		r->last.at[u->slot] = at + 1;
		if (u->access == UM_READ)
			continue;
		if (h->again != h->writers)
			return -EINVAL;
		from = h->used - 1 > from ? h->used - 1 : from;
		if (h->base == own + 1 &&
		    um_vec_push(&r->gaps, ((struct um_relaunch_gap){u->slot, from, at, h->made - 1, to})))
			return -ENOMEM;
	}
	return 0;
}

/* Launches [at, end) are relaunches. */
static int add_burst(struct build *x, uint32_t at, uint32_t end)
{
	const uint32_t *again = x->r->again.at;
	int err = 0;

	for (uint32_t i = at; i < end && !err; i++) {
		const struct um_sched_use *u = uses_of(x, i);

		x->r->group.at[i] = i + 1;
		if (i > at && again[i] <= again[i - 1])
			err = -EINVAL;
		for (uint32_t k = 0; k < x->s->ops.at[i].n_uses && !err; k++)
			err = add_use(x, &u[k], x->own[again[i] - 1], i);
	}
	for (uint32_t i = at; i < end && !err; i++)
		err = add_gaps(x, i, end);
	return err;
}

static void note_op(struct build *x, uint32_t at)
{
	const struct um_sched_use *u = uses_of(x, at);

	for (uint32_t k = 0; k < x->s->ops.at[at].n_uses; k++, u++) {
		struct history *h = &x->history[u->slot];

		h->used = at + 1;
		h->again = h->made = 0;
		if (x->r->again.at[at] || u->access == UM_READ)
			continue;
		if (is_whole(x->s, u)) {
			h->base = at + 1;
			h->writers = 1;
		} else {
			h->writers += h->writer != at + 1;
		}
		h->writer = at + 1;
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

/* All launches, burst by burst. */
static int add_all(struct build *x)
{
	const struct um_schedule *s = x->s;
	uint32_t end = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < s->ops.n; i++) {
		if (s->ops.at[i].stream != s->ops.at[0].stream || s->ops.at[i].stream == UM_STREAM_CPU ||
		    s->ops.at[i].paged)
			err = -EINVAL;
		if (!err && i >= end) {
			for (end = i; end < s->ops.n && x->r->again.at[end]; end++)
				;
			err = add_burst(x, i, end);
			end += end == i;
		}
		note_op(x, i);
	}
	return err;
}

int um_relaunches_build(struct um_relaunches *r, const struct um_schedule *s, const uint32_t *again)
{
	struct build x = {r, s, calloc(s->slots.n + 1, sizeof *x.history), launches_of(s, again)};
	int err = x.history && x.own && !um_vec_reserve(&r->again, s->ops.n + 1) &&
				  !um_vec_reserve(&r->group, s->ops.n + 1) && !um_vec_reserve(&r->last, s->slots.n + 1)
			  ? 0
			  : -ENOMEM;

	if (!err) {
		memset(r->last.at, 0, (s->slots.n + 1) * sizeof *r->last.at);
		memset(r->group.at, 0, (s->ops.n + 1) * sizeof *r->group.at);
		memcpy(r->again.at, again, s->ops.n * sizeof *again);
		err = add_all(&x);
	}
	if (!err && um_vec_reserve(&r->open, r->gaps.n + 1))
		err = -ENOMEM;
	free(x.history);
	free(x.own);
	if (err) {
		um_relaunches_fini(r);
		return err;
	}
	r->again.n = r->group.n = s->ops.n;
	r->last.n = s->slots.n;
	if (r->gaps.n)
		qsort(r->gaps.at, r->gaps.n, sizeof *r->gaps.at, by_begin);
	return 0;
}

void um_relaunches_fini(struct um_relaunches *r)
{
	um_vec_fini(&r->again);
	um_vec_fini(&r->group);
	um_vec_fini(&r->gaps);
	um_vec_fini(&r->last);
	um_vec_fini(&r->open);
	um_vec_fini(&r->uses);
	memset(r, 0, sizeof *r);
}

uint32_t um_relaunches_next(const struct um_relaunches *r, uint32_t done)
{
	uint32_t next = UINT32_MAX;

	for (size_t i = 0; i < r->open.n; i++) {
		uint32_t to = r->gaps.at[r->open.at[i]].to, group = r->group.at[to];

		for (uint32_t k = group - 1; k <= to; k++)
			if (r->group.at[k] == group && r->again.at[k] > done &&
			    (next == UINT32_MAX || r->again.at[k] < r->again.at[next]))
				next = k;
	}
	return next;
}
