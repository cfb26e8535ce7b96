/* SPDX-License-Identifier: Apache-2.0
 *
 * advice_state.h - the advice currently in effect for memory
 *
 * in    runs of blocks to be read mostly, or host-resident (model/host_resident.h); uses by ops outside the plan
 * out   calls of cudaMemAdvise
 * owns  the list of advised runs
 *
 * Advice blocks the caller until hints in progress are complete, and delays others: it is given when a plan is adopted,
 * and withdrawn when it no longer holds. It takes effect when it is called, not in the order of a stream: ops that were
 * launched earlier and still look up in a host-resident range would fault without it. So such advice may end first, and
 * be withdrawn later. Plan path, except um_advice_state_touches and um_advice_state_has, which search the runs. Not
 * thread-safe; the caller makes sure that no worker uses these blocks.
 */
#ifndef UM_REPLAY_ADVICE_STATE_H
#define UM_REPLAY_ADVICE_STATE_H

#include "gpu/gpu.h"
#include "replay/compiled_plan.h"

struct um_advice_runs { /* ascending, disjoint */
	struct um_compiled_plan_run *at;
	size_t n, cap;
};

struct um_advice_state {
	struct um_advice_runs runs;
	/* Runs that are not advised any more, whose advice is still to be withdrawn: those that have ended since the
	 * latest um_advice_state_withdraw, and those before. Not ascending. */
	struct um_advice_runs ending, due;
	struct um_advice_runs ended; /* by the latest um_advice_state_set: copies on the device were dropped */
	int host_resident; /* accessed by the device and preferred on the host; otherwise read mostly */
	int noted; /* some runs may not be advised yet: their requests may have been dropped */
	uint64_t refused; /* refused calls */
};

/* From now on exactly these runs (ascending, disjoint) are advised, except those that the device refuses. Others end if
 * they are host-resident; otherwise their advice is withdrawn. 0; -ENOMEM: none are. */
int um_advice_state_set(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *runs,
			size_t n);

/* Would that change anything? */
int um_advice_state_differs(const struct um_advice_state *m, const struct um_compiled_plan_run *runs, size_t n);

/* These blocks are advised, too. 0, -ENOTSUP: the device refuses, or -ENOMEM. */
int um_advice_state_add(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes);

/* These blocks, which are not advised, will be by another thread. 0 or -ENOMEM. Op path: a run grows, or is added. */
int um_advice_state_note(struct um_advice_state *m, uint64_t addr, uint64_t bytes);

/* Withdraws the advice for the blocks that [addr, addr + bytes) touches. */
void um_advice_state_clear(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes);

/* The same blocks are not advised any more; their advice is withdrawn later. */
void um_advice_state_end(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes);
static inline int um_advice_state_any_ended(const struct um_advice_state *m)
{
	return m->ending.n || m->due.n;
}

/* Withdraws the advice that had ended at the call before this one. */
void um_advice_state_withdraw(struct um_advice_state *m, struct um_gpu *gpu);

int um_advice_state_ended(const struct um_advice_state *m, uint64_t addr); /* is the block in `ended`? */
int um_advice_state_search(const struct um_advice_state *m, uint64_t addr, uint64_t bytes); /* is any part advised? */
int um_advice_state_has(const struct um_advice_state *m, uint64_t addr, uint64_t bytes); /* is all of it advised? */

/* um_advice_state_search, if there are any runs. */
static inline int um_advice_state_touches(const struct um_advice_state *m, uint64_t addr, uint64_t bytes)
{
	const struct um_compiled_plan_run *first = m->runs.at, *end = first + m->runs.n;

	return m->runs.n && addr + bytes > first->addr && addr < end[-1].addr + end[-1].bytes &&
	       um_advice_state_search(m, addr, bytes);
}

void um_advice_state_fini(struct um_advice_state *m); /* does not withdraw advice */

#endif
