/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.h - when blocks that are away come back
 *
 * in    blocks, the gaps they spend away, ops' times, link rates
 * out   the order in which the host-to-device engine works: returns that copy, and arrivals (births, and dead content
 *       that is to be written again), each with the op after which it may start
 *
 * Returns are in order of need. Each may start as early as blocks and all returns before it leave room until it is
 * needed: nothing needed sooner is displaced. Positions are ops of the iteration in which a return is needed, negative
 * ones in the iteration before.
 */
#ifndef UM_PLAN_TIMELINE_H
#define UM_PLAN_TIMELINE_H

#include "plan/choose.h"

struct um_timing {
	uint64_t h2d, d2h; /* bytes/s */
	uint32_t merge; /* blocks in one hint, at most */
	int eager; /* arrivals go ahead of a return that would be under way when they are due */
};

/* A return: blocks that come back behind gaps back[first] .. back[first + n - 1]; n == 0: the arrivals of op `need`. */
struct um_move {
	int32_t need;
	int32_t after; /* < need */
	uint32_t first, n;
	uint64_t bytes;
};

struct um_timeline {
	uint32_t *back; /* visits behind which a return's blocks are away */
	uint32_t n_back;
	UM_VEC(struct um_move) moves; /* in the engine's order */
	uint64_t ns; /* estimate of the steady iteration */
};

/* `arrives`: by op, 1 if something arrives. Adds the returns to c->load. 0 or -ENOMEM. */
int um_timeline_build(struct um_timeline *t, const struct um_blocks *b, const struct um_schedule *s,
                      struct um_choice *c, int32_t limit, const uint8_t *arrives, const struct um_timing *timing);
void um_timeline_fini(struct um_timeline *t);

#endif
