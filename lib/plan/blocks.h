/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks.h - an iteration seen by 2 MiB blocks
 *
 * in    a schedule whose slots have places; what of them stays on the host (model/far.h)
 * out   blocks; their visits (ops that touch them) and the gap behind each visit, until the next one
 * owns  the arrays
 *
 * A block holds parts of slots. Between two touches of a part there is content to keep, unless the second overwrites
 * the part as a whole or the app declared it dead; what a gap has to move if its block is away is the sum over its
 * parts. Positions are ops; those behind the iteration's end (n + i: op i of the next one) stand for the wrap. A gap
 * that no visit ends (the tensor dies) has no return. A wanderer (place.h) has blocks of its own, which are named by
 * slot: the gap behind the last visit of one ends with the first visit of its successor's.
 */
#ifndef UM_PLAN_BLOCKS_H
#define UM_PLAN_BLOCKS_H

#include "model/host_resident.h"
#include "plan/baseline.h"

/* What becomes of a part behind one of its touches. */
enum um_fate {
	UM_FATE_NEEDED, /* the next touch wants the content */
	UM_FATE_DEAD, /* there is a next touch, but the content is not needed */
	UM_FATE_GONE /* no further touch before it is freed */
};

struct um_part {
	uint32_t slot, block;
	uint64_t off;
	uint32_t bytes;
	uint32_t first_touch; /* into part_touch; ends where the next part's begins */
};

struct um_touch {
	int32_t op;
	uint32_t part, visit;
	uint8_t needs, writes, dead_after;
	uint8_t reads_all, writes_all; /* one use does, of the whole part */
	uint8_t dense; /* one use does not only look up a little in its range */
	uint8_t born; /* the first touch in the tensor's life */
	uint8_t fate; /* enum um_fate */
	int32_t until; /* position of the next touch, or of the free */
};

struct um_visit {
	int32_t op;
	uint32_t block;
	uint32_t first_touch; /* into touch; ends where the next visit's begins */
	int32_t end; /* the gap behind it: position of the visit that ends it; == held if none does */
	int32_t held; /* from here on nothing in the block is held, <= end */
	uint32_t live; /* bytes to copy back if the block is away in the gap */
	uint32_t parts; /* hints that a departure and a return take */
};

struct um_block {
	uint32_t first_visit; /* into visit; ends where the next block's begins */
	uint32_t first_part; /* into block_part, likewise */
	int wanders; /* its one slot does */
};

struct um_blocks {
	int32_t n_ops;
	uint32_t n_parts, n_touches, n_visits, n_blocks;
	const struct um_host_resident *far; /* by slot, whole blocks that no touch is told of; NULL: none. Borrowed */
	uint32_t *successor; /* um_schedule_successors */
	uint32_t *first_part; /* by slot, into part; equal to the next slot's where no op touches it; slots + 1 */
	struct um_part *part; /* by slot, then offset; one more */
	struct um_touch *touch; /* by block, then op; one more */
	uint32_t *to; /* by touch: the next one of the tensor's part, UINT32_MAX if none */
	uint32_t *part_touch; /* by part, then op: indices into touch */
	struct um_visit *visit; /* by block, then op; one more */
	struct um_block *block; /* one more */
	uint32_t *block_part; /* by block: parts */
	uint32_t *after; /* by visit: the visit that ends its gap, or UINT32_MAX */
	uint32_t *first_of_op, *of_op; /* by op: its visits, block by block */
	struct um_baseline still;
};

/* 0, -ENOMEM, -E2BIG (2^32 of a kind or more). */
int um_blocks_build(struct um_blocks *b, const struct um_schedule *s, const struct um_host_resident *far);
void um_blocks_fini(struct um_blocks *b);

#endif
