/* SPDX-License-Identifier: Apache-2.0
 *
 * resident.h - estimates the device memory of managed data, block by block
 *
 * in    migrations, faults of the GPU, declared uses of kernels, frees, discards
 * out   2 MiB blocks in use, by device and process
 * owns  its blocks
 *
 * A block is in use from its first migrated or accessed page until it is evicted, freed, discarded, or all migrated
 * bytes are back on the host. A recording does not show pages that a prefetch populated: their blocks count from their
 * first declared use, fault or migration. The driver allocates memory in such blocks.
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
	uint32_t bytes; /* known resident bytes; 0: not in use */
};

struct um_resident {
	UM_VEC(struct um_resident_block) blocks;
	UM_VEC(uint64_t) used; /* blocks, by lane */
	struct um_index index;
	int lost; /* an event without an address, or too many blocks: figures are invalid */
};

void um_resident_fini(struct um_resident *r); /* one of zeroes, too */

/* A MIGRATION or GPU_FAULT; 0 or -ENOMEM. */
int um_resident_feed(struct um_resident *r, uint32_t lane, const struct um_activity *a);

/* A kernel uses a range, which is resident meanwhile. 0 or -ENOMEM. */
int um_resident_use(struct um_resident *r, uint32_t lane, uint64_t address, uint64_t bytes);

/* A FREE, or a HINT that discards pages, in one lane. */
void um_resident_remove(struct um_resident *r, uint32_t lane, const struct um_activity *a);

uint64_t um_resident_bytes(const struct um_resident *r, uint32_t lane);

#endif
