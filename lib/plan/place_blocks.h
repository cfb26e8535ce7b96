/* SPDX-License-Identifier: Apache-2.0
 *
 * place_blocks.h - the 2 MiB blocks that a packing occupies
 *
 * in    ranges of addresses with their arcs, none of which overlap at the same time
 * out   the most blocks with live content at once, and the most live bytes at once
 *
 * This is the memory that a packing needs: a block without live content needs none. O(n log n).
 */
#ifndef UM_PLAN_PLACE_BLOCKS_H
#define UM_PLAN_PLACE_BLOCKS_H

#include "plan/place_list.h"

struct um_place_range {
	uint64_t addr, bytes; /* bytes > 0 */
	struct um_place_arc arc;
};

/* `n_ops`: length of the iteration; arcs end there. 0 or -ENOMEM. */
int um_place_blocks(const struct um_place_range *range, size_t n, int32_t n_ops, uint64_t *blocks, uint64_t *bytes);

#endif
