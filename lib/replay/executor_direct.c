/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_direct.c - requests without a plan
 */
#include "replay/executor_state.h"

#define EVICT_AT_ONCE (8 * UM_BLOCK_BYTES)

int um_executor_mark(struct um_executor *ex, unsigned streams)
{
	streams &= um_executor_streams(ex);
	return um_executor_too_many_streams(ex) ? -EAGAIN : um_executor_mark_streams(ex, streams);
}

struct um_executor_room um_executor_room_now(const struct um_executor *ex)
{
	return (struct um_executor_room){um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT),
					 um_lanes_evict_queued(&ex->lanes, UM_LANE_DROP)};
}

uint32_t um_executor_in_queued(const struct um_executor *ex)
{
	return um_lanes_in_queued(&ex->lanes);
}

struct um_executor_room um_executor_room_done(const struct um_executor *ex)
{
	return (struct um_executor_room){um_lanes_evict_done(&ex->lanes, UM_LANE_OUT),
					 um_lanes_evict_done(&ex->lanes, UM_LANE_DROP)};
}

static enum um_hint_source source_of(int ahead)
{
	return ahead ? UM_HINT_PREDICTED : UM_HINT_ANNOUNCED;
}

/* The worker that evicts it advises it. */
static int becomes_read_mostly(struct um_executor *ex, const struct um_executor_range *r)
{
	return ex->gpu->api->cudaMemAdvise && !um_advice_state_touches(&ex->read_mostly, r->addr, r->bytes) &&
	       !um_advice_state_note(&ex->read_mostly, r->addr, r->bytes);
}

/* What a prefetch into the memory of this lane's latest eviction waits for. */
static struct um_executor_room room_of_latest(const struct um_executor *ex, enum um_evict_lane lane)
{
	struct um_executor_room room = um_executor_room_done(ex);

	*(lane == UM_LANE_OUT ? &room.outs : &room.drops) = um_lanes_evict_queued(&ex->lanes, lane);
	return room;
}

int um_executor_away(struct um_executor *ex, uint64_t addr, uint64_t bytes, uint32_t in, unsigned streams,
		     unsigned what, struct um_executor_room *room)
{
	struct um_executor_range r = um_executor_clip(ex, (struct um_executor_range){addr, bytes});
	int dead = r.bytes && um_executor_may_discard(ex, r.addr, r.bytes, UM_NO_OP_WAITS), err;
	int clean = !dead && r.bytes &&
		    (um_advice_state_has(&ex->read_mostly, r.addr, r.bytes) ||
		     (what & UM_AWAY_ONLY_READ && becomes_read_mostly(ex, &r)));
	unsigned marked = streams;
	enum um_action_kind kind = dead ? UM_ACTION_DISCARD : clean ? UM_ACTION_EVICT_OR_DROP : UM_ACTION_EVICT;

	if (um_lanes_in_queued(&ex->lanes) - in >= UM_LANES_QUEUE)
		in = um_lanes_in_queued(&ex->lanes) - UM_LANES_QUEUE; /* numbers wrap around */
	streams &= um_executor_streams(ex);
	um_lanes_begin_source(&ex->lanes, source_of(what & UM_AWAY_AHEAD));
	if (ex->lanes.results.listener.report && um_lanes_expect(&ex->lanes, kind, UM_HINT_RESULTS_NO_OP))
		return -EAGAIN;
	if (dead)
		err = um_executor_drop(ex, kind, r, in, streams, &marked, UM_NO_OP_WAITS);
	else
		err = um_lanes_evict(&ex->lanes, clean ? UM_LANE_DROP : UM_LANE_OUT, kind, r.addr, r.bytes, in,
				     streams);
	*room = room_of_latest(ex, dead || clean ? UM_LANE_DROP : UM_LANE_OUT);
	ex->unpoked = 1;
	return err;
}

int um_executor_evict_all(struct um_executor *ex, const struct um_executor_range *r, size_t n,
			  struct um_executor_room *room)
{
	unsigned streams = um_executor_streams(ex);
	int err = um_executor_mark(ex, streams);

