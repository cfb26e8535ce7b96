/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_launches.h - a plan that launches ops again as one that does not
 *
 * in    a sound plan, the times of its ops
 * out   the unfolded plan, whose relaunches are ops of the program and whose scratch slots are its tensors. What a
 *       relaunch overwrites is declared dead before
 * owns  the plan and the arrays
 */
#ifndef UM_MODEL_PLAN_LAUNCHES_H
#define UM_MODEL_PLAN_LAUNCHES_H

#include "model/plan_unfold.h"

struct um_plan_launches {
	struct um_unfolded_plan unfolded;
	uint64_t *ns; /* by launch */
	uint64_t core_ns; /* their sum, without relaunches */
	uint32_t *again; /* by launch: 1 + the op of the program that it repeats; 0: the program's own */
};

/* `ns`: by op of the plan. 0 or -ENOMEM. Linear. */
int um_plan_launches_build(struct um_plan_launches *l, const struct um_plan *p, const uint64_t *ns);
void um_plan_launches_fini(struct um_plan_launches *l);

#endif
