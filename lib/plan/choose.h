/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.h - the gaps that blocks spend away from the device
 *
 * in    blocks with their gaps, how many may be resident
 * out   a set of gaps such that at every op what is touched and what stays fits; steady, since the iteration is a
 *       circle
 */
#ifndef UM_PLAN_CHOOSE_H
#define UM_PLAN_CHOOSE_H

#include "plan/blocks.h"
#include "plan/load.h"

/* Which of the gaps around an op to give up first: the one with the most of
 *
 *     when it ends - begin / 16 of when it began + clean / 16 of the iteration if its block was not written just before
 *
 * on the given clock. 0 and 0 is Belady's rule; 16 goes by length. What is dead always goes before what is alive. */
struct um_choose_rule {
	const uint64_t *clock; /* by op, when it starts; n_ops + 1. Borrowed */
	const int64_t *penalty; /* by visit, how much less. Borrowed */
	int begin, clean;
};

struct um_choice {
	uint8_t *away; /* by visit: the block leaves behind it */
	struct um_load load; /* blocks resident by op, under this choice */
	int32_t min_load_op; /* an op where the load is least */
	uint32_t n_away;
	uint32_t *next; /* by visit: the first from it on in its block behind which that is away; UINT32_MAX if none */
	uint32_t *first; /* by touch: see um_choice_first */
	uint32_t *gone; /* the n_away visits behind which a block is away, ascending */
	uint32_t *left, n_left; /* touches behind which that of their part is away, ascending */
	uint8_t *keep_resident; /* by visit: must not leave behind it. Borrowed: outlives the choice */
};

/* Everything kept: fills `load` and `min_load_op`. 0 or -ENOMEM. */
int um_choice_init(struct um_choice *c, const struct um_blocks *b, uint8_t *keep_resident);
void um_choice_fini(struct um_choice *c);

/* Gives up gaps until no op sees more than `limit` blocks. 0, -ENOMEM, -E2BIG (cannot be). */
int um_choice_build(struct um_choice *c, const struct um_blocks *b, int32_t limit, const struct um_choose_rule *rule);

/* Can the block be away behind visit v? Not where that frees nothing, nor with content that has no return in sight. */
static inline int um_choice_can_leave(const struct um_blocks *b, uint32_t v)
{
	return b->visit[v].held > b->visit[v].op + 1 && !(b->visit[v].live && b->after[v] == UINT32_MAX);
}

/* Fills n_away, next, first, gone and left from `away`, for who sets that himself (and takes it off the load). */
void um_choice_settle(struct um_choice *c, const struct um_blocks *b);

/* The first gap behind a touch, before the next touch of its part or its free, in which the block is away; UINT32_MAX
 * if there is none. */
static inline uint32_t um_choice_first(const struct um_choice *c, uint32_t touch)
{
	return c->first[touch];
}

/* Does a copy come back behind visit v, if its block is away there? */
static inline int um_choice_returns(const struct um_blocks *b, uint32_t v)
{
	return b->visit[v].live && b->after[v] != UINT32_MAX;
}

/* The gaps with a return, in order of need as counted from op `from` on, then of visits: into `back`, which has room
 * for n_away of them. 0 or -ENOMEM. */
int um_choice_list_returns(const struct um_choice *c, const struct um_blocks *b, int32_t from, uint32_t *back,
			   uint32_t *n);

#endif
