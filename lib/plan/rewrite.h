/* SPDX-License-Identifier: Apache-2.0
 *
 * rewrite.h - an iteration with relaunches as an ordinary iteration, and its plan as a plan with recompute hints
 *
 * in    a schedule with places, gaps in which content is dropped
 * out   a schedule in which each relaunch is an op, with scratch slots; content that is dropped is dead until a
 *       relaunch overwrites it. Hints for that schedule become hints for the first one
 *
 * The planner of swaps plans the rewritten iteration as any other: dead content leaves without a copy.
 */
#ifndef UM_PLAN_REWRITE_H
#define UM_PLAN_REWRITE_H

#include "model/plan.h"
#include "plan/drops.h"

struct um_launch {
	int32_t op; /* of the program; of a relaunch the one that it repeats */
	int again; /* a relaunch */
};

struct um_rewritten {
	struct um_plan plan; /* its schedule borrows the names of the first one */
	struct um_launch *launch; /* by op of this schedule */
	uint64_t again_ns, scratch_bytes; /* sum of the relaunches' times; of addresses for scratch slots */
};

struct um_rewrite_rule {
	uint64_t near_ns; /* as in um_drops_rule */
	uint64_t scratch_from; /* as in um_burst */
	uint64_t scratch_at; /* address of scratch slots; a multiple of 2 MiB */
};

/* Drops the first `n` gaps. `from` gives the schedule, whose ops have times, and the header. 0; -ENOMEM; -EINVAL: too
 * many relaunches at once. Plan path. */
int um_rewrite_build(struct um_rewritten *w, const struct um_plan *from, const struct um_versions *v,
		     const struct um_drops *drops, uint32_t n, const struct um_rewrite_rule *rule);
void um_rewritten_fini(struct um_rewritten *w);

/* Moves the hints of w->plan into `to`, the plan that was rewritten, with recompute hints and scratch slots. 0 or
 * -ENOMEM. */
int um_rewritten_fold(const struct um_rewritten *w, struct um_plan *to);

#endif
