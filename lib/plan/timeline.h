/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.h - estimates the times of a plan, and the order of the host-to-device engine
 *
 * in    blocks, the gaps in which they are off the device, returns, ops' times, link rates
 * out   moves: returns that copy, and arrivals (births, and dead content that is written again), each with the op after
 *       which it may start
 *
 * Positions are ops of the iteration in which a move is needed, negative ones in the previous iteration.
 */
#ifndef UM_PLAN_TIMELINE_H
#define UM_PLAN_TIMELINE_H

#include "plan/arrivals.h"
#include "plan/returns.h"

struct um_timing {
	uint64_t budget; /* bytes */
	uint64_t h2d, d2h; /* bytes/s */
	int eager; /* arrivals precede a return that would be in progress when they are due */
	int copies; /* content that ops overwrite is copied when it leaves, as the library does */
};

struct um_timeline {
	UM_VEC(struct um_move) moves; /* in the engine's order; n == 0: the arrivals of op `need` */
	uint64_t ns; /* estimate of the steady iteration */
	uint32_t too_short; /* gaps that end before the eviction has begun: marked in c->keep_resident */
	uint64_t *start; /* by op: its start, in the steady iteration; one more entry */
	uint64_t *stall; /* by visit: time waited for its block's eviction or return */
};

/* 0 or -ENOMEM. */
int um_timeline_build(struct um_timeline *t, const struct um_blocks *b, const struct um_schedule *s,
		      const struct um_choice *c, const struct um_arrivals *a, const struct um_returns *r,
		      const struct um_timing *timing);
void um_timeline_fini(struct um_timeline *t);

#endif
