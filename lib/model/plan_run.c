/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run.c - steps through a plan by umplan's definition
 *
 * Whenever something ends, everything that can start is started: evictions, prefetches, then the op. A prefetch at the
 * head of its queue without room blocks the ones after it (first in, first out), as the format defines.
 */
#include "model/plan_run_state.h"

#include <inttypes.h>

/* The hint at an engine's head: the slot that has its tensor now, and its atoms. */
static struct um_atom_range locate(const struct um_plan_run *r, const struct um_plan_engine *e, uint32_t *slot)
{
	uint32_t h = e->queue[e->head], s = r->plan->hints.at[h].slot;
	struct um_atom_range a = r->atoms.hint[h];
	uint32_t base = r->atoms.first[s];

	for (uint64_t i = e->iter; i < r->iter && r->successor[s] != UM_NO_SLOT; i++)
		s = r->successor[s];
	*slot = s;
	a.lo = a.lo - base + r->atoms.first[s];
	a.hi = a.hi - base + r->atoms.first[s];
	return a;
}

/* 1: the tensor of this hint has been freed. Follows its renamings. */
static int is_freed(const struct um_plan_run *r, const struct um_plan_engine *e)
{
	uint32_t h = e->queue[e->head], s = r->plan->hints.at[h].slot;
	int32_t n = (int32_t)r->plan->sched.ops.n;

	if (e->iter == r->iter || r->until[h] != INT32_MAX)
		return e->iter != r->iter || r->pos >= r->until[h];
	for (uint64_t i = e->iter + 1;; i++) {
		const struct um_slot *t;

		s = r->successor[s];
		if (s == UM_NO_SLOT)
			return 1;
		t = um_plan_run_slot(r, s);
		if (t->death >= 0 && t->death < n)
			return r->iter > i || r->pos >= t->death;
		if (i == r->iter)
			return 0;
	}
}

/* 1: there is a hint at the head and its `after` has finished. */
static int due(const struct um_plan_run *r, const struct um_plan_engine *e)
{
	return !e->busy && e->head < e->n && (e->after < r->pos || e->iter < r->iter);
}

static void set_head(const struct um_plan_run *r, struct um_plan_engine *e, uint32_t head)
{
	e->head = head;
	e->after = head < e->n ? r->after[e->queue[head]] : INT32_MAX;
}

static void advance(const struct um_plan_run *r, struct um_plan_engine *e)
{
	e->busy = 0;
	if (e->head + 1 >= e->n && e->iter < r->iter) {
		set_head(r, e, 0);
		e->iter++;
	} else {
		set_head(r, e, e->head + 1);
	}
}

/* --- device to host ----------------------------------------------------------------------------------------------- */

/* Begins an eviction. Bytes with a current host copy are freed now, stale ones after the copy. Returns the stale
 * bytes. */
static uint64_t begin_eviction(struct um_plan_run *r, struct um_atom_range a, int copy)
{
	uint64_t stale = 0;

	for (uint32_t i = a.lo; i < a.hi; i++) {
		if (!(r->state[i] & UM_ATOM_RESIDENT))
			continue;
		if ((r->state[i] & (UM_ATOM_LIVE | UM_ATOM_FRESH)) != UM_ATOM_LIVE) {
			um_plan_run_drop(r, i);
		} else if (copy) {
			r->state[i] = (r->state[i] & (uint8_t)~UM_ATOM_RESIDENT) | UM_ATOM_LEAVING;
			stale += r->atoms.bytes[i];
		} else {
			um_plan_run_drop(r, i);
			r->state[i] = (r->state[i] & (uint8_t)~UM_ATOM_LIVE) | UM_ATOM_LOST;
			if (r->content)
				um_plan_content_drop(r, i, i + 1, 0);
		}
	}
	return stale;
}

