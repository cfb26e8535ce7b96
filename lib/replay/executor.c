/* SPDX-License-Identifier: Apache-2.0
 *
 * executor.c - issues a compiled plan's actions
 */
#include "replay/executor_state.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

int um_executor_open(struct um_executor **out, struct um_gpu *gpu, const struct um_executor_host *host)
{
	struct um_executor *ex;
	int err;

	if (!gpu->caps.concurrent_managed || !gpu->api->cudaMemPrefetchAsync)
		return -ENOTSUP;
	ex = calloc(1, sizeof *ex);
	if (!ex)
		return -ENOMEM;
	ex->gpu = gpu;
	ex->host = *host;
	ex->host_resident.host_resident = 1;
	err = um_lanes_open(&ex->lanes, gpu, um_lanes_out_workers(host->evict_ns, host->link_ns));
	if (err)
		goto free_executor;
	err = !host->budget_blocks ? 0
	      : host->larger	   ? um_block_limit_set(&ex->lanes.limit, host->budget_blocks)
				   : um_block_limit_watch(&ex->lanes.limit, host->budget_blocks);
	if (err)
		goto close_lanes;
	*out = ex;
	return 0;

close_lanes:
	um_lanes_close(&ex->lanes);
free_executor:
	free(ex);
	return err;
}

void um_executor_forget_targets(struct um_executor *ex)
{
	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY; i++) {
		free(ex->targets[i]);
		ex->targets[i] = NULL;
	}
}

int um_executor_close(struct um_executor *ex)
{
	int err;

	if (!ex)
		return 0;
	um_executor_leave(ex);
	um_advice_state_set(&ex->read_mostly, ex->gpu, NULL, 0);
	um_advice_state_set(&ex->host_resident, ex->gpu, NULL, 0);
	err = um_lanes_close(&ex->lanes);
	if (err)
		return err;
	um_advice_state_fini(&ex->read_mostly);
	um_advice_state_fini(&ex->host_resident);
	um_executor_forget_targets(ex);
	um_vec_fini(&ex->early);
	free(ex);
	return 0;
}

/* --- ops -------------------------------------------------------------------------------------------------------- */

_Static_assert(UM_EXECUTOR_STREAMS == UM_LANES_STREAMS, "the lanes distinguish as many");

void um_executor_forget_stream(struct um_executor *ex, unsigned i)
{
	um_lanes_forget_stream(&ex->lanes, i);
	if (i < UM_LANES_STREAMS)
		ex->marked_at[i] = 0;
}

int um_executor_too_many_streams(const struct um_executor *ex)
{
	return ex->host.streams->overflow || ex->host.streams->n > UM_LANES_STREAMS;
}

int um_executor_mark_streams(struct um_executor *ex, unsigned which)
{
	const struct um_app_streams *streams = ex->host.streams;

	for (; which; which &= which - 1) {
		unsigned i = (unsigned)__builtin_ctz(which);

		if (um_lanes_mark(&ex->lanes, i, streams->at[i]))
			return -EAGAIN;
		ex->marked_at[i] = streams->latest;
	}
	return 0;
}

unsigned um_executor_used_since(const struct um_executor *ex, unsigned which)
{
	unsigned used = 0;

	for (unsigned rest = which; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		used |= (unsigned)(ex->host.streams->named[i] >= ex->marked_at[i]) << i;
	}
	return used;
}

int um_executor_mark_missing(struct um_executor *ex, unsigned which, unsigned *marked)
{
	unsigned missing = which & ~*marked & um_executor_streams(ex);

	if (missing && um_executor_mark_streams(ex, missing))
		return -EAGAIN;
	*marked |= missing;
	return 0;
}

unsigned um_executor_users(const struct um_executor *ex, struct um_executor_range r)
{
	unsigned streams = um_executor_streams(ex);

	if (um_app_streams_one(ex->host.streams) || !ex->host.users)
		return streams;
	return streams & ex->host.users(ex->host.user, r.addr, r.bytes);
}

int um_executor_drop(struct um_executor *ex, enum um_action_kind kind, struct um_executor_range r, uint32_t wait,
		     unsigned streams, unsigned *marked, enum um_executor_waits waits)
{
	int may = 0, err;

	if (r.bytes && kind == UM_ACTION_DROP_CLEAN)
		kind = !um_advice_state_has(&ex->read_mostly, r.addr, r.bytes) ? UM_ACTION_EVICT
		       : ex->turn					       ? kind
									       : UM_ACTION_EVICT_OR_DROP;
	else if (kind == UM_ACTION_DROP_WITH_COPY)
		kind = UM_ACTION_EVICT;
	else if (r.bytes && !(ex->gpu->caps.discard && (may = um_executor_may_discard(ex, r.addr, r.bytes, waits)))) {
		kind = UM_ACTION_EVICT;
		ex->kept_bytes += r.bytes;
	}
	if (may)
		streams |= um_executor_users(ex, r);
	if (may && um_executor_mark_missing(ex, streams, marked))
		return -EAGAIN;
	err = um_lanes_evict(&ex->lanes, UM_LANE_DROP, kind, r.addr, r.bytes, wait, streams);
	if (!err && may > 1)
		um_lanes_live(&ex->lanes);
	return err;
}

