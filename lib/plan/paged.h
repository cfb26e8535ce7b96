/* SPDX-License-Identifier: Apache-2.0
 *
 * paged.h - ops that use more blocks than the budget holds
 *
 * in    blocks, the number of blocks that may be resident
 * out   such ops are marked `paged` in the schedule; of their visits, which are prefetched and which are left to the
 *       driver; gaps that no block stays on the device for
 *
 * The driver pages such an op: it brings in blocks by page faults, in the order in which the op reaches them, and
 * evicts others, of whatever tensor. So all other blocks are evicted before it, as many of its own are prefetched as
 * there is room for, first those that the op reaches first, and after it no block is taken to be resident. /
 */
#ifndef UM_PLAN_PAGED_H
#define UM_PLAN_PAGED_H

#include "plan/blocks.h"

/* Marks the ops, after the blocks were built. Returns their number, or -ENOMEM. O(visits). */
int um_paged_mark(struct um_blocks *b, struct um_schedule *s, uint64_t capacity_blocks);

#endif
