/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run.c - steps through a plan by umplan's definition
 *
 * Whenever something ends, everything that can start is started: evictions, prefetches, then the op. A prefetch at the
 * head of its queue without room blocks the ones after it (first in, first out), as the format defines.
 */
#include "model/plan_run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const struct um_slot *slot_at(const struct um_plan_run *r, uint32_t s)
{
	return &r->plan->sched.slots.at[s];
}

static void __attribute__((format(printf, 2, 3))) note(struct um_plan_run *r, const char *fmt, ...)
{
	va_list ap;

	if (r->tally.unsound++)
		return;
	va_start(ap, fmt);
	vsnprintf(r->tally.why, sizeof r->tally.why, fmt, ap);
	va_end(ap);
}

/* Nanoseconds at `rate` bytes/s, to the nearest. */
static uint64_t copy_ns(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((double)bytes * 1e9 / (double)rate + 0.5);
}

static void take(struct um_plan_run *r, uint64_t bytes)
{
	r->used += bytes;
	if (r->used > r->tally.peak_bytes)
		r->tally.peak_bytes = r->used;
}

static void report(const struct um_plan_run *r, uint32_t hint, uint32_t slot, struct um_atom_range a)
{
	if (r->watch && r->watch->hint)
		r->watch->hint(r->watch->user, r, hint, slot, a);
}

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
	const struct um_hint *h = &r->plan->hints.at[e->queue[e->head]];
	int32_t n = (int32_t)r->plan->sched.ops.n, from = h->at;
	uint32_t s = h->slot;

	for (uint64_t i = e->iter; i <= r->iter; i++, from = -1) {
		const struct um_slot *t = slot_at(r, s);
		int older = t->birth < 0 || from < t->birth; /* alive since before this iteration */

		if (t->death >= 0 && t->death < n && (older || t->birth < t->death))
			return r->iter > i || r->pos >= t->death;
		if (i == r->iter)
			return 0;
		s = r->successor[s];
		if (s == UM_NO_SLOT)
			return 1;
	}
	return 0;
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

static int op_uses(const struct um_plan_run *r, struct um_atom_range a)
{
	const struct um_sched_op *op = &r->plan->sched.ops.at[r->pos];

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		if (r->atoms.use[u].lo < a.hi && a.lo < r->atoms.use[u].hi)
			return 1;
	return 0;
}

static void drop_atom(struct um_plan_run *r, uint32_t i)
{
	if (r->state[i] & (UM_ATOM_RESIDENT | UM_ATOM_COMING))
		r->used -= r->atoms.bytes[i];
	r->state[i] &= (uint8_t) ~(UM_ATOM_RESIDENT | UM_ATOM_COMING);
}

/* Begins an eviction. Bytes with a current host copy are freed now, stale ones after the copy. Returns the stale
 * bytes. */
