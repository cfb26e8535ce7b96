/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_again.h - lets a plan of the library launch ops again
 *
 * in    a plan that the library made, which only swaps
 * out   a faster plan with recompute hints, if there is one
 *
 * A recorded workload has nothing to launch, so the library that plays it makes plans that only swap. The tool's plans
 * may also use scratch memory, and bring content back that several ops wrote; the library's do not.
 */
#ifndef UM_PLAY_PLAN_AGAIN_H
#define UM_PLAY_PLAN_AGAIN_H

#include "model/plan.h"
#include "model/profile.h"

/* May some op of the schedule be launched again? */
int um_plan_again_can(const struct um_schedule *s);

int um_plan_again(struct um_plan *plan, const struct um_profile *profile); /* 0 or -ENOMEM */

#endif
