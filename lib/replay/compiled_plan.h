/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_plan.h - a plan compiled to the driver's units: actions on whole 2 MiB blocks, in three lanes, with their
 * waits
 *
 * in    a plan (hints over slots, slots with places), the number of blocks that the budget holds
 * out   actions in the order of issue and the waits of each op: for the first two iterations after the plan is adopted,
 *       and for all that follow
 *
 * Slots share blocks, so a hint on a slot becomes an action only when the block as a whole changes: it is prefetched
 * with the first part that is wanted, and evicted when no part of it is wanted any more. Memory of freed slots stays
 * while there is room; when a block is to be prefetched and there is none, the dead block that is needed last is
 * discarded - as soon as it is dead, not when its room is needed. Actions of a lane run in order: `in` prefetches,
 * `out` evicts with a copy, `drop` without: actions without a copy do not queue after copies. An `in` waits until
 * enough actions of the other lanes are complete to leave room. Counts are within one iteration; numbers below zero
 * refer to the previous one.
 *
 * The first iteration assumes an empty device: the initial blocks of a steady iteration are prefetched in the order of
 * first use, as far as there is room until then. Tensors that are alive at compile time outside their slots' places
 * (bound_addr) stay there until they are freed. A value. Iteration path: O((uses + hints) x blocks of each).
 */
#ifndef UM_REPLAY_COMPILED_PLAN_H
#define UM_REPLAY_COMPILED_PLAN_H

#include "base/vec.h"
#include "model/plan.h"

/* Maximum number of blocks in an action: enough to amortise the cost of a call, few enough that the other lane does not
 * wait long for room or content, and that several workers share the evictions. bench/results/2026-11-24-runs.md */
#define UM_RUN_IN 2
#define UM_RUN_OUT 2 /* the default: um_evict_policy_runs chooses */
#define UM_RUN_DROP 4
#define UM_RUN_DEAD 16 /* as a plan begins: prefetches wait for each call. bench/results/2026-12-01-plans-begin.md */

/* DROP_WITH_COPY is a drop of dead blocks that must not or cannot be discarded, or that a paged op will fault on: of a
 * discarded block, each page of 4 KiB would fault for itself. So leaves what the CPU waits for, too. DROP_CLEAN drops
 * read-mostly blocks without a copy, since the host still has their content. EVICT_OR_DROP does the same with blocks
 * that may have been on the device before they were read mostly: those are copied. LEAVE_TO_DRIVER is an out without a
 * call: the driver evicts the block when room is needed. REFRESH prefetches resident blocks, so that the driver does
 * not evict them (driver_evict.h). */
enum um_action_kind {
	UM_ACTION_PREFETCH,
	UM_ACTION_EVICT,
	UM_ACTION_DISCARD,
	UM_ACTION_DROP_WITH_COPY,
	UM_ACTION_DROP_CLEAN,
	UM_ACTION_EVICT_OR_DROP,
	UM_ACTION_LEAVE_TO_DRIVER,
	UM_ACTION_REFRESH
};

#define UM_ACTION_ALL_STREAMS UINT8_MAX

struct um_action {
	enum um_action_kind kind;
	uint32_t at; /* issued just before this op is launched; n_ops of the plan: never */
	uint32_t slot; /* the block is at this slot's current place; UM_NO_SLOT: at its planned place (without a live
		          tensor) */
	uint64_t addr, bytes; /* as planned: whole blocks */
	int32_t room; /* in: number of outs of this iteration that must be complete before it, to have room; else:
		         number of ins that must have arrived. <= 0 refers to the previous iteration, INT32_MIN none */
	uint32_t drops; /* in: number of drops of this iteration, plus all of the previous one, that must be complete
			   before it */
	uint16_t evicts; /* in: blocks that the driver evicts for it */
	uint16_t resident; /* in: blocks of it that were not evicted since their out */
	uint8_t streams; /* out, drop: the streams that use its blocks: a bit each */
};

/* Blocks that page faults of a paged op make resident; `copied`: with content. */
struct um_compiled_plan_faults {
	uint32_t op, blocks, copied;
};

/* One iteration. */
struct um_compiled_iteration {
	UM_VEC(struct um_action) actions; /* by at */
	uint32_t *first; /* [n_ops + 1]: the first action with at >= op */
	int32_t *gate; /* [n_ops]: number of ins of this iteration that must have arrived before the op; <= 0: of the
		          previous one, INT32_MIN none */
	uint32_t n_in, n_out, n_drop; /* actions in each lane */
	UM_VEC(struct um_compiled_plan_faults) faults; /* by op */
};

