/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_issue.c - queues the actions of a compiled plan that are due before an op
 */
#include "replay/executor_state.h"

#include <errno.h>

static uint64_t block_up(uint64_t addr)
{
	return um_block_of(addr + UM_BLOCK_BYTES - 1);
}

/* The current blocks of an action on a slot whose tensor is not at its planned place: under the same part of it, all of
 * them for an in, only those within the tensor for an out. The second of two adjacent outs has the block that both
 * overlap. No bytes: none. */
static struct um_executor_range locate_moved(const struct um_action *a, const struct um_slot *s, uint64_t now)
{
	uint64_t lo = a->addr > s->place ? a->addr - s->place : 0;
	uint64_t hi = a->addr + a->bytes - s->place;

	if (now != UINT64_MAX && (now - s->place) % UM_BLOCK_BYTES == 0)
		return (struct um_executor_range){a->addr + now - s->place, a->bytes}; /* two places with one layout */
	if (hi > s->bytes)
		hi = s->bytes;
	if (now == UINT64_MAX || lo >= hi)
		return (struct um_executor_range){a->addr, 0};
	lo = um_block_of(lo + now);
	hi += now;
	if (a->kind == UM_ACTION_PREFETCH) {
		hi = block_up(hi);
	} else {
		lo = lo > block_up(now) ? lo : block_up(now);
		hi = um_block_of(hi);
	}
	return lo < hi ? (struct um_executor_range){lo, hi - lo} : (struct um_executor_range){a->addr, 0};
}

static inline int is_supplied(const struct um_action *a, const struct um_cursor *c)
{
	return a->slot != UM_NO_SLOT && c->sched->slots.at[a->slot].flags & UM_SLOT_SUPPLIED;
}

static inline int is_moved(const struct um_action *a, const struct um_cursor *c)
{
	return a->slot != UM_NO_SLOT && c->slots[a->slot].off;
}

/* The address of a slot's tensor, now or when born: of two that alternate, the unborn one takes the other's place. */
static uint64_t place_of(const struct um_cursor *c, uint32_t slot)
{
	const struct um_slot *s = c->sched->slots.at;
	uint32_t other = c->from[slot];

	if (c->slots[slot].addr != UINT64_MAX || other == UM_NO_SLOT || c->from[other] != UM_NO_SLOT)
		return c->slots[slot].addr;
	if (c->slots[other].addr == s[other].place)
		return s[slot].place;
	return c->slots[other].addr == s[slot].place ? s[other].place : UINT64_MAX;
}

/* Is the tensor at its planned place, at another place of its rotation, or not born yet? */
static int is_rotated(const struct um_action *a, const struct um_cursor *c)
{
	uint64_t now = is_moved(a, c) ? place_of(c, a->slot) : UINT64_MAX;

	return now == UINT64_MAX || ((c->from[a->slot] != UM_NO_SLOT || c->sched->slots.at[a->slot].carry != a->slot) &&
				     (now - c->sched->slots.at[a->slot].place) % UM_BLOCK_BYTES == 0);
}

/* An eviction before the first op is of a tensor that was used last by the last op of the previous iteration. */
static int is_of_previous(const struct um_action *a, const struct um_cursor *c)
{
	return a->at == 0 && a->kind != UM_ACTION_PREFETCH && a->kind != UM_ACTION_DISCARD && is_supplied(a, c) &&
	       c->next[a->slot].id.v;
}

struct um_executor_range um_executor_locate(const struct um_action *a, const struct um_cursor *c)
{
	/* A drop may be of dead memory in which its tensor is not born yet. */
	int live = a->kind == UM_ACTION_PREFETCH || a->kind == UM_ACTION_EVICT;

	if (is_of_previous(a, c))
		return locate_moved(a, &c->sched->slots.at[a->slot], c->next[a->slot].addr);
	if (is_moved(a, c))
		return locate_moved(a, &c->sched->slots.at[a->slot],
				    live ? c->slots[a->slot].addr : place_of(c, a->slot));
	return (struct um_executor_range){a->addr, a->bytes};
}

