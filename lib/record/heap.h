/* SPDX-License-Identifier: Apache-2.0
 *
 * heap.h - address allocator for tensors inside managed memory: best fit over arenas
 *
 * in    regions of managed memory (arenas), requested sizes, returned ranges
 * out   addresses
 * owns  the map of free ranges; the caller allocates and frees the memory itself
 *
 * Granule 512 bytes. Neighbours share 2 MiB blocks: on recorded workloads the blocks in use take at most 2.3 % more
 * than the bytes alive (tests/record/test_heap_traces.c). Best fit, lowest address first; coalesces at once. Never
 * touches the memory. Alloc path: O(log n), one small allocation at most (a free-range record, recycled). Not
 * thread-safe.
 */
#ifndef UM_RECORD_HEAP_H
#define UM_RECORD_HEAP_H

#include "base/tree.h"
#include "base/vec.h"
#include "model/event.h"

#define UM_HEAP_GRANULE 512ull

/* um_heap_alloc_aligned */
#define UM_HEAP_MEDIUM (UM_BLOCK_BYTES / 2) /* smaller pieces fill blocks in use */
#define UM_HEAP_LARGE (7 * UM_BLOCK_BYTES) /* one more block costs larger pieces little */
#define UM_HEAP_WASTE 64 /* share of the live bytes that alignment may leave free in blocks in use */

struct um_heap_region {
	uint64_t addr, bytes;
};

struct um_heap {
	struct um_tree by_addr, by_size, by_aligned;
	void *spare; /* recycled records */
	UM_VEC(struct um_heap_region) regions; /* in the order of um_heap_add_region */
	UM_VEC(uint64_t) starts; /* of the regions, ascending */
	uint64_t live_bytes; /* allocated, rounded to granules */
	uint64_t used_blocks; /* blocks that hold live bytes */
	size_t n_live; /* allocated ranges */
	size_t n_records; /* in the trees and spare; never less than n_live + regions.n */
};

void um_heap_init(struct um_heap *h);
void um_heap_fini(struct um_heap *h);

/* Adds an arena (addr and bytes multiples of 2 MiB, apart from all others). Free ranges of two arenas never merge. 0 or
 * -ENOMEM. */
int um_heap_add_region(struct um_heap *h, uint64_t addr, uint64_t bytes);

/* Allocates `bytes` (rounded up to granules, at least one). 0 and *addr, -ENOSPC (add a region and retry), -ENOMEM. */
int um_heap_alloc(struct um_heap *h, uint64_t bytes, uint64_t *addr);

/* The same, placed by blocks. A piece of UM_HEAP_MEDIUM to UM_HEAP_LARGE bytes touches as few blocks as its size
 * allows, if the blocks in use then hold at most 1/UM_HEAP_WASTE of the live bytes and one block more than the live
 * bytes. A smaller piece takes the end of a range that is in a block in use. All others: as um_heap_alloc. */
int um_heap_alloc_aligned(struct um_heap *h, uint64_t bytes, uint64_t *addr);

#define UM_HEAP_FITS 16

struct um_heap_cost {
	uint64_t (*of)(void *user, uint64_t addr, uint64_t bytes); /* of using this range; 0: there is no cheaper one */
	void *user;
};

/* As um_heap_alloc, at an end of one of the UM_HEAP_FITS free ranges that fit best: where it costs least, and among
 * equals the best fit. Calls `cost->of` at most 2 * UM_HEAP_FITS times. */
int um_heap_alloc_cheapest(struct um_heap *h, uint64_t bytes, const struct um_heap_cost *cost, uint64_t *addr);

/* Allocates exactly [addr, addr + bytes), bytes rounded as above. 0, -EBUSY if part of it is allocated, outside, or
 * addr is not a multiple of the granule, -ENOMEM. */
int um_heap_alloc_at(struct um_heap *h, uint64_t addr, uint64_t bytes);

/* Frees an allocated range (same addr and bytes). Never fails: the allocation reserved the record. */
void um_heap_free(struct um_heap *h, uint64_t addr, uint64_t bytes);

/* For memory that the caller gives out itself (planned_places.h). Cut: takes a part of a free range out; uncut: makes
 * it free again. Enter and leave: count one live range of `bytes`, rounded as above, 0 for none. A cut needs a live
 * range in each run of memory that is not free, which is counted before. Enter: 0 or -ENOMEM. */
void um_heap_cut(struct um_heap *h, uint64_t addr, uint64_t bytes);
void um_heap_uncut(struct um_heap *h, uint64_t addr, uint64_t bytes);
int um_heap_enter(struct um_heap *h, uint64_t bytes);
void um_heap_leave(struct um_heap *h, uint64_t bytes);
int um_heap_is_start(const struct um_heap *h, uint64_t addr); /* of a region */

/* Calls fn for each free range in address order. */
void um_heap_each_free(const struct um_heap *h, void (*fn)(void *user, uint64_t addr, uint64_t bytes), void *user);

#endif