/* A run of whole blocks. */
struct um_compiled_plan_run {
	uint64_t addr, bytes;
};

#define UM_COMPILED_PLAN_STEADY 2

struct um_compiled_plan {
	struct um_compiled_iteration iterations[UM_COMPILED_PLAN_STEADY + 1]; /* the first, the second, all others */
	uint32_t n_ops;
	UM_VEC(struct um_action) stays; /* blocks that may stay until the first iteration evicts them */
	/* By prefetch of the first iteration: number of blocks on the device once it is complete, with all evictions in
	 * progress that it does not wait for. */
	UM_VEC(uint64_t) occupied;
	int settled; /* the second iteration's outs equal those of all later ones */
	UM_VEC(uint64_t) blocks; /* addresses of all blocks under slots, ascending */
	UM_VEC(struct um_compiled_plan_run) read_mostly; /* runs to be advised read-mostly, ascending */
	UM_VEC(struct um_compiled_plan_run) host_resident; /* likewise, host-resident */

	uint32_t run_out; /* set before compilation, by um_compiled_plan_init or the caller: as UM_RUN_OUT */
	uint64_t over; /* number of ins without room by this count: the driver will evict */
	uint64_t host; /* blocks that leave the device in a steady iteration, with or without content, or stay on the
			  host: the driver gives each of them host memory */
	uint64_t peak; /* blocks that are resident at most, in all compiled iterations, whenever evictions that no
			  prefetch waits for end; without blocks of supplied tensors that are being evicted */
	uint64_t peak_others; /* blocks that are not of supplied tensors, of those that are resident, at most */
	uint64_t supplied_leaving; /* blocks of supplied tensors that are being evicted, at most */
	uint64_t for_cpu; /* blocks that a steady iteration evicts for the CPU: their room is reserved for the first
			     supplied tensors that leave, as that of other evictions in progress */
	/* For a completely compiled plan: */
	uint8_t *resident; /* by block: on the device when a steady iteration ends */
	uint32_t *from; /* by block: the block whose memory it has in the next iteration; its own number unless tensors
			   rotate through several places */
	uint32_t *rotating; /* by block: the rotating slot in it, UM_NO_SLOT */
	int ambiguous; /* the rotation is not one to one */
	int driver_evicts; /* steady iterations leave evictions to the driver */
};

void um_compiled_plan_init(struct um_compiled_plan *p);
void um_compiled_plan_fini(struct um_compiled_plan *p);
void um_compiled_iteration_fini(struct um_compiled_iteration *iteration);

/* The number of the block at `addr`, or of the first one after it. */
size_t um_compiled_plan_find(const struct um_compiled_plan *p, uint64_t addr);

/* Compiles. 0 or -ENOMEM. */
int um_compiled_plan_build(const struct um_plan *plan, uint64_t capacity_blocks, struct um_compiled_plan *out);

/* Issues prefetches as soon as what they wait for is queued, in all iterations but the first: what that issues at its
 * begin may stay on the device. Not where the driver evicts: it does so in the order of issue as compiled. 0 or
 * -ENOMEM. */
int um_compiled_plan_issue_early(struct um_compiled_plan *p, const struct um_plan *plan);

/* Only the steady iteration, with prefetches issued early, in half the time: for evaluation, not for execution. */
int um_compiled_plan_build_steady(const struct um_plan *plan, uint64_t capacity_blocks, struct um_compiled_plan *out);

/* The bytes of `host` of the plan's steady iteration, compiled for its budget, with the `n` blocks at `others`
 * (ascending), which have left the device before. 0 or -ENOMEM. */
int um_compiled_plan_host(const struct um_plan *plan, const uint64_t *others, size_t n, uint64_t *bytes);
/* Calls `fn` for each block that an action of the plan evicts; some more than once. */
void um_compiled_plan_visit_leaving(const struct um_compiled_plan *p, void (*fn)(void *user, uint64_t addr),
				    void *user);

/* A tensor that is born in one iteration and freed in the next stays, in the first iteration, at its current place
 * (bound_addr) until it is freed. */
int um_compiled_plan_has_twin(const struct um_schedule *sched, uint32_t slot);
/* Of such a slot: does op `at` of the first iteration use the tensor at that place? */
static inline int um_compiled_plan_is_before(const struct um_slot *slot, uint32_t at)
{
	return slot->birth < 0 || (int32_t)at < slot->birth;
}

#endif