static uint64_t begin_eviction(struct um_plan_run *r, struct um_atom_range a, int copy)
{
	uint64_t stale = 0;

	for (uint32_t i = a.lo; i < a.hi; i++) {
		if (!(r->state[i] & UM_ATOM_RESIDENT))
			continue;
		if ((r->state[i] & (UM_ATOM_LIVE | UM_ATOM_FRESH)) != UM_ATOM_LIVE) {
			drop_atom(r, i);
		} else if (copy) {
			r->state[i] = (r->state[i] & (uint8_t)~UM_ATOM_RESIDENT) | UM_ATOM_LEAVING;
			stale += r->atoms.bytes[i];
		} else {
			drop_atom(r, i);
			r->state[i] = (r->state[i] & (uint8_t)~UM_ATOM_LIVE) | UM_ATOM_LOST;
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
	if (r->running && r->plan->sched.ops.at[r->pos].stream != UM_STREAM_CPU && op_uses(r, a))
		note(r, "op %d '%s': slot %u is evicted while the op uses it", r->pos,
		     r->plan->sched.ops.at[r->pos].name, slot);
	report(r, e->queue[e->head], slot, a);
	stale = begin_eviction(r, a, r->plan->hints.at[e->queue[e->head]].copy);
	r->tally.d2h_bytes += stale;
	if (!stale) {
		advance(r, e);
		return 1;
	}
	e->busy = 1;
	e->end = r->now + copy_ns(stale, r->plan->d2h);
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
	report(r, e->queue[e->head], slot, a);
	take(r, room);
	r->tally.h2d_bytes += moved;
	for (uint32_t i = a.lo; i < a.hi; i++)
		if (!(r->state[i] & UM_ATOM_RESIDENT))
			r->state[i] |= moved ? UM_ATOM_COMING : UM_ATOM_RESIDENT;
	if (!moved) {
		advance(r, e);
		return 1;
	}
	e->busy = 1;
	e->end = r->now + copy_ns(moved, r->plan->h2d);
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

/* --- ops ---------------------------------------------------------------------------------------------------------- */

/* 1: the atom is accessed on the host. */
static int is_host_resident(const struct um_plan_run *r, uint32_t slot, uint32_t atom)
{
	return r->host_resident && atom >= r->host_atoms[slot].lo && atom < r->host_atoms[slot].hi;
}

/* Advances over resident bytes; 1 if all of the op's bytes are resident. `*lost`: some bytes that it reads may have
 * been discarded; valid only for a complete pass. */
static int advance_use(struct um_plan_run *r, const struct um_sched_op *op, int *lost)
{
	*lost = 0;
	for (; r->seen_use < op->n_uses; r->seen_use++, r->seen_atom = 0) {
		uint32_t u = op->first_use + r->seen_use;
		struct um_atom_range a = r->atoms.use[u];
		int looked = r->how[u] & UM_USE_READS ? UM_ATOM_LOST : 0;

		if (!(r->how[u] & UM_USE_MANAGED)) {
			*lost |= looked;
			continue;
		}
		for (uint32_t i = a.lo + r->seen_atom; i < a.hi; i++) {
			*lost |= r->state[i] & looked;
			if (r->state[i] & UM_ATOM_RESIDENT || is_host_resident(r, r->plan->sched.uses.at[u].slot, i))
				continue;
			r->seen_atom = i - a.lo;
			return 0;
		}
	}
	return 1;
}

/* 1: all bytes of the op are resident. Repeats the pass from the start to confirm. */
static int all_resident(struct um_plan_run *r, const struct um_sched_op *op, int *lost)
{
	int whole = r->seen_use == 0 && r->seen_atom == 0;

	for (;;) {
		if (!advance_use(r, op, lost))
			return 0;
		r->seen_use = r->seen_atom = 0;
		if (whole)
			return 1;
		whole = 1;
	}
}

/* Records absent bytes that no hint prefetches as a fault, and makes them resident at once so that the run
 * continues. */
static void fault(struct um_plan_run *r, const struct um_sched_op *op)
{
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &r->plan->sched.uses.at[u];
		uint64_t bytes = 0;

		if (slot_at(r, use->slot)->flags & UM_SLOT_UNMANAGED)
			continue;
		for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++) {
			if (r->state[i] & UM_ATOM_RESIDENT || is_host_resident(r, use->slot, i))
				continue;
			bytes += r->atoms.bytes[i];
			if (!(r->state[i] & (UM_ATOM_COMING | UM_ATOM_LEAVING)))
				take(r, r->atoms.bytes[i]);
			r->state[i] &= (uint8_t) ~(UM_ATOM_COMING | UM_ATOM_LEAVING);
			r->state[i] |= UM_ATOM_RESIDENT;
		}
		if (bytes)
			note(r, "op %d '%s': %" PRIu64 " bytes of slot %u are absent and not in flight", r->pos,
			     op->name, bytes, use->slot);
	}
	r->seen_use = r->seen_atom = 0;
}

/* Records a fault if the op reads discarded bytes. */
static void check_lost(struct um_plan_run *r, const struct um_sched_op *op)
{
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		uint64_t lost = 0;

		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_READS && i < r->atoms.use[u].hi; i++)
			if (r->state[i] & UM_ATOM_LOST)
				lost += r->atoms.bytes[i];
		if (lost)
			note(r, "op %d '%s' reads %" PRIu64 " bytes of slot %u that were discarded", r->pos, op->name,
			     lost, r->plan->sched.uses.at[u].slot);
	}
}

