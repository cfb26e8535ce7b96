/* SPDX-License-Identifier: Apache-2.0
 *
 * returns.h - the earliest start of each return
 *
 * in    blocks, the gaps in which they are off the device
 * out   one move for neighbouring blocks that are needed together, in order of need, each with its earliest start
 *
 * A return may start as early as the load and all returns needed before it leave room until it is needed itself: no
 * block needed sooner is displaced.
 */
#ifndef UM_PLAN_RETURNS_H
#define UM_PLAN_RETURNS_H

#include "plan/choose.h"

/* Blocks that return after gaps back[first] .. back[first + n - 1]. */
struct um_move {
	int32_t need; /* the op that they are needed for */
	int32_t after; /* < need; negative: in the iteration before */
	uint32_t first, n;
	uint64_t bytes;
};

struct um_returns {
	uint32_t *back; /* visits */
	struct um_move *move;
	uint32_t n_back, n_moves;
};

/* `limit`: blocks; `merge`: maximum number of blocks in a move. `not_before`: by visit, the position, at most the gap's
 * end, from which on the return after it may start; NULL: no limit. Adds the returns to c->load. 0 or -ENOMEM. */
int um_returns_build(struct um_returns *r, const struct um_blocks *b, struct um_choice *c, int32_t limit,
		     uint32_t merge, const int32_t *not_before);
void um_returns_fini(struct um_returns *r);

#endif
