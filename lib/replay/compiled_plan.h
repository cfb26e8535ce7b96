/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_plan.h - a plan in the driver's units: whole 2 MiB blocks, three lanes, what waits for what
 *
 * in    a plan (hints over slots, slots with places), the number of blocks that the budget holds
 * out   actions in the order of issue and what each op waits for: of the first two iterations after it is taken up, and
 *       of all that follow
 *
 * Slots share blocks, so a hint on a slot becomes an action only when the block as a whole changes: it comes in with
 * the first part that is wanted, it leaves when no part of it is wanted any more. Memory of freed slots costs nothing
 * while room lasts; when a block is to come in and there is none, the dead block that is needed last is discarded - as
 * soon as it is dead, not when its room is wanted. Actions of a lane run in order: `in` brings blocks to the device,
 * `out` takes them away with a copy, `drop` without: what needs no copy does not stand behind copies. An `in` waits
 * until so many of the others are done that there is room. Counting is within one iteration; numbers below zero are the
 * iteration before.
 *
 * The first iteration takes nothing to be on the device: what a steady one finds there is brought ahead, in the order
 * of first use, as far as there is room until it is used. Tensors that are alive when it is compiled and lie elsewhere
 * than their slots (bound_addr) are met where they lie until they are freed.
 * A value. Iteration path: O((uses + hints) x blocks of each).
 */
#ifndef UM_REPLAY_COMPILED_PLAN_H
#define UM_REPLAY_COMPILED_PLAN_H

#include "base/vec.h"
#include "model/plan.h"

/* Most blocks in one action: long enough to spread the cost of a call, short enough that the other lane need not wait
 * long for the room or the content that it brings, and that several workers share what is to leave. */
#define UM_RUN_IN 2
#define UM_RUN_OUT 1
#define UM_RUN_DROP 4

/* LET goes as a drop does, without a copy: of blocks that are read mostly, since the host has their content still.
 * HOME the same of blocks that may have been on the device before they were read mostly: copied if so.
 * LEAVE is an out for which nothing is done: the driver takes the block when it needs the room; KEEP an in of what is
 * there, so that the driver does not (yield.h). */
enum um_action_kind {
	UM_ACTION_PREFETCH,
	UM_ACTION_EVICT,
	UM_ACTION_DISCARD,
	UM_ACTION_DROP_CLEAN,
	UM_ACTION_EVICT_OR_DROP,
	UM_ACTION_LEAVE_TO_DRIVER,
	UM_ACTION_REFRESH
};

struct um_action {
	enum um_action_kind kind;
	uint32_t at; /* issued just before this op is launched; n_ops of the program: never */
	uint32_t slot; /* the block lies where this slot lies now; UM_NO_SLOT: where it was planned (nothing lives
			  there) */
	uint64_t addr, bytes; /* as planned: whole blocks */
	int32_t room; /* in: outs of this iteration that must be done before it, so that there is room; else: ins, so
			 that what is to leave has come. <= 0 reaches back, INT32_MIN none */
	uint32_t drops; /* in: drops of this iteration, and all of the one before, that must be done before it */
	uint16_t evicts; /* in: blocks that the driver evicts for it */
	uint16_t there; /* in: blocks of it that no eviction has taken away since they left */
};

/* One iteration. */
struct um_compiled_iteration {
	UM_VEC(struct um_action) actions; /* by at */
	uint32_t *first; /* [n_ops + 1]: the first action with at >= op */
	int32_t *gate; /* [n_ops]: number of ins of this iteration that must have arrived before the op; <= 0: of the
			  one before, INT32_MIN nothing */
	uint32_t n_in, n_out, n_drop; /* actions in each lane */
};

/* Whole blocks. */
struct um_compiled_plan_run {
	uint64_t addr, bytes;
};

#define UM_COMPILED_PLAN_STEADY 2

struct um_compiled_plan {
	struct um_compiled_iteration
		lap[UM_COMPILED_PLAN_STEADY + 1]; /* the first, the second, and all other iterations */
	uint32_t n_ops;
	UM_VEC(struct um_action) stays; /* blocks that need not leave before the first iteration says so */
	int settled; /* the second iteration's outs are those of all others */
	UM_VEC(uint64_t) blocks; /* addresses of all blocks under slots, ascending */
	UM_VEC(struct um_compiled_plan_run) mostly, far; /* to be advised as read mostly; as far; ascending */

	uint64_t over; /* ins for which there was no room by this count: the driver will evict */
	/* Of a program that was built as a whole: */
	uint8_t *there; /* by block: on the device when a steady iteration ends */
	uint32_t *from; /* by block: the one whose memory it is in the next iteration; its own number but where tensors
			   take turns in several places */
	uint32_t *mover; /* by block: the slot that takes turns and lies in it, UM_NO_SLOT */
	int tangled; /* not one to one */
	int yields; /* steady iterations leave evictions to the driver */
};

void um_compiled_plan_init(struct um_compiled_plan *p);
void um_compiled_plan_fini(struct um_compiled_plan *p);
void um_compiled_iteration_fini(struct um_compiled_iteration *lap);

/* The number of the block at `addr`, or of the first one behind. */
size_t um_compiled_plan_find(const struct um_compiled_plan *p, uint64_t addr);

/* Compiles. 0 or -ENOMEM. */
int um_compiled_plan_build(const struct um_plan *plan, uint64_t capacity_blocks, struct um_compiled_plan *out);

/* The steady iteration alone, in half the time: to be looked at, not to be taken up. */
int um_compiled_plan_build_steady(const struct um_plan *plan, uint64_t capacity_blocks, struct um_compiled_plan *out);

/* A tensor that was born in one iteration and is freed in the next lies, in the first one, where it happens to lie: at
 * bound_addr, until the slot is born. */
int um_compiled_plan_has_twin(const struct um_schedule *sched, uint32_t slot);

#endif