static void touch(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint32_t from = op->first_use, to = from + op->n_uses;
	int dead = 0;

	for (uint32_t u = from; u < to; u++) {
		dead |= r->how[u] & UM_USE_DEAD;
		if (!(r->how[u] & UM_USE_WRITES))
			continue;
		for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++)
			r->state[i] = (r->state[i] & (uint8_t) ~(UM_ATOM_FRESH | UM_ATOM_LOST)) | UM_ATOM_LIVE;
	}
	for (uint32_t u = dead ? from : to; u < to; u++) {
		uint32_t slot = r->plan->sched.uses.at[u].slot;

		/* declared dead: neither live nor lost */
		for (uint32_t i = r->atoms.first[slot]; r->how[u] & UM_USE_DEAD && i < r->atoms.first[slot + 1]; i++)
			r->state[i] &= (uint8_t) ~(UM_ATOM_LIVE | UM_ATOM_FRESH | UM_ATOM_LOST);
	}
}

/* Moves the absent bytes of a paged op: in, if it needs their content, and out, the bytes that it writes beyond the
 * budget. Returns the link's time. */
static uint64_t page(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint64_t in = 0, all = 0, written = 0, out;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_MANAGED && i < r->atoms.use[u].hi; i++) {
			int needed = r->how[u] & UM_USE_READS && r->state[i] & UM_ATOM_LIVE;

			if (is_host_resident(r, r->plan->sched.uses.at[u].slot, i))
				continue;
			in += needed && !(r->state[i] & UM_ATOM_RESIDENT) ? r->atoms.bytes[i] : 0;
			r->state[i] |= UM_ATOM_RESIDENT;
			all += r->atoms.bytes[i];
			written += r->how[u] & UM_USE_WRITES ? r->atoms.bytes[i] : 0;
		}
	}
	out = all > r->plan->budget ? all - r->plan->budget : 0;
	out = out < written ? out : written;
	r->tally.h2d_bytes += in;
	r->tally.d2h_bytes += out;
	return copy_ns(in, r->plan->h2d) + copy_ns(out, r->plan->d2h);
}

/* A paged op has ended: the driver may have evicted any byte. */
static void forget_resident(struct um_plan_run *r)
{
	r->used = 0;
	for (uint32_t i = 0; i < r->atoms.n; i++) {
		r->state[i] &= (uint8_t) ~(UM_ATOM_RESIDENT | UM_ATOM_COMING);
		if (r->state[i] & UM_ATOM_LEAVING)
			r->used += r->atoms.bytes[i];
		else if (r->state[i] & UM_ATOM_LIVE)
			r->state[i] |= UM_ATOM_FRESH;
	}
}

/* 1: an eviction of a range of the CPU access is issued but not begun. Any eviction of the previous iteration
 * counts. */
static int has_eviction_pending(const struct um_plan_run *r)
{
	const struct um_plan_engine *e = &r->d2h;

	if (e->head < e->n && e->iter < r->iter)
		return 1;
	for (uint32_t k = e->head; k < e->n && r->plan->hints.at[e->queue[k]].at <= r->pos; k++)
		if (op_uses(r, r->atoms.hint[e->queue[k]]))
			return 1;
	return 0;
}

/* Starts an access of the CPU: moves its ranges to the host, with a copy if the host's copy is stale. 0: an eviction of
 * them is in progress. */