static int start_evict(struct um_plan_run *r)
{
	struct um_plan_engine *e = &r->d2h;
	struct um_atom_range a;
	uint32_t slot;
	uint64_t stale;

	if (!due(r, e))
		return 0;
	if (is_freed(r, e)) {
		advance(r, e);
		return 1;
	}
	a = locate(r, e, &slot);
	if (r->running && r->plan->sched.ops.at[r->pos].stream != UM_STREAM_CPU && um_plan_run_op_uses(r, a))
		um_plan_run_note(r, ": slot %u is evicted while the op uses it", slot);
	um_plan_run_report(r, e->queue[e->head], slot, a);
	stale = begin_eviction(r, a, r->plan->hints.at[e->queue[e->head]].copy);
	r->tally.d2h_bytes += stale;
	if (!stale) {
		advance(r, e);
		return 1;
	}
	e->busy = 1;
	e->end = r->now + um_plan_run_copy_ns(stale, r->plan->d2h);
	e->slot = slot;
	e->lo = a.lo - r->atoms.first[slot];
	e->hi = a.hi - r->atoms.first[slot];
	return 1;
}

static void end_evict(struct um_plan_run *r)
{
	struct um_plan_engine *e = &r->d2h;
	uint32_t base = r->atoms.first[e->slot];

	for (uint32_t i = base + e->lo; i < base + e->hi; i++) {
		if (!(r->state[i] & UM_ATOM_LEAVING))
			continue;
		r->used -= r->atoms.bytes[i];
		r->state[i] &= (uint8_t)~UM_ATOM_LEAVING;
		if (r->state[i] & UM_ATOM_LIVE)
			r->state[i] |= UM_ATOM_FRESH;
	}
	advance(r, e);
}

/* --- host to device ----------------------------------------------------------------------------------------------- */

static int start_fetch(struct um_plan_run *r)
{
	struct um_plan_engine *e = &r->h2d;
	struct um_atom_range a;
	uint32_t slot;
	uint64_t room = 0, moved = 0;

	if (!due(r, e))
		return 0;
	if (is_freed(r, e)) {
		advance(r, e);
		return 1;
	}
	a = locate(r, e, &slot);
	for (uint32_t i = a.lo; i < a.hi; i++) {
		if (r->state[i] & UM_ATOM_LEAVING)
			return 0;
		if (!(r->state[i] & UM_ATOM_RESIDENT)) {
			room += r->atoms.bytes[i];
			moved += r->state[i] & UM_ATOM_LIVE ? r->atoms.bytes[i] : 0;
		}
	}
	if (room > r->plan->budget || r->used > r->plan->budget - room)
		return 0;
	um_plan_run_report(r, e->queue[e->head], slot, a);
	um_plan_run_take(r, room);
	r->tally.h2d_bytes += moved;
	for (uint32_t i = a.lo; i < a.hi; i++)
		if (!(r->state[i] & UM_ATOM_RESIDENT))
			r->state[i] |= moved ? UM_ATOM_COMING : UM_ATOM_RESIDENT;
	if (!moved) {
		advance(r, e);
		return 1;
	}
	e->busy = 1;
	e->end = r->now + um_plan_run_copy_ns(moved, r->plan->h2d);
	e->slot = slot;
	e->lo = a.lo - r->atoms.first[slot];
	e->hi = a.hi - r->atoms.first[slot];
	return 1;
}

static void end_fetch(struct um_plan_run *r)
{
	struct um_plan_engine *e = &r->h2d;
	uint32_t base = r->atoms.first[e->slot];

	for (uint32_t i = base + e->lo; i < base + e->hi; i++)
		if (r->state[i] & UM_ATOM_COMING)
			r->state[i] = (r->state[i] & (uint8_t)~UM_ATOM_COMING) | UM_ATOM_RESIDENT;
	advance(r, e);
}

/* --- the iteration ------------------------------------------------------------------------------------------------ */