/* The current blocks of an action on a slot whose tensor is not at its planned place: under the same part of it, all of
 * them for an in, only whole ones for an out. No bytes: none. */
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
	lo += now;
	hi += now;
	if (a->kind == UM_ACTION_PREFETCH) {
		lo &= ~(UM_BLOCK_BYTES - 1);
		hi = (hi + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
	} else {
		lo = (lo + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
		hi &= ~(UM_BLOCK_BYTES - 1);
	}
	return lo < hi ? (struct um_executor_range){lo, hi - lo} : (struct um_executor_range){a->addr, 0};
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

struct um_executor_range um_executor_locate(const struct um_action *a, const struct um_cursor *c)
{
	if (is_moved(a, c))
		return locate_moved(a, &c->sched->slots.at[a->slot],
				    a->kind == UM_ACTION_REFRESH ? place_of(c, a->slot) : c->slots[a->slot].addr);
	return (struct um_executor_range){a->addr, a->bytes};
}

/* The absolute number of a compiled count; counts further back than the previous iteration are complete. */
static inline uint32_t number(int32_t count, uint32_t base, int32_t least)
{
	return base + (uint32_t)(count > least ? count : least);
}

/* Announces the next request to the listener. */
static int expect(struct um_executor *ex, uint32_t op, uint32_t action)
{
	const uint32_t *targets = ex->targets[ex->iteration - ex->program->iterations];
	uint32_t target = targets ? targets[action] : UINT32_MAX;

	return um_lanes_expect(&ex->lanes, ex->iteration->actions.at[action].kind,
			       target == UINT32_MAX ? UM_HINT_RESULTS_NO_OP : ex->number - op + target);
}

/* What the actions of one op have in common. */
struct issue {
	unsigned live; /* the program's streams, a bit each */
	unsigned used; /* those with ops since their latest mark */
	unsigned marked; /* those with a mark after the ops before this one */
};

/* Queues an in: `room` outs must be complete before it. 0 or -EAGAIN. */
static inline int put_in(struct um_executor *ex, const struct um_action *a, uint64_t addr, uint64_t bytes,
			 uint32_t room)
{
	return um_lanes_in(&ex->lanes, addr, bytes, room, ex->drop_base + a->drops);
}

/* Queues an out. 0 or -EAGAIN. */
static inline int put_out(struct um_executor *ex, const struct um_action *a, enum um_action_kind kind, uint64_t addr,
			  uint64_t bytes, unsigned streams, struct issue *is)
{
	unsigned missing = streams & is->live & is->used & ~is->marked;

	if (missing && um_executor_mark_streams(ex, missing))
		return -EAGAIN;
	is->marked |= missing;
	return um_lanes_evict(&ex->lanes, UM_LANE_OUT, kind, addr, bytes, number(a->room, ex->in_base, ex->in_least),
			      streams & is->live);
}

/* Queues an action of any kind. 0 or -EAGAIN. */
static __attribute__((noinline)) int put(struct um_executor *ex, const struct um_action *a, struct um_executor_range r,
					 uint32_t room, unsigned streams, struct issue *is)
{
	enum um_executor_waits waits;

	switch (a->kind) {
	case UM_ACTION_REFRESH:
		return put_in(ex, a, r.addr, ex->can_refresh ? r.bytes : 0, room);
	case UM_ACTION_PREFETCH:
		return put_in(ex, a, r.addr, r.bytes, room);
	case UM_ACTION_EVICT:
	case UM_ACTION_LEAVE_TO_DRIVER:
		return put_out(ex, a, ex->driver_evicts ? a->kind : UM_ACTION_EVICT, r.addr, r.bytes, streams, is);
	default:
		break;
	}
	if (um_executor_mark_missing(ex, streams, &is->marked))
		return -EAGAIN;
	/* no op waits for memory without a live tensor */
	waits = a->slot == UM_NO_SLOT ? UM_NO_OP_WAITS : ex->turn ? UM_OP_WAITS : UM_LATER_OPS_WAIT;
	return um_executor_drop(ex, a->kind, r, number(a->room, ex->in_base, ex->in_least), streams & is->live,
				&is->marked, waits);
}

static inline uint32_t room_of(const struct um_executor *ex, const struct um_action *a)
{
	return number(a->room, ex->out_base, ex->out_least);
}

/* Queues an action that may be elsewhere than planned, that is of a plan's first iterations, or that has a listener. */
static __attribute__((noinline)) int put_checked(struct um_executor *ex, uint32_t op, const struct um_action *a,
						 const struct um_cursor *cursor, struct issue *is)
{
	struct um_executor_range r = {a->addr, a->bytes};
	size_t index = (size_t)(a - ex->iteration->actions.at);
	uint32_t room = !ex->turn && a->room <= 0 && index < ex->early.n ? ex->early.at[index] : room_of(ex, a);
	unsigned streams = a->streams;

	if (!ex->inside || is_moved(a, cursor)) {
		if (ex->can_refresh && !is_rotated(a, cursor))
			ex->can_refresh = ex->driver_evicts = 0; /* the places of other tensors are unknown */
		r = um_executor_clip(ex, um_executor_locate(a, cursor));
	}
	if (ex->turn < UM_COMPILED_PLAN_STEADY || is_moved(a, cursor))
		streams |= um_executor_users(ex, r); /* also in ops before the plan began */
	if (ex->lanes.results.listener.report && expect(ex, op, (uint32_t)index))
		return -EAGAIN;
	return put(ex, a, r, room, streams, is);
}

/* The same, at its planned place in a later iteration. */
static inline int put_planned(struct um_executor *ex, const struct um_action *a, struct issue *is)
{
	if (a->kind == UM_ACTION_PREFETCH)
		return put_in(ex, a, a->addr, a->bytes, room_of(ex, a));
	if (a->kind == UM_ACTION_EVICT)
		return put_out(ex, a, UM_ACTION_EVICT, a->addr, a->bytes, a->streams, is);
	return put(ex, a, (struct um_executor_range){a->addr, a->bytes}, room_of(ex, a), a->streams, is);
}

/* Issues the actions due before op number `op`. 0 or -EAGAIN. */
static __attribute__((noinline)) int issue(struct um_executor *ex, uint32_t op, const struct um_cursor *cursor)
{
	const struct um_compiled_iteration *p = ex->iteration;
	const struct um_action *a = p->actions.at + p->first[op], *end = p->actions.at + p->first[op + 1];
	int all = ex->checks_all, some = all || cursor->n_moved;
	struct issue is = {.live = um_executor_streams(ex)};

	is.used = um_executor_used_since(ex, is.live);
	for (; a < end; a++)
		if (some && (all || is_moved(a, cursor)) ? put_checked(ex, op, a, cursor, &is)
							 : put_planned(ex, a, &is)) {
			um_executor_leave(ex);
			return -EAGAIN;
		}
	um_executor_poke(ex);
	return 0;
}

int um_executor_op(struct um_executor *ex, uint32_t op, unsigned stream, const struct um_cursor *cursor,
		   const struct um_use *uses, uint32_t n)
{
	const struct um_compiled_iteration *p = ex->iteration;
	int32_t gate;
	int err = 0;

	if (!ex->program)
		return 1;
	ex->stream = stream;
	if (p->first[op] != p->first[op + 1])
		err = issue(ex, op, cursor);
	gate = p->gate[op];
	if (!err && gate != INT32_MIN)
		um_lanes_gate(&ex->lanes, &ex->need, number(gate, ex->in_base, ex->gate_least), stream);
	if (ex->lanes.any_live && n)
		um_lanes_guard(&ex->lanes, &ex->need, stream, uses, n);
	return err;
}

/* --- end, changes of memory ---------------------------------------------------------------------------------- */

void um_executor_end(struct um_executor *ex)
{
	ex->program = NULL;
}

int um_executor_claim(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	uint64_t first = um_block_of(addr), end = um_block_of(addr + bytes + UM_BLOCK_BYTES - 1);

	if (um_lanes_claim(&ex->lanes, first, end)) {
		ex->program = NULL;
		um_executor_cancel(ex);
		if (um_lanes_claim(&ex->lanes, first, end))
			return -EBUSY;
	}
	um_advice_state_clear(&ex->read_mostly, ex->gpu, addr, bytes);
	um_advice_state_clear(&ex->host_resident, ex->gpu, addr, bytes);
	return 0;
}

void um_executor_use(struct um_executor *ex, const struct um_use *uses, uint32_t n)
{
	int read_mostly = ex->read_mostly.runs.n != 0, host_resident = ex->host_resident.runs.n != 0;

	for (const struct um_use *u = uses; (read_mostly || host_resident) && u < uses + n; u++) {
		int writes = read_mostly && u->access & UM_WRITE, brings = host_resident && u->touched >= u->bytes;
		uint64_t addr = u->tensor->addr + u->off;

		if ((writes && um_advice_state_touches(&ex->read_mostly, addr, u->bytes)) ||
		    (brings && um_advice_state_touches(&ex->host_resident, addr, u->bytes)))
			um_executor_claim(ex, addr, u->bytes);
	}
}

void um_executor_release(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	if (um_advice_state_touches(&ex->read_mostly, addr, bytes) ||
	    um_advice_state_touches(&ex->host_resident, addr, bytes))
		um_executor_claim(ex, addr, bytes);
}

void um_executor_forget(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	um_block_limit_remove(&ex->lanes.limit, addr, bytes);
}

void um_executor_cancel(struct um_executor *ex)
{
	um_lanes_drop(&ex->lanes);
}

void um_executor_leave(struct um_executor *ex)
{
	if (ex->program)
		um_executor_cancel(ex);
	ex->program = NULL;
}

int um_executor_listen(struct um_executor *ex, const struct um_hint_listener *listener)
{
	return um_lanes_listen(&ex->lanes, listener);
}

void um_executor_report_hints(struct um_executor *ex)
{
	um_lanes_report_hints(&ex->lanes);
}

void um_executor_number(struct um_executor *ex, uint64_t op)
{
	ex->number = op;
}
