/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h - the fastest of several plans
 *
 * in    blocks, a plan without hints (schedule, budget, rates)
 * out   the plan's hints, sound by um_plan_check, and predicted_ns
 *
 * Some ways of choosing what leaves, our own and those of others, are carried through to hints and proved. Then the
 * best is learned from: what an op waited for is chosen less in the next round; and varied at random. What is kept is
 * sound, and of plans that predict much the same the one that does best in a rehearsal, if the caller has one; with
 * advice (advice.h), which is none of the published schemes' ideas. Unless more effort is asked for, the number of
 * rounds is a matter of the schedule's size alone, so that equal requests give equal plans.
 */
#ifndef UM_PLAN_SEARCH_H
#define UM_PLAN_SEARCH_H

#include "model/plan.h"
#include "plan/blocks.h"
#include "plan/planner.h"

/* 0; -ENOMEM; -E2BIG (what is in use around one op does not fit) or -EINVAL (nothing sound found) with one line in
 * `why`. */
int um_search_run(const struct um_blocks *b, const struct um_plan_effort *effort,
		  const struct um_plan_rehearsal *rehearsal, struct um_plan *out, char *why, size_t size);

#endif
