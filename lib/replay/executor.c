/* SPDX-License-Identifier: Apache-2.0
 *
 * executor.c - opens and closes the executor; its marks and discards; what happens to memory outside the plan
 */
#include "replay/executor_state.h"

#include <errno.h>
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
	err = um_lanes_open(&ex->lanes, gpu, host->out_workers ? host->out_workers : 1);
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

static void withdraw_advice(struct um_executor *ex)
{
	um_advice_state_set(&ex->read_mostly, ex->gpu, NULL, 0);
	um_advice_state_set(&ex->host_resident, ex->gpu, NULL, 0);
	um_advice_state_withdraw(&ex->host_resident, ex->gpu);
	um_advice_state_withdraw(&ex->host_resident, ex->gpu);
}

int um_executor_close(struct um_executor *ex)
{
	int err;

	if (!ex)
		return 0;
	um_executor_leave(ex);
	withdraw_advice(ex);
	err = um_lanes_close(&ex->lanes);
	if (err)
		return err;
	um_advice_state_fini(&ex->read_mostly);
	um_advice_state_fini(&ex->host_resident);
	um_executor_forget_targets(ex);
	um_vec_fini(&ex->early);
	um_block_lru_fini(&ex->supplied.blocks);
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

unsigned um_executor_used_since(const struct um_executor *ex, unsigned which)
{
	unsigned used = 0;

	for (unsigned rest = which; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		used |= (unsigned)um_executor_is_used(ex, i) << i;
	}
	return used;
}

/* --- end, changes of memory ---------------------------------------------------------------------------------- */

void um_executor_end(struct um_executor *ex)
{
	ex->program = NULL;
}

void um_executor_note_prefetch(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	um_block_limit_add(&ex->lanes.limit, addr, bytes);
}

void um_executor_forget(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	um_block_limit_remove(&ex->lanes.limit, addr, bytes);
	if (ex->supplied.blocks.most)
		um_block_lru_remove_range(&ex->supplied.blocks, addr, bytes);
}

void um_executor_forget_within(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	uint64_t lo = um_block_of(addr + UM_BLOCK_BYTES - 1), hi = um_block_of(addr + bytes);

	if (lo < hi)
		um_executor_forget(ex, lo, hi - lo);
}

void um_executor_cancel(struct um_executor *ex)
{
	um_lanes_drop(&ex->lanes);
}

int um_executor_set_budget(struct um_executor *ex, uint64_t budget_blocks, int larger)
{
	int err;

	ex->program = NULL;
	um_block_lru_fini(&ex->supplied.blocks);
	um_executor_cancel(ex);
	if (um_lanes_drain(&ex->lanes))
		return -EAGAIN;
	err = um_block_limit_change(&ex->lanes.limit, budget_blocks, !larger);
	if (err)
		return err;
	ex->host.budget_blocks = budget_blocks;
	ex->host.larger = larger;
	return 0;
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
