/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_gap.h - logs, once per plan, that its iterations take clearly more or less time than predicted, and why
 *
 * in    measured iterations of a plan (iteration_clock.h), its prediction
 * out   one log line: a warning if they take more
 * owns  nothing
 *
 * The first measurement is not judged, unless it is the only one: what the plan began with may still delay it.
 * Iteration path.
 */
#ifndef UM_RUNTIME_PLAN_GAP_H
#define UM_RUNTIME_PLAN_GAP_H

#include "runtime/iteration_clock.h"
#include "runtime/notices.h"

#define UM_PLAN_GAP_PERCENT 10

struct um_plan_gap {
	unsigned measurements; /* of this plan */
	int logged;
};

/* A new measurement; `last`: none will follow. `misplaced`: births of the last iteration at other addresses than
 * planned. */
void um_plan_gap_check(struct um_plan_gap *g, const struct um_iteration_time *t, uint64_t predicted_ns,
		       uint64_t misplaced, int last, struct um_notices *notices);

#endif
