/* SPDX-License-Identifier: Apache-2.0
 *
 * The room beside a plan: which supplied tensors stay there, and what makes room for them.
 */
#include "gpu/null.h"
#include "replay/executor_state.h"

#include "plan_make.h"

#define UNUSED (64 * MIB2) /* where the blocks are that were there before */
#define TENSOR(k) ((struct um_executor_range){(128 + 8 * (uint64_t)(k)) * MIB2, 2 * MIB2})
#define END (UNUSED + 3 * MIB2) /* of the program's memory there */

static const struct um_app_streams streams = {.n = 1, .live = 1};

/* The last of the blocks that were there before is managed memory in part. */
static void clip(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole)
{
	(void)user;
	(void)whole;
	if (*addr<END && * addr + *bytes> END - MIB2 / 2)
		*bytes = END - MIB2 / 2 - *addr;
}

static struct um_executor_range supply(struct um_executor *ex, enum um_action_kind kind, int tensor)
{
	return um_executor_supply(ex, kind, TENSOR(tensor));
}

static void room(struct um_executor *ex, const struct um_schedule *s)
{
	uint64_t addr;

	um_executor_open_room(ex, s, 4, 0);
	is_u64(supply(ex, UM_ACTION_PREFETCH, 0).bytes, 2 * MIB2, "a tensor that is not there is prefetched");
	is_u64(supply(ex, UM_ACTION_EVICT, 0).bytes, 0, "a tensor stays where there is room");
	is_u64(supply(ex, UM_ACTION_EVICT, 1).bytes, 0, "so does another one");
	ok(!ex->supplied.outs, "while all stay, no prefetch waits for an eviction");
	is_u64(supply(ex, UM_ACTION_EVICT, 2).bytes, 2 * MIB2, "without room the latest one is evicted");
	is_u64(ex->supplied.outs, 1, "prefetches wait for that, as the room is full");
	is_u64(supply(ex, UM_ACTION_PREFETCH, 0).bytes, 0, "a tensor that is there is not prefetched");
	is_u64(supply(ex, UM_ACTION_EVICT, 2).bytes, 0, "while the plan uses it, its room is free");
	um_executor_begin_room(ex);
	ok(um_executor_room_exceeded(ex, &addr), "once a tensor was evicted, room is left for evictions in progress");
	is_u64(addr, TENSOR(2).addr + MIB2, "a block of the tensor that was used most recently leaves: it comes last");
	while (um_executor_room_exceeded(ex, &addr))
		continue;
	is_u64(ex->supplied.blocks.by_addr.n, 2, "the others stay");
	um_executor_forget(ex, TENSOR(1).addr, TENSOR(1).bytes);
	is_u64(supply(ex, UM_ACTION_PREFETCH, 1).bytes, 2 * MIB2, "a freed tensor is not there");
}

static void unused(struct um_executor *ex, const struct um_schedule *s)
{
	struct um_executor_range r;

	um_executor_open_room(ex, s, 3, 0);
	for (uint64_t k = 0; k < 3; k++)
		um_executor_stays_unused(ex, UNUSED + k * MIB2);
	r = supply(ex, UM_ACTION_EVICT, 0);
	ok(r.addr == UNUSED && r.bytes == 2 * MIB2, "blocks that no op uses are evicted in place of a tensor");
	is_u64(supply(ex, UM_ACTION_EVICT, 1).bytes, 2 * MIB2, "fewer blocks than the tensor has are left alone");
	um_executor_open_room(ex, s, 2, 0);
	for (uint64_t k = 1; k < 3; k++)
		um_executor_stays_unused(ex, UNUSED + k * MIB2);
	is_u64(supply(ex, UM_ACTION_EVICT, 0).bytes, 2 * MIB2 - MIB2 / 2, "no hint exceeds the program's memory");
	um_executor_open_room(ex, s, 3, 0);
	um_executor_stays_unused(ex, UNUSED - 4 * MIB2);
	um_executor_stays_unused(ex, UNUSED);
	um_executor_stays_unused(ex, UNUSED + MIB2);
	is_u64(supply(ex, UM_ACTION_EVICT, 0).addr, UNUSED, "the first ones that lie side by side are evicted");
}

/* Three tensors of two blocks take turns. Two blocks have room beside all that the plan needs at once, and six where it
 * needs no supplied tensor. */
static void turns(struct um_executor *ex, const struct um_schedule *s, uint64_t all)
{
	uint64_t addr, prefetched = 0, evicted = 0;

	um_executor_open_room(ex, s, 2, all);
	for (int i = 0; i < 9; i++) {
		prefetched += supply(ex, UM_ACTION_PREFETCH, i % 3).bytes;
		while (um_executor_room_exceeded(ex, &addr))
			evicted += MIB2;
		evicted += supply(ex, UM_ACTION_EVICT, i % 3).bytes;
		um_executor_begin_room(ex);
	}
	if (all == 6) {
		is_u64(prefetched, 6 * MIB2, "tensors that all fit on the device are prefetched once each");
		is_u64(evicted, 0, "and none is evicted");
	} else {
		ok(ex->supplied.blocks.by_addr.n <= 2,
		   "where they do not all fit, what the plan needs at once has room");
	}
}

int main(void)
{
	struct um_executor_host host = {.clip = clip, .streams = &streams};
	struct um_compiled_plan program;
	struct um_executor *ex;
	struct um_gpu *gpu;
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, TENSOR(0).addr, TENSOR(0).bytes, -1, -1);
	um_compiled_plan_init(&program);
	program.supplied_leaving = 2;
	if (um_null_open(&gpu, 1ull << 30, 0) || um_executor_open(&ex, gpu, &host))
		tap_bail("set-up");
	ex->program = &program;
	um_executor_open_room(ex, &plan.sched, 4, 4);
	is_u64(ex->supplied.blocks.most, 0, "a plan without supplied tensors needs no room");
	plan.sched.slots.at[0].flags |= UM_SLOT_SUPPLIED;
	room(ex, &plan.sched);
	unused(ex, &plan.sched);
	turns(ex, &plan.sched, 6);
	turns(ex, &plan.sched, 5);
	um_executor_close(ex);
	gpu->api->close(gpu);
	um_compiled_plan_fini(&program);
	um_plan_fini(&plan);
	return tap_done();
}
