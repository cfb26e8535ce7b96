/* SPDX-License-Identifier: Apache-2.0
 *
 * heap.h - where tensors lie inside managed memory: best fit over arenas
 *
 * in    regions of managed memory (arenas), sizes wanted, places given back
 * out   addresses
 * owns  the map of free ranges; the caller gets and returns the memory itself
 *
 * Granule 512 bytes. Neighbours share 2 MiB blocks: on recorded workloads the blocks in use take at most 2.1 % more
 * than the bytes alive (tests/test_heap_traces.c). Best fit, lowest address first; coalesces at once. Never touches the
 * memory. Alloc path: O(log n), one small allocation at most (a free-range record, recycled). Not thread-safe.
 */
#ifndef UM_RECORD_HEAP_H
#define UM_RECORD_HEAP_H

#include "base/tree.h"
#include "base/vec.h"

#define UM_HEAP_GRANULE 512ull

struct um_heap_region {
	uint64_t addr, bytes;
};

struct um_heap {
	struct um_tree by_addr, by_size;
	void *spare; /* recycled records */
	UM_VEC(struct um_heap_region) regions; /* in the order given */
	UM_VEC(uint64_t) starts; /* of the regions, ascending */
	uint64_t live_bytes; /* given out, rounded to granules */
	size_t n_live; /* ranges given out */
	size_t n_records; /* in the trees and spare; never less than n_live + regions.n */
};

void um_heap_init(struct um_heap *h);
void um_heap_fini(struct um_heap *h);

/* Adds an arena (addr and bytes multiples of 2 MiB, apart from all others). Free ranges of two arenas never merge. 0 or
 * -ENOMEM. */
int um_heap_add_region(struct um_heap *h, uint64_t addr, uint64_t bytes);

/* Takes `bytes` (rounded up to granules, at least one). 0 and *addr, -ENOSPC (add a region and ask again), -ENOMEM. */
int um_heap_take(struct um_heap *h, uint64_t bytes, uint64_t *addr);

/* Takes exactly [addr, addr + bytes), bytes rounded as above. 0, -EBUSY if part of it is taken, outside, or addr is not
 * a multiple of the granule, -ENOMEM. */
int um_heap_take_at(struct um_heap *h, uint64_t addr, uint64_t bytes);

/* Gives back a range that was taken (same addr and bytes). Never fails: the record needed was set aside by take. */
void um_heap_give(struct um_heap *h, uint64_t addr, uint64_t bytes);

/* Calls fn for each free range in address order. */
void um_heap_each_free(const struct um_heap *h, void (*fn)(void *user, uint64_t addr, uint64_t bytes), void *user);

#endif