/* The absolute number of a compiled count; counts further back than the previous iteration are complete. */
static inline uint32_t number(int32_t count, uint32_t base, int32_t least)
{
	return base + (uint32_t)(count > least ? count : least);
}

_Static_assert(!UM_ACTION_PREFETCH, "so one head can be made from another");

/* Announces the next request to the listener. */
static int expect(struct um_executor *ex, uint32_t action)
{
	const uint32_t *targets = ex->targets[ex->iteration - ex->program->iterations];
	uint32_t target = targets ? targets[action] : UINT32_MAX;

	return um_lanes_expect(&ex->lanes, ex->iteration->actions.at[action].kind,
			       target == UINT32_MAX ? UM_HINT_RESULTS_NO_OP : ex->number - ex->op + target);
}

/* The marks of one op. Streams are a bit each. */
struct marks {
	unsigned live; /* the program's streams */
	unsigned marked; /* those with a mark after the ops before this one */
	unsigned outs; /* those whose latest mark suffices for outs: also those without an op since then. All evictions
			* of the op come after these; drops precede outs */
};

/* Outs come after these streams. 0 or -EAGAIN. */
static __attribute__((noinline)) int mark_for_outs(struct um_executor *ex, unsigned streams, struct marks *m)
{
	for (unsigned rest = streams; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		if (!um_executor_is_used(ex, i))
			continue;
		if (um_executor_mark_stream(ex, i))
			return -EAGAIN;
		m->marked |= 1u << i;
	}
	m->outs |= streams;
	return 0;
}

static inline uint32_t room_of(const struct um_executor *ex, const struct um_action *a)
{
	return number(a->room, ex->out_base, ex->out_least);
}

static inline uint32_t drops_of(const struct um_executor *ex, const struct um_action *a)
{
	return ex->drop_base + a->drops;
}

static inline uint32_t ins_of(const struct um_executor *ex, const struct um_action *a)
{
	return number(a->room, ex->in_base, ex->in_least);
}

/* A drop turns out to be this. `*may`: the result of may_discard, 0 if it was not asked. */
static inline enum um_action_kind kind_of_drop(struct um_executor *ex, enum um_action_kind kind,
					       struct um_executor_range r, enum um_executor_waits waits, int *may)
{
	*may = 0;
	if (!r.bytes)
		return kind == UM_ACTION_DROP_WITH_COPY ? UM_ACTION_EVICT : kind;
	if (kind == UM_ACTION_DISCARD) {
		*may = ex->gpu->caps.discard ? um_executor_may_discard(ex, r.addr, r.bytes, waits) : 0;
		if (*may)
			return kind;
		ex->kept_bytes += r.bytes;
	}
	if (kind == UM_ACTION_DROP_CLEAN && um_advice_state_has(&ex->read_mostly, r.addr, r.bytes))
		return ex->turn ? kind : UM_ACTION_EVICT_OR_DROP;
	return UM_ACTION_EVICT;
}

/* um_executor_drop(), for callers that know the kind. */
static inline __attribute__((always_inline)) int drop(struct um_executor *ex, enum um_action_kind kind,
						      struct um_executor_range r, uint32_t wait, unsigned streams,
						      unsigned *marked, enum um_executor_waits waits)
{
	int may, err;

	kind = kind_of_drop(ex, kind, r, waits, &may);
	if (may)
		streams |= um_executor_users(ex, r);
	if (um_executor_mark_missing(ex, streams, marked))
		return -EAGAIN;
	err = um_lanes_evict(&ex->lanes, UM_LANE_DROP, kind, r.addr, r.bytes, wait, streams);
	if (!err && may > 1)
		um_lanes_live(&ex->lanes);
	return err;
}

int um_executor_drop(struct um_executor *ex, enum um_action_kind kind, struct um_executor_range r, uint32_t wait,
		     unsigned streams, unsigned *marked, enum um_executor_waits waits)
{
	return drop(ex, kind, r, wait, streams, marked, waits);
}

