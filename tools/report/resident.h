/* SPDX-License-Identifier: Apache-2.0
 *
 * resident.h - how much device memory managed data took: an estimate, block by block
 *
 * in    migrations, faults of the GPU, what kernels are said to use, frees, discards
 * out   2 MiB blocks in use, of each device as each process uses it
 * owns  its blocks
 *
 * A block is in use from the first page that comes, or is touched there, until it is evicted, freed, dropped, or all
 * that came has gone back. A recording does not show what was first touched by a prefetch: such blocks count from when
 * a kernel is said to use them, they fault or come back. A driver gives memory in such blocks.
 */
#ifndef UM_REPORT_RESIDENT_H
#define UM_REPORT_RESIDENT_H

#include "base/vec.h"
#include "model/activity.h"
#include "report/index.h"

#define UM_RESIDENT_BLOCK (2u << 20)

struct um_resident_block {
	uint64_t block; /* address / UM_RESIDENT_BLOCK */
	uint32_t lane; /* the caller's number for a process and a device */
	uint32_t bytes; /* known to be there; 0: not in use */
};

struct um_resident {
	UM_VEC(struct um_resident_block) blocks;
	UM_VEC(uint64_t) used; /* blocks, by lane */
	struct um_index index;
	int lost; /* something had no address, or there are too many blocks: the figures mean nothing */
};

void um_resident_fini(struct um_resident *r); /* one of zeroes, too */

/* A MIGRATION or GPU_FAULT; 0 or -ENOMEM. */
int um_resident_feed(struct um_resident *r, uint32_t lane, const struct um_activity *a);

/* A kernel uses so many bytes there: they are resident while it does. 0 or -ENOMEM. */
int um_resident_use(struct um_resident *r, uint32_t lane, uint64_t address, uint64_t bytes);

/* A FREE, or a HINT that drops pages, in one lane. */
void um_resident_leave(struct um_resident *r, uint32_t lane, const struct um_activity *a);

uint64_t um_resident_bytes(const struct um_resident *r, uint32_t lane);

#endif
