/* SPDX-License-Identifier: Apache-2.0
 *
 * block_limit.h - keeps the blocks that workers made resident within a budget
 *
 * in    ranges that a worker is about to prefetch, and ranges that have left the device
 * out   whether the prefetch fits
 * owns  the list of resident blocks
 *
 * For a device with more memory than the budget, whose driver does not evict in time. Without a limit everything fits,
 * at no cost. Thread-safe; O(blocks x log budget), no allocation.
 */
#ifndef UM_REPLAY_BLOCK_LIMIT_H
#define UM_REPLAY_BLOCK_LIMIT_H

#include "replay/block_lru.h"

#include <pthread.h>
#include <stdatomic.h>

struct um_block_limit {
	int on;
	int watches; /* it lists blocks and refuses nothing */
	pthread_mutex_t lock;
	struct um_block_lru resident; /* guarded by the lock */
	_Atomic uint64_t refused; /* ranges that did not fit */
};

void um_block_limit_init(struct um_block_limit *l); /* no limit */
void um_block_limit_fini(struct um_block_limit *l);

/* From now on at most this many blocks are resident. Call it before any range is added. 0 or -ENOMEM. */
int um_block_limit_set(struct um_block_limit *l, uint64_t blocks);

/* From now on resident blocks are listed without a limit. The device has memory for `blocks` of them: beyond that its
 * driver evicts the one that was prefetched least recently. 0 or -ENOMEM. */
int um_block_limit_watch(struct um_block_limit *l, uint64_t blocks);

/* Changes both. The blocks in the list stay in it as far as there is room, those that were prefetched most recently;
 * the caller evicts the others. No range is added or removed meanwhile. 0, or -ENOMEM: unchanged. */
int um_block_limit_change(struct um_block_limit *l, uint64_t blocks, int watches);

/* Calls `visit` for each resident block, that which was prefetched least recently first. */
void um_block_limit_visit(struct um_block_limit *l, void (*visit)(void *user, uint64_t addr), void *user);

/* Is the block in the list? */
int um_block_limit_has(struct um_block_limit *l, uint64_t addr);

/* Number of distinct blocks in the list and among these `n`. A full list may have lost some. */
uint64_t um_block_limit_count(struct um_block_limit *l, const uint64_t *addr, size_t n);

/* Called before a prefetch of the range: 0, or -ENOSPC and it must not be prefetched. */
int um_block_limit_add(struct um_block_limit *l, uint64_t addr, uint64_t bytes);

/* The range has left the device, or was freed. */
void um_block_limit_remove(struct um_block_limit *l, uint64_t addr, uint64_t bytes);

#endif
