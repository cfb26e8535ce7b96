/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks.h - the 2 MiB blocks of an iteration, the ops that touch them, and the gaps between touches
 *
 * in    a schedule whose slots have places; host-resident ranges (model/host_resident.h)
 * out   blocks; their visits (ops that touch them) and the gap after each visit, until the next one
 * owns  the arrays
 *
 * A block contains parts of slots. Between two touches of a part there is content to keep, unless the second overwrites
 * the part as a whole or the program declared it dead; the bytes to move for a gap off the device are the sum over its
 * parts. Positions are ops; positions after the iteration's end (n + i: op i of the next one) represent the wrap. A gap
 * that no visit ends (the tensor dies) has no return. A rotating slot (place.h) has its own blocks, which are
 * identified by slot: the gap after its last visit ends with the first visit of its successor's blocks.
 *
 * After a gap's `held` the block holds nothing, since the memory of freed tensors can be discarded before the next op.
 * It cannot if another tensor is born in it before that op. Then the gap holds the block until the first touch of that
 * tensor. Only births before relaunches are considered (UM_SLOT_BEFORE_BURST): others are usually touched by the op
 * after them.
 */
#ifndef UM_PLAN_BLOCKS_H
#define UM_PLAN_BLOCKS_H

#include "model/host_resident.h"
#include "plan/baseline.h"

/* State of a part after one of its touches. */
enum um_liveness {
	UM_LIVENESS_NEEDED, /* the next touch needs the content */
	UM_LIVENESS_DEAD, /* there is a next touch, but the content is not needed */
	UM_LIVENESS_FREED /* no further touch before it is freed */
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
	uint8_t reads_all, writes_all; /* a single use covers the whole part */
	uint8_t dense; /* a use accesses its whole range, not only a look-up */
	uint8_t born; /* the first touch in the tensor's life */
	uint8_t liveness; /* enum um_liveness */
	uint8_t overwritten; /* DEAD, but only since the next touch overwrites it: the library copies it if it leaves */
	int32_t until; /* position of the next touch, or of the free */
};

struct um_visit {
	int32_t op;
	uint32_t block;
	uint32_t first_touch; /* into touch; ends where the next visit's begins */
	int32_t end; /* the gap after it: position of the visit that ends it; == held if there is none */
	int32_t held; /* from here on the block holds nothing, <= end */
	uint32_t live; /* bytes to copy back if the block is off the device in the gap */
	uint32_t overwritten; /* bytes that are copied to the host if the block leaves, but not back */
	uint32_t parts; /* number of hints for an eviction and a return */
	int32_t paged_at; /* position of the last paged op from the visit on, before the gap's end, or of the last op
			     before another tensor is known: the block is not resident after it. -1: none */
	uint8_t absent; /* the block need not be resident: a paged op faults on it, or the CPU accesses it */
	uint8_t on_cpu; /* access of the CPU: the block is on the host after it */
	uint8_t in_part; /* access of the CPU to so little of it that it stays on the device */
	uint8_t changes; /* during the gap another tensor takes the place of the block's (UM_SLOT_SUPPLIED) */
	uint8_t can_leave; /* the block can be off the device in the gap. Not if that frees nothing, if the return of
			      its content is unknown, or if a tensor is born in it, so that it cannot be discarded */
};

struct um_block {
	uint32_t first_visit; /* into visit; ends where the next block's begins */
	uint32_t first_part; /* into block_part, likewise */
	int rotates; /* its only slot is a rotating one */
};

struct um_blocks {
	int32_t n_ops;
	uint32_t n_parts, n_touches, n_visits, n_blocks;
	const struct um_host_resident *host_resident; /* by slot, whole blocks without touches; NULL: none. Borrowed */
	uint32_t *successor; /* um_schedule_successors */
	uint32_t *first_part; /* by slot, into part; equal to the next slot's where no op touches it; slots + 1 */
	struct um_part *part; /* by slot, then offset; one more */
	struct um_touch *touch; /* by block, then op; one more */
	uint32_t *to; /* by touch: the next touch of the tensor's part, UINT32_MAX if none */
	uint32_t *part_touch; /* by part, then op: indices into touch */
	struct um_visit *visit; /* by block, then op; one more */
	struct um_block *block; /* one more */
	uint32_t *block_part; /* by block: parts */
	uint32_t *after; /* by visit: the visit that ends its gap, or UINT32_MAX */
	uint32_t *first_of_op, *of_op; /* by op: its visits, block by block */
	struct um_baseline baseline;
};

/* 0, -ENOMEM, -E2BIG (2^32 of a kind or more). */
int um_blocks_build(struct um_blocks *b, const struct um_schedule *s, const struct um_host_resident *host_resident);
void um_blocks_fini(struct um_blocks *b);

#endif
