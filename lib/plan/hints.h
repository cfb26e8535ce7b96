/* SPDX-License-Identifier: Apache-2.0
 *
 * hints.h - what blocks do, said of slots
 *
 * in    blocks, the gaps they spend away, the order of returns
 * out   hints, in the order of issue
 *
 * A block that leaves or returns is one hint for each slot that has content in it; neighbouring parts of one slot that
 * move together are one hint. A tensor just born needs a hint as well: its bytes must be resident, though none are moved.
 */
#ifndef UM_PLAN_HINTS_H
#define UM_PLAN_HINTS_H

#include "model/plan.h"
#include "plan/timeline.h"

/* By op: touches whose part must become resident for them, without a copy. */
struct um_arrivals {
	uint32_t *first; /* by op, into touch; n_ops + 1 */
	uint32_t *touch;
	uint8_t *any; /* by op */
};

int um_arrivals_build(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c); /* 0 or -ENOMEM */
void um_arrivals_fini(struct um_arrivals *a);

/* Fills out->hints (emptied first) from out->sched. `merge`: blocks in one hint that copies, at most. 0 or -ENOMEM. */
int um_hints_build(struct um_plan *out, const struct um_blocks *b, const struct um_choice *c,
                   const struct um_arrivals *a, const struct um_timeline *t, uint32_t merge);

#endif