/* The device has reached the point between op pos - 1 and op pos: frees, and discards that waited for it. */
static void reach_op(struct um_plan_run *r)
{
	for (uint32_t k = r->frees.first[r->pos]; k < r->frees.first[r->pos + 1]; k++) {
		uint32_t s = r->frees.item[k];

		for (uint32_t i = r->atoms.first[s]; i < r->atoms.first[s + 1]; i++) {
			um_plan_run_drop(r, i);
			r->state[i] &= UM_ATOM_LEAVING;
		}
		if (r->content)
			um_plan_content_drop(r, r->atoms.first[s], r->atoms.first[s + 1], 1);
	}
	for (uint32_t k = r->discards.first[r->pos]; k < r->discards.first[r->pos + 1]; k++) {
		uint32_t hint = r->discards.item[k];
		struct um_atom_range a = r->atoms.hint[hint];

		um_plan_run_report(r, hint, r->plan->hints.at[hint].slot, a);
		for (uint32_t i = a.lo; i < a.hi; i++) {
			um_plan_run_drop(r, i);
			if (r->state[i] & UM_ATOM_LIVE)
				r->state[i] |= UM_ATOM_LOST;
			r->state[i] &= (uint8_t) ~(UM_ATOM_LIVE | UM_ATOM_FRESH);
		}
		if (r->content)
			um_plan_content_drop(r, a.lo, a.hi, 0);
	}
}

/* Advances to the next end of an op or a copy; 0 if there is none. */
static int next_event(struct um_plan_run *r)
{
	uint64_t t = UINT64_MAX;

	if (r->running)
		t = r->op_end;
	if (r->h2d.busy && r->h2d.end < t)
		t = r->h2d.end;
	if (r->d2h.busy && r->d2h.end < t)
		t = r->d2h.end;
	if (t == UINT64_MAX)
		return 0;
	r->now = t;
	if (r->d2h.busy && r->d2h.end == t)
		end_evict(r);
	if (r->h2d.busy && r->h2d.end == t)
		end_fetch(r);
	if (r->running && r->op_end == t) {
		r->running = 0;
		if (r->plan->sched.ops.at[r->pos].paged)
			um_plan_run_forget_resident(r);
		r->pos++;
		reach_op(r);
	}
	return 1;
}

struct lag {
	uint64_t iter, left;
	uint32_t head;
};

/* State of an engine relative to the begin of the iteration. */
static struct lag lag_of(const struct um_plan_run *r, const struct um_plan_engine *e)
{
	return (struct lag){r->iter - e->iter, e->busy ? e->end - r->now : 0, e->head};
}

static int same_lag(struct lag a, struct lag b)
{
	return a.iter == b.iter && a.left == b.left && a.head == b.head;
}

void um_plan_run_iteration(struct um_plan_run *r)
{
	struct lag h2d, d2h;
	int32_t n = (int32_t)r->plan->sched.ops.n;

	memset(&r->tally, 0, sizeof r->tally);
	r->begin = r->now;
	r->tally.peak_bytes = r->used;
	memcpy(r->begun, r->state, r->atoms.n);
	if (r->content)
		um_plan_content_begin(r);
	h2d = lag_of(r, &r->h2d);
	d2h = lag_of(r, &r->d2h);
	r->pos = 0;
	reach_op(r);
	while (r->running || r->pos < n) {
		while (start_evict(r) || start_fetch(r) || (!r->running && um_plan_run_op(r)))
			;
		if (r->watch)
			r->watch->pass(r->watch->user, r);
		if (!next_event(r)) {
			um_plan_run_note(r, " waits forever:  %" PRIu64 " bytes resident of %" PRIu64, r->used,
					 r->plan->budget);
			r->tally.stuck = 1;
			return;
		}
	}
	r->tally.ns = r->now - r->begin;
	r->iter++;
	um_plan_run_rename(r);
	/* an idle engine continues with the next iteration's hints */
	for (int i = 0; i < 2; i++) {
		struct um_plan_engine *e = i ? &r->h2d : &r->d2h;

		if (e->head >= e->n && !e->busy)
			set_head(r, e, 0), e->iter = r->iter;
	}
	r->repeats = same_lag(h2d, lag_of(r, &r->h2d)) && same_lag(d2h, lag_of(r, &r->d2h)) &&
		     !memcmp(r->begun, r->state, r->atoms.n);
}
