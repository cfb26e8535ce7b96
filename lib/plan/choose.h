/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.h - chooses the gaps in which blocks are off the device (lookahead)
 *
 * in    blocks with their gaps, the number of blocks that may be resident
 * out   a set of gaps such that at every op the touched and the kept blocks fit; steady, since the iteration is a
 *       circle
 */
#ifndef UM_PLAN_CHOOSE_H
#define UM_PLAN_CHOOSE_H

#include "plan/blocks.h"
#include "plan/load.h"

/* Order in which blocks are evicted in the gaps around an op, the largest value first: end of the gap - begin / 16 of
 * its begin + clean / 16 of the iteration if its block was not written just before, on the given clock. 0 and 0 is
 * Belady's rule; 16 orders by length. Content that leaves without a copy is always evicted before other content. */
struct um_choose_rule {
	const uint64_t *clock; /* by op, when it starts; n_ops + 1. Borrowed */
	const int64_t *penalty; /* by visit, subtracted. Borrowed */
	int begin, clean;
	int copies; /* content that ops overwrite leaves with a copy */
	/* Host memory (model/plan_host.h). `host`: by block, 1 if it was evicted before; the sweep adds to it.
	 * Borrowed. Once `free_host` blocks were evicted, the sweep prefers them as victims. UINT32_MAX: no limit */
	uint8_t *host;
	uint32_t free_host;
};

struct um_choice {
	uint8_t *evicted; /* by visit: the block is evicted after it */
	struct um_load load; /* blocks resident by op, under this choice */
	int32_t min_load_op; /* an op with minimum load */
	uint32_t n_evicted;
	uint32_t *next; /* by visit: the first one from it on in its block after which the block is off the device;
			   UINT32_MAX if none */
	uint32_t *first; /* by touch: see um_choice_first */
	uint32_t *gone; /* the n_evicted visits after which a block is off the device, ascending */
	uint32_t *left, n_left; /* touches after which their part is off the device, ascending */
	uint8_t *keep_resident; /* by visit: must not be evicted after it. Borrowed: outlives the choice */
};

/* Initially all blocks are resident, except those that a paged op evicts: fills `load` and `min_load_op`. 0 or
 * -ENOMEM. */
int um_choice_init(struct um_choice *c, const struct um_blocks *b, uint8_t *keep_resident);
void um_choice_fini(struct um_choice *c);

/* Evicts blocks in gaps until at most `limit` blocks are resident at each op. 0, -ENOMEM, -E2BIG (impossible). */
int um_choice_build(struct um_choice *c, const struct um_blocks *b, int32_t limit, const struct um_choose_rule *rule);

/* Computes n_evicted, next, first, gone and left from `evicted`, for callers that set `evicted` (and subtract it from
 * the load) themselves. */
void um_choice_settle(struct um_choice *c, const struct um_blocks *b);

/* The first gap after a touch, before the next touch of its part or its free, in which the block is off the device;
 * UINT32_MAX if there is none. */
static inline uint32_t um_choice_first(const struct um_choice *c, uint32_t touch)
{
	return c->first[touch];
}

/* Must the block be off the device after visit v? Also if its next visit follows directly after a paged op: then the
 * block only returns. */
static inline int um_choice_must_leave(const struct um_blocks *b, uint32_t v)
{
	const struct um_visit *x = &b->visit[v];

	return x->paged_at >= 0 && (x->can_leave || b->after[v] != UINT32_MAX);
}

/* Does a copy return after visit v, if its block is off the device there? */
static inline int um_choice_returns(const struct um_blocks *b, uint32_t v)
{
	return b->visit[v].live && b->after[v] != UINT32_MAX && !b->visit[b->after[v]].absent;
}

/* The gaps with a return, in order of need counted from op `from` on, then of visits: into `back`, which has room for
 * n_evicted of them. 0 or -ENOMEM. */
int um_choice_list_returns(const struct um_choice *c, const struct um_blocks *b, int32_t from, uint32_t *back,
			   uint32_t *n);

#endif
