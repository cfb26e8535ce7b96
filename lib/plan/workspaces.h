/* SPDX-License-Identifier: Apache-2.0
 *
 * workspaces.h - chooses an algorithm for each op that offers workspaces
 *
 * in    a schedule whose ops offer workspaces, a function that makes a plan once they are chosen
 * out   the plan with the choice for which the steady iteration is shortest
 *
 * Choosing and moving are not planned together: a choice is written into the schedule as slots (model/workspace.h),
 * which is planned as any other. Some choices between the fastest algorithms and the smallest workspaces are tried
 * with little work, the best one, the smallest and the fastest with the usual work. So the plan is never slower than
 * with the smallest workspaces.
 */
#ifndef UM_PLAN_WORKSPACES_H
#define UM_PLAN_WORKSPACES_H

#include "plan/planner.h"
#include "plan/scheme.h"

/* Makes a plan for r->sched, in which each algorithm is chosen. As um_plan_build. */
typedef int (*um_plan_build_fn)(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow, char *why,
				size_t size);

/* As um_plan_build. `scheme` NULL: lookahead. Plan path: some 10 plans with little work, and three with the usual. */
int um_workspaces_plan(const struct um_plan_request *r, const struct um_scheme *scheme, um_plan_build_fn build,
		       struct um_plan *out, uint64_t *grow, char *why, size_t size);

#endif