/* Queues a drop of this kind on a range of its own. 0 or -EAGAIN. */
static inline __attribute__((always_inline)) int put_drop(struct um_executor *ex, const struct um_action *a,
							  enum um_action_kind kind, struct um_executor_range r,
							  unsigned streams, struct marks *m)
{
	/* no op waits for memory without a live tensor */
	enum um_executor_waits waits = a->slot == UM_NO_SLOT ? UM_NO_OP_WAITS
				       : ex->turn	     ? UM_OP_WAITS
							     : UM_LATER_OPS_WAIT;
	int err = drop(ex, kind, r, ins_of(ex, a), streams, &m->marked, waits);

	m->outs |= m->marked;
	ex->unpoked |= !streams;
	return err;
}

/* Queues an action of any kind on a range of its own. `room`: what an in waits for. 0 or -EAGAIN. */
static __attribute__((noinline)) int put(struct um_executor *ex, const struct um_action *a, struct um_executor_range r,
					 struct um_executor_room room, unsigned streams, struct marks *m)
{
	struct um_lanes *l = &ex->lanes;

	streams &= m->live;
	switch (a->kind) {
	case UM_ACTION_REFRESH:
	case UM_ACTION_PREFETCH:
		if (a->kind == UM_ACTION_REFRESH && !ex->can_refresh)
			r.bytes = 0;
		return um_lanes_in(l, r.addr, r.bytes, room.outs, room.drops);
	case UM_ACTION_EVICT:
	case UM_ACTION_LEAVE_TO_DRIVER:
		if (streams & ~m->outs && mark_for_outs(ex, streams & ~m->outs, m))
			return -EAGAIN;
		ex->unpoked |= !streams;
		return um_lanes_evict(l, UM_LANE_OUT, ex->driver_evicts ? a->kind : UM_ACTION_EVICT, r.addr, r.bytes,
				      ins_of(ex, a), streams);
	default:
		return put_drop(ex, a, a->kind, r, streams, m);
	}
}

/* Queues an action that may be elsewhere than planned, that is of a plan's first iterations, or that has a listener. */
static __attribute__((noinline)) int put_checked(struct um_executor *ex, const struct um_action *a,
						 const struct um_cursor *cursor, struct marks *m)
{
	struct um_executor_range r = {a->addr, a->bytes};
	size_t index = (size_t)(a - ex->iteration->actions.at);
	const struct um_early_in *early = !ex->turn && index < ex->early.n ? &ex->early.at[index] : NULL;
	struct um_executor_room room = {room_of(ex, a), drops_of(ex, a)};
	unsigned streams = a->streams;

	if (early && a->room <= 0)
		room = (struct um_executor_room){early->outs, a->drops ? room.drops : early->drops};
	if (!ex->inside || is_moved(a, cursor)) {
		if (ex->can_refresh && !is_rotated(a, cursor))
			ex->can_refresh = ex->driver_evicts = 0; /* the places of other tensors are unknown */
		r = um_executor_clip(ex, um_executor_locate(a, cursor));
	}
	if (ex->supplied.blocks.most && is_supplied(a, cursor))
		r = um_executor_supply(ex, a->kind, r);
	if (ex->supplied.outs && (int32_t)(ex->supplied.outs - room.outs) > 0)
		room.outs = ex->supplied.outs;
	if (ex->turn < UM_COMPILED_PLAN_STEADY || is_moved(a, cursor) || is_supplied(a, cursor))
		streams |= um_executor_users(ex, r); /* also in ops before the plan began */
	if (early && early->resident == r.addr)
		r.bytes = 0; /* prefetched again, each block would take the driver as long as a copy of some pages */
	if (ex->lanes.results.listener.report && expect(ex, (uint32_t)index))
		return -EAGAIN;
	return put(ex, a, r, room, streams, m);
}

static __attribute__((noinline)) int put_discard(struct um_executor *ex, const struct um_action *a, struct marks *m)
{
	return put_drop(ex, a, UM_ACTION_DISCARD, (struct um_executor_range){a->addr, a->bytes}, a->streams & m->live,
			m);
}

