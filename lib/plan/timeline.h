/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.h - in which order the host-to-device engine works
 *
 * in    blocks, the gaps they spend away, returns, ops' times, link rates
 * out   moves: returns that copy, and arrivals (births, and dead content that is to be written again), each with the op
 *       after which it may start
 *
 * Positions are ops of the iteration in which a move is needed, negative ones in the iteration before.
 */
#ifndef UM_PLAN_TIMELINE_H
#define UM_PLAN_TIMELINE_H

#include "plan/arrivals.h"
#include "plan/returns.h"

struct um_timing {
	uint64_t budget; /* bytes */
	uint64_t h2d, d2h; /* bytes/s */
	int eager; /* arrivals go ahead of a return that would be under way when they are due */
};

struct um_timeline {
	UM_VEC(struct um_move) moves; /* in the engine's order; n == 0: the arrivals of op `need` */
	uint64_t ns; /* estimate of the steady iteration */
	uint32_t too_short; /* gaps that end before their block has begun to leave: marked in c->keep_resident */
	uint64_t *start; /* by op: when it starts, in the steady iteration; one more */
	uint64_t *stall; /* by visit: ns that something waited for its block to leave or to return */
};

/* 0 or -ENOMEM. */
int um_timeline_build(struct um_timeline *t, const struct um_blocks *b, const struct um_schedule *s,
		      const struct um_choice *c, const struct um_arrivals *a, const struct um_returns *r,
		      const struct um_timing *timing);
void um_timeline_fini(struct um_timeline *t);

#endif
