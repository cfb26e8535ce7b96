/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_replace.c - moves memory when a tensor takes another one's slot in a plan that is followed
 *
 * The plan counts on the slot's blocks, not on a tensor: the new one becomes resident in the room of the previous one.
 * Otherwise the op would fault, and the driver would evict blocks that the plan expects to be resident.
 */
#include "replay/executor_state.h"

#include <errno.h>

/* The plan's counts refer to its own requests: further ones come before those that it makes next. */
static void shift_counts(struct um_executor *ex, uint32_t in, const struct um_executor_room *before)
{
	struct um_executor_room now = um_executor_room_now(ex);

	ex->in_base += um_executor_in_queued(ex) - in;
	ex->out_base += now.outs - before->outs;
	ex->drop_base += now.drops - before->drops;
}

static uint64_t at_most(uint64_t bytes, uint64_t most)
{
	return bytes < most ? bytes : most;
}

static int exchange(struct um_executor *ex, struct um_executor_range was, struct um_executor_range now)
{
	unsigned streams = um_executor_streams(ex);
	struct um_executor_room room = um_executor_room_now(ex);
	uint32_t in;

	if (was.bytes && um_executor_mark(ex, streams))
		return -EAGAIN;
	for (uint64_t off = 0; off < was.bytes; off += UM_RUN_OUT * UM_BLOCK_BYTES)
		if (um_executor_away(ex, was.addr + off, at_most(was.bytes - off, UM_RUN_OUT * UM_BLOCK_BYTES),
				     um_executor_in_queued(ex), streams, 0, &room))
			return -EAGAIN;
	room = um_executor_room_now(ex);
	for (uint64_t off = 0; off < now.bytes; off += UM_RUN_IN * UM_BLOCK_BYTES)
		if (um_executor_bring(ex, now.addr + off, at_most(now.bytes - off, UM_RUN_IN * UM_BLOCK_BYTES), 0,
				      &room, &in))
			return -EAGAIN;
	if (now.bytes)
		um_executor_await(ex, in, ex->stream);
	return 0;
}

int um_executor_replace(struct um_executor *ex, struct um_executor_range was, struct um_executor_range now)
{
	uint64_t first = um_block_of(was.addr + UM_BLOCK_BYTES - 1), last = um_block_of(was.addr + was.bytes);
	uint64_t end = um_block_of(now.addr + now.bytes + UM_BLOCK_BYTES - 1);
	struct um_executor_room before = um_executor_room_now(ex);
	uint32_t in = um_executor_in_queued(ex);
	int err;

	if (!ex->program)
		return 0;
	was = (struct um_executor_range){first, first < last ? last - first : 0};
	now.addr = um_block_of(now.addr);
	now.bytes = end - now.addr;
	if (ex->supplied.blocks.most)
		um_block_lru_remove_range(&ex->supplied.blocks, now.addr, now.bytes);
	err = exchange(ex, was, now);
	if (err) {
		um_executor_leave(ex);
		return err;
	}
	shift_counts(ex, in, &before);
	um_lanes_begin_source(&ex->lanes, UM_HINT_SCHEDULED);
	um_executor_poke(ex);
	return 0;
}