static __attribute__((noinline)) int put_in_place(struct um_executor *ex, const struct um_action *a, struct marks *m)
{
	return put(ex, a, (struct um_executor_range){a->addr, a->bytes},
		   (struct um_executor_room){room_of(ex, a), drops_of(ex, a)}, a->streams, m);
}

/* Queues actions at their planned places, in a later iteration. 0 or -EAGAIN. */
static inline __attribute__((always_inline)) int put_planned(struct um_executor *ex, const struct um_action *a,
							     const struct um_action *end, struct marks *m)
{
	struct um_lanes *l = &ex->lanes;
	const uint64_t in = um_lanes_head(l, UM_ACTION_PREFETCH), out = in | UM_ACTION_EVICT;
	uint64_t bytes = 0, hints = 0;

	for (; a < end; a++) {
		if (a->kind == UM_ACTION_PREFETCH) {
			if (um_lanes_put_in(l, in, a->addr, a->bytes, room_of(ex, a), drops_of(ex, a)))
				return -EAGAIN;
			bytes += a->bytes;
			hints++;
		} else if (a->kind == UM_ACTION_EVICT) {
			unsigned streams = a->streams & m->live;

			if (!streams)
				ex->unpoked = 1;
			if ((streams & ~m->outs && mark_for_outs(ex, streams & ~m->outs, m)) ||
			    um_lanes_put_evict(l, UM_LANE_OUT, out, a->addr, a->bytes, ins_of(ex, a), streams))
				return -EAGAIN;
			hints++;
		} else if (a->kind == UM_ACTION_DISCARD) {
			if (put_discard(ex, a, m))
				return -EAGAIN;
		} else if (put_in_place(ex, a, m)) {
			return -EAGAIN;
		}
	}
	um_lanes_count(l, hints, bytes);
	return 0;
}

/* Queues actions of which some may have to be checked. 0 or -EAGAIN. */
static __attribute__((noinline)) int put_some(struct um_executor *ex, const struct um_action *a,
					      const struct um_action *end, const struct um_cursor *cursor,
					      struct marks *m)
{
	int err = 0;

	ex->unpoked = 1;
	for (; a < end && !err; a++)
		err = ex->checks_all || ex->supplied.outs || is_moved(a, cursor) || is_supplied(a, cursor)
			      ? put_checked(ex, a, cursor, m)
			      : put_planned(ex, a, a + 1, m);
	return err;
}

/* Issues the actions due before the op. 0 or -EAGAIN. */
static __attribute__((noinline)) int issue(struct um_executor *ex, const struct um_action *a,
					   const struct um_action *end, const struct um_cursor *cursor,
					   const struct um_use *uses, uint32_t n)
{
	struct marks m = {.live = um_executor_streams(ex)};
	int err = ex->checks_some || cursor->n_moved ? put_some(ex, a, end, cursor, &m) : put_planned(ex, a, end, &m);

	if (err) {
		um_executor_leave(ex);
		ex->need.ins = 0;
	} else if (ex->unpoked) {
		um_executor_poke(ex);
	} else {
		um_lanes_poke_op(&ex->lanes, m.outs);
	}
	um_executor_guard_writes(ex, uses, n);
	return err;
}

int um_executor_op(struct um_executor *ex, uint32_t op, unsigned stream, const struct um_cursor *cursor,
		   const struct um_use *uses, uint32_t n)
{
	const struct um_compiled_iteration *p = ex->iteration;
	uint32_t first, end;
	int32_t gate;

	if (!ex->program)
		return 1;
	ex->stream = stream;
	ex->op = op;
	gate = p->gate[op];
	if (gate != INT32_MIN)
		um_lanes_gate(&ex->lanes, &ex->need, number(gate, ex->in_base, ex->gate_least), stream);
	first = p->first[op];
	end = p->first[op + 1];
	if (first != end)
		return issue(ex, &p->actions.at[first], &p->actions.at[end], cursor, uses, n);
	um_executor_guard_writes(ex, uses, n);
	return 0;
}
