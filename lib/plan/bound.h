/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h - a lower bound for the time of an iteration under any plan
 *
 * in    blocks, ops' times, a budget, link rates
 * out   a time that no plan without recomputation can beat
 *
 * Take an op p. Of the content alive around it, the excess over the budget is off the device while it runs. Of that,
 * content written since op i must have been copied out between i and p, and content needed by op j must be copied in
 * between p and j. So the ops from i to p take at least as long as the one copy, those from p to j as long as the
 * other, and the rest as long as they take. The bound is the largest such sum over some of the fullest ops and all i
 * and j.
 */
#ifndef UM_PLAN_BOUND_H
#define UM_PLAN_BOUND_H

#include "plan/blocks.h"

struct um_bound_link {
	uint64_t budget; /* bytes */
	uint64_t h2d, d2h; /* bytes/s */
};

/* 0 and *ns (at least the sum of the ops' times), or -ENOMEM. O(touches). */
int um_bound_build(const struct um_blocks *b, const struct um_schedule *s, const struct um_bound_link *link,
		   uint64_t *ns);

#endif
