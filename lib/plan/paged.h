/* SPDX-License-Identifier: Apache-2.0
 *
 * paged.h - ops that use more blocks than the budget holds
 *
 * in    blocks, the number of blocks that may be resident
 * out   `paged` of these ops in the schedule; `absent` of their visits that page faults serve, and of the CPU's visits;
 *       `in_part` of accesses of the CPU for which a block need not leave; `paged_at` of gaps during which no block
 *       stays on the device
 *
 * The driver pages such an op: it migrates blocks by page faults, in the order of the op's accesses, and evicts any
 * others. So all other blocks are evicted before the op, as many of its own as fit are prefetched, in the order of
 * access, and after it no block is assumed to be resident.
 */
#ifndef UM_PLAN_PAGED_H
#define UM_PLAN_PAGED_H

#include "plan/blocks.h"

/* Marks the ops, after the blocks were built. Returns their number, or -ENOMEM. O(visits). */
int um_paged_mark(struct um_blocks *b, struct um_schedule *s, uint64_t capacity_blocks);

#endif
