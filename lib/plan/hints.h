/* SPDX-License-Identifier: Apache-2.0
 *
 * hints.h - turns evictions and returns of blocks into hints on slots
 *
 * in    blocks, the gaps in which they are off the device, the order of returns
 * out   hints, in the order of issue
 *
 * A block that is evicted or returns is one hint for each slot with content in it; neighbouring parts of one slot that
 * move together are one hint. A tensor just born needs a hint as well: its bytes must be resident, although none are
 * moved.
 */
#ifndef UM_PLAN_HINTS_H
#define UM_PLAN_HINTS_H

#include "model/plan.h"
#include "plan/timeline.h"

/* Fills out->hints (emptied first) from out->sched. `merge`: maximum number of blocks in a hint that copies. 0 or
 * -ENOMEM. */
int um_hints_build(struct um_plan *out, const struct um_blocks *b, const struct um_choice *c,
		   const struct um_arrivals *a, const struct um_returns *r, const struct um_timeline *t,
		   uint32_t merge);

#endif
