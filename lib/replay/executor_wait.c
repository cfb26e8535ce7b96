/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_wait.c - waits of announced ops for their hints
 */
#include "replay/executor_state.h"

void um_executor_guard(struct um_executor *ex, unsigned stream, const struct um_use *uses, uint32_t n)
{
	ex->stream = stream;
	if (ex->supplied.blocks.most) /* the op, and requests for it, may have evicted what was there */
		um_block_lru_fini(&ex->supplied.blocks);
	um_executor_guard_writes(ex, uses, n);
}

void um_executor_guard_cpu(struct um_executor *ex, uint64_t addr, uint64_t end)
{
	ex->need.cpu = 1;
	um_lanes_need_drop(&ex->lanes, &ex->need, um_block_of(addr), um_block_of(end + UM_BLOCK_BYTES - 1));
	um_lanes_need_evicted(&ex->lanes, &ex->need, addr, end);
}

void um_executor_guard_all(struct um_executor *ex, unsigned stream)
{
	ex->stream = stream;
	ex->need.cpu = 1; /* it may be an access of the CPU */
	um_lanes_need_drop(&ex->lanes, &ex->need, 0, UINT64_MAX);
}

static __attribute__((noinline)) int poke_and_take_wait(struct um_executor *ex, um_stream handle,
							struct um_executor_wait *out)
{
	um_executor_poke(ex);
	return um_executor_take_wait(ex, handle, out);
}

int um_executor_take_wait(struct um_executor *ex, um_stream handle, struct um_executor_wait *out)
{
	struct um_lanes_need *n = &ex->need;

	if (ex->unpoked)
		return poke_and_take_wait(ex, handle, out);
	if (!n->ins && !n->drops && !n->cpu)
		return 0;
	*out = (struct um_executor_wait){ex, handle, ex->stream, *n};
	*n = (struct um_lanes_need){0};
	if (out->need.cpu) { /* no prefetch is for it */
		out->need.ins = 0;
		if (!out->need.drops && !out->need.evicts)
			return 0;
	}
	um_lanes_hold(&ex->lanes);
	return 1;
}

int um_executor_wait(const struct um_executor_wait *w)
{
	return um_lanes_await(&w->executor->lanes, &w->need, w->handle, w->stream);
}
