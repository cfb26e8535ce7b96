/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_advice.c - when the advice on memory begins and ends while a program runs
 *
 * Advice takes effect when it is called, but the program may be far ahead of the device. Ops that look up in a
 * host-resident range would fault, had its advice been withdrawn before they ran. So that advice is withdrawn once the
 * ops launched so far are complete, and no op waits for it: prefetches bring the range in spite of it. Memory that is
 * read mostly loses its copy on the device with the advice, and its writers fault until then. A new plan waits for the
 * ops launched so far before it changes what is read mostly. Before an op that writes such memory the advice goes at
 * once: a prefetch of the memory follows, and earlier ops find it on the device again.
 */
#include "replay/executor_state.h"

#include <errno.h>

/* Marks after the ops that the streams, a bit each, have been given so far. 0 or -EAGAIN. */
static int take_marks(struct um_executor *ex, unsigned streams, struct um_lanes_marks *m)
{
	if (um_executor_mark(ex, um_executor_used_since(ex, streams)))
		return -EAGAIN;
	um_lanes_latest_marks(&ex->lanes, streams, m);
	return 0;
}

void um_executor_await_ops(struct um_executor *ex, unsigned streams)
{
	struct um_lanes_marks m;

	if (!take_marks(ex, streams, &m))
		um_lanes_await_marks(&ex->lanes, &m);
}

void um_executor_withdraw_ended(struct um_executor *ex)
{
	struct um_advice_state *m = &ex->host_resident;

	if (m->due.n && !um_lanes_marks_reached(&ex->lanes, &ex->due_after))
		return;
	if (m->ending.n && take_marks(ex, um_executor_streams(ex), &ex->due_after))
		ex->due_after.streams = 0; /* ops on some streams cannot be waited for */
	um_advice_state_withdraw(m, ex->gpu);
	if (m->due.n && um_lanes_marks_passed(&ex->lanes, &ex->due_after))
		um_advice_state_withdraw(m, ex->gpu);
}

/* No discard of this memory is in progress or pending. 0 or -EBUSY. */
static int end_discards(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	uint64_t first = um_block_of(addr), end = um_block_of(addr + bytes + UM_BLOCK_BYTES - 1);

	if (!um_lanes_claim(&ex->lanes, first, end))
		return 0;
	ex->program = NULL;
	um_executor_cancel(ex);
	return um_lanes_claim(&ex->lanes, first, end) ? -EBUSY : 0;
}

/* What is read mostly has its copy on the device dropped. 0 or -EBUSY. */
static int withdraw_read_mostly(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	uint64_t end = um_block_of(addr + bytes + UM_BLOCK_BYTES - 1);

	if (end_discards(ex, addr, bytes))
		return -EBUSY;
	for (uint64_t a = um_block_of(addr); a < end; a += UM_BLOCK_BYTES)
		if (um_advice_state_touches(&ex->read_mostly, a, UM_BLOCK_BYTES))
			um_executor_forget(ex, a, UM_BLOCK_BYTES);
	um_advice_state_clear(&ex->read_mostly, ex->gpu, addr, bytes);
	return 0;
}

int um_executor_claim(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	if (withdraw_read_mostly(ex, addr, bytes))
		return -EBUSY;
	um_advice_state_end(&ex->host_resident, ex->gpu, addr, bytes);
	return 0;
}

void um_executor_use(struct um_executor *ex, const struct um_use *uses, uint32_t n, int streams)
{
	int read_mostly = ex->read_mostly.runs.n != 0, host_resident = ex->host_resident.runs.n != 0 && !streams;

	for (const struct um_use *u = uses; (read_mostly || host_resident) && u < uses + n; u++) {
		int writes = read_mostly && u->access & UM_WRITE, brings = host_resident && u->touched >= u->bytes;
		uint64_t addr = u->tensor->addr + u->off;

		if (writes && um_advice_state_touches(&ex->read_mostly, addr, u->bytes))
			withdraw_read_mostly(ex, addr, u->bytes);
		if (brings && um_advice_state_touches(&ex->host_resident, addr, u->bytes))
			um_advice_state_end(&ex->host_resident, ex->gpu, addr, u->bytes);
	}
	if (um_advice_state_any_ended(&ex->host_resident))
		um_executor_withdraw_ended(ex);
}

int um_executor_keep_on_host(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	return um_lanes_drain(&ex->lanes) ? -EAGAIN : um_advice_state_add(&ex->host_resident, ex->gpu, addr, bytes);
}

int um_executor_any_host_resident(const struct um_executor *ex)
{
	return ex->host_resident.runs.n != 0;
}

int um_executor_is_host_resident(const struct um_executor *ex, uint64_t addr)
{
	return um_advice_state_touches(&ex->host_resident, addr, UM_BLOCK_BYTES);
}

int um_executor_any_read_mostly(const struct um_executor *ex)
{
	return ex->read_mostly.runs.n != 0;
}

int um_executor_is_read_mostly(const struct um_executor *ex, uint64_t addr)
{
	return um_advice_state_touches(&ex->read_mostly, addr, UM_BLOCK_BYTES);
}

void um_executor_release(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	if ((um_advice_state_touches(&ex->read_mostly, addr, bytes) ||
	     um_advice_state_touches(&ex->host_resident, addr, bytes)) &&
	    withdraw_read_mostly(ex, addr, bytes))
		return;
	um_advice_state_clear(&ex->host_resident, ex->gpu, addr, bytes);
}