static int start_cpu(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint64_t stale = 0;

	if (has_eviction_pending(r))
		return 0;
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_MANAGED && i < r->atoms.use[u].hi; i++)
			if (r->state[i] & UM_ATOM_LEAVING)
				return 0;
	check_lost(r, op);
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_MANAGED && i < r->atoms.use[u].hi; i++) {
			if (r->state[i] & UM_ATOM_RESIDENT && r->state[i] & UM_ATOM_LIVE &&
			    !(r->state[i] & UM_ATOM_FRESH))
				stale += r->atoms.bytes[i];
			drop_atom(r, i);
		}
	touch(r, op);
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++)
			r->state[i] |= r->state[i] & UM_ATOM_LIVE ? UM_ATOM_FRESH : 0;
	r->tally.d2h_bytes += stale;
	r->running = 1;
	if (r->start)
		r->start[r->pos] = r->now - r->begin;
	r->op_end = r->now + op->ns + copy_ns(stale, r->plan->d2h);
	return 1;
}

static int start_op(struct um_plan_run *r)
{
	const struct um_sched_op *op;
	uint64_t ns, paging;
	int lost;

	if (r->running || r->pos >= (int32_t)r->plan->sched.ops.n)
		return 0;
	op = &r->plan->sched.ops.at[r->pos];
	if (op->stream == UM_STREAM_CPU)
		return start_cpu(r, op);
	if (!all_resident(r, op, &lost)) {
		if (r->h2d.n && (r->h2d.iter < r->iter || r->h2d.head < r->due[r->pos]))
			return 0;
		if (!op->paged)
			fault(r, op);
		lost = 1;
	}
	r->seen_use = r->seen_atom = 0;
	if (r->used > r->plan->budget)
		note(r, "op %d '%s': %" PRIu64 " bytes resident, %" PRIu64 " allowed", r->pos, op->name, r->used,
		     r->plan->budget);
	if (lost)
		check_lost(r, op);
	paging = op->paged ? page(r, op) : 0;
	touch(r, op);
	r->running = 1;
	if (r->start)
		r->start[r->pos] = r->now - r->begin;
	ns = r->host_resident ? um_host_resident_ns(&r->plan->sched, op, r->host_resident, r->plan->remote) : 0;
	r->op_end = r->now + (ns > op->ns ? ns : op->ns) + paging;
	return 1;
}

/* The device has reached the point between op pos - 1 and op pos: frees, and discards that waited for it. */
static void reach_op(struct um_plan_run *r)
{
	for (uint32_t k = r->frees.first[r->pos]; k < r->frees.first[r->pos + 1]; k++) {
		uint32_t s = r->frees.item[k];

		for (uint32_t i = r->atoms.first[s]; i < r->atoms.first[s + 1]; i++) {
			drop_atom(r, i);
			r->state[i] &= UM_ATOM_LEAVING;
		}
	}
	for (uint32_t k = r->discards.first[r->pos]; k < r->discards.first[r->pos + 1]; k++) {
		uint32_t hint = r->discards.item[k];
		struct um_atom_range a = r->atoms.hint[hint];

		report(r, hint, r->plan->hints.at[hint].slot, a);
		for (uint32_t i = a.lo; i < a.hi; i++) {
			drop_atom(r, i);
			if (r->state[i] & UM_ATOM_LIVE)
				r->state[i] |= UM_ATOM_LOST;
			r->state[i] &= (uint8_t) ~(UM_ATOM_LIVE | UM_ATOM_FRESH);
		}
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
			forget_resident(r);
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
	h2d = lag_of(r, &r->h2d);
	d2h = lag_of(r, &r->d2h);
	r->pos = 0;
	reach_op(r);
	while (r->running || r->pos < n) {
		while (start_evict(r) || start_fetch(r) || start_op(r))
			;
		if (r->watch)
			r->watch->pass(r->watch->user, r);
		if (!next_event(r)) {
			note(r, "op %d '%s' waits forever:  %" PRIu64 " bytes resident of %" PRIu64, r->pos,
			     r->plan->sched.ops.at[r->pos].name, r->used, r->plan->budget);
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