	*room = um_executor_room_now(ex);
	for (size_t i = 0; i < n && !err; i++)
		for (uint64_t off = 0; off < r[i].bytes && !err; off += EVICT_AT_ONCE) {
			uint64_t left = r[i].bytes - off;

			err = um_executor_away(ex, r[i].addr + off, left < EVICT_AT_ONCE ? left : EVICT_AT_ONCE,
					       um_executor_in_queued(ex), streams, 0, room);
		}
	*room = um_executor_room_now(ex);
	um_executor_poke(ex);
	return err;
}

int um_executor_fence(struct um_executor *ex, unsigned streams)
{
	struct um_lanes *l = &ex->lanes;

	streams &= um_executor_streams(ex);
	if (um_executor_mark(ex, streams))
		return -EAGAIN;
	if (l->results.listener.report && um_lanes_expect(l, UM_ACTION_LEAVE_TO_DRIVER, UM_HINT_RESULTS_NO_OP))
		return -EAGAIN;
	if (um_lanes_evict(l, UM_LANE_OUT, UM_ACTION_LEAVE_TO_DRIVER, 0, 0, um_lanes_in_done(l), streams))
		return -EAGAIN;
	ex->unpoked = 1;
	return 0;
}

int um_executor_overwrite(struct um_executor *ex, uint64_t addr, uint64_t bytes, unsigned *marked,
			  struct um_executor_room *room)
{
	struct um_executor_range r = um_executor_clip(ex, (struct um_executor_range){addr, bytes});
	struct um_lanes *l = &ex->lanes;

	if (!r.bytes || !ex->gpu->caps.discard || !um_executor_may_discard(ex, r.addr, r.bytes, UM_OP_WAITS))
		return 0;
	um_lanes_begin_source(l, UM_HINT_ANNOUNCED);
	if (l->results.listener.report && um_lanes_expect(l, UM_ACTION_DISCARD, UM_HINT_RESULTS_NO_OP))
		return -EAGAIN;
	if (um_executor_drop(ex, UM_ACTION_DISCARD, r, um_lanes_in_done(l), 0, marked, UM_OP_WAITS))
		return -EAGAIN;
	*room = um_executor_room_now(ex);
	ex->unpoked = 1;
	return 1;
}

int um_executor_bring(struct um_executor *ex, uint64_t addr, uint64_t bytes, int ahead,
		      const struct um_executor_room *room, uint32_t *in)
{
	struct um_executor_range r = um_executor_clip(ex, (struct um_executor_range){addr, bytes});
	struct um_lanes *l = &ex->lanes;

	um_lanes_begin_source(l, source_of(ahead));
	if (l->results.listener.report &&
	    um_lanes_expect(l, UM_ACTION_PREFETCH, ahead ? UM_HINT_RESULTS_NO_OP : ex->number))
		return -EAGAIN;
	if (um_lanes_in(l, r.addr, r.bytes, room->outs, room->drops))
		return -EAGAIN;
	*in = um_lanes_in_queued(l);
	ex->unpoked = 1;
	return 0;
}

uint64_t um_executor_held(const struct um_executor *ex)
{
	return atomic_load_explicit(&ex->lanes.gates_late, memory_order_relaxed);
}

void um_executor_await(struct um_executor *ex, uint32_t in, unsigned stream)
{
	struct um_lanes *l = &ex->lanes;

	ex->stream = stream;
	if (um_lanes_in_queued(l) - in >= UM_LANES_QUEUE || stream >= UM_LANES_STREAMS)
		return; /* it has arrived long ago */
	um_lanes_gate(l, &ex->need, in, stream);
}

void um_executor_visit_resident(struct um_executor *ex, void (*visit)(void *user, uint64_t addr), void *user)
{
	um_lanes_drain(&ex->lanes);
	um_block_limit_visit(&ex->lanes.limit, visit, user);
}

uint32_t um_executor_epoch(const struct um_executor *ex)
{
	return atomic_load_explicit(&ex->lanes.epoch, memory_order_relaxed);
}
