/* SPDX-License-Identifier: Apache-2.0
 *
 * caching_alloc.h - a caching allocator, as in frameworks: reuses each tensor's previous address
 *
 * in    sizes, in the order of allocations in an iteration
 * out   addresses of managed memory: that of the tensor with the same order in an earlier iteration, if it is free and
 *       has that size, else any free range
 * owns  the map of the memory; the memory itself is the device's
 *
 * Some tensors outlive the allocation of the next one, so two addresses are kept for each. O(log n).
 */
#ifndef UM_PLAY_CACHING_ALLOC_H
#define UM_PLAY_CACHING_ALLOC_H

#include "gpu/gpu.h"
#include "record/heap.h"

struct um_caching_alloc_home {
	uint64_t bytes, addr[2];
};

struct um_caching_alloc {
	struct um_gpu *gpu; /* borrowed */
	struct um_heap heap;
	UM_VEC(struct um_caching_alloc_home) home; /* by order in the iteration */
	size_t made; /* in this one */
};

void um_caching_alloc_init(struct um_caching_alloc *h, struct um_gpu *gpu);
void um_caching_alloc_fini(struct um_caching_alloc *h);
void um_caching_alloc_iter(struct um_caching_alloc *h); /* one begins */
int um_caching_alloc_take(struct um_caching_alloc *h, uint64_t bytes, uint64_t *addr); /* 0 or -ENOMEM */
void um_caching_alloc_give(struct um_caching_alloc *h, uint64_t addr, uint64_t bytes);

#endif
