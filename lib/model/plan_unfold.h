/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_unfold.h - a plan with recompute hints as one without: each relaunch becomes an op
 *
 * in    a plan
 * out   a plan whose ops are all launches of an iteration, in order: the program's ops, and before each of them its
 *       relaunches. Lifetimes and hints refer to launches; recompute hints are gone. `again` of an op tells which
 *       launch it repeats
 * owns  the plan and the arrays
 *
 * A relaunch uses what its op reads, except side state, and the slots of its `relaunch`; scratch slots replace some of
 * them. A scratch slot lives from the first to the last relaunch that uses it.
 */
#ifndef UM_MODEL_PLAN_UNFOLD_H
#define UM_MODEL_PLAN_UNFOLD_H

#include "model/plan.h"

struct um_unfolded_plan {
	struct um_plan plan;
	int32_t *op; /* by launch: the op, or for a relaunch the one that it precedes */
	int32_t *launch; /* by op: its launch by the program */
};

/* Is there a recompute hint? */
int um_plan_recomputes(const struct um_plan *p);

/* The access of a relaunch to the slot of one of its op's uses: enum um_access, 0 if it does not use it. */
uint32_t um_relaunch_access(const struct um_schedule *s, const struct um_sched_op *op, const struct um_sched_use *use);

/* 0; -EINVAL with the reason as in um_plan_check if a recompute hint or a scratch slot is not valid; -ENOMEM. The rules
 * of plan_check.c for schedules and hints hold. Plan path: linear. */
int um_plan_unfold(const struct um_plan *p, struct um_unfolded_plan *out, char *why, size_t size);
void um_unfolded_plan_fini(struct um_unfolded_plan *u);

#endif
