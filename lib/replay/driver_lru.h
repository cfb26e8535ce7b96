/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_lru.h - prediction of the driver's eviction list over a steady iteration (private to driver_evict)
 *
 * in    a compiled plan's steady iteration, the number of blocks that the device holds
 * out   by in: the blocks to refresh before it, its waits, and the driver's evictions for it
 *
 * The driver evicts the list's head; its tail is the block that was migrated or prefetched last. An out only says that
 * a block may be evicted. Before an in without unused memory, no block that stays may be at the head: it is refreshed.
 * If such a block is evicted by an action that was queued before the in, the in waits for that instead.
 */
#ifndef UM_REPLAY_DRIVER_LRU_H
#define UM_REPLAY_DRIVER_LRU_H

#include "replay/compiled_plan.h"

#define UM_RUN_REFRESH 16 /* maximum number of blocks in one refresh: many, since it copies nothing */
#define UM_DRIVER_LRU_NONE UINT32_MAX

struct um_driver_lru_in {
	uint32_t action;
	uint32_t first, last; /* refreshes before it, UM_DRIVER_LRU_NONE */
	int32_t room; /* as in um_action */
	uint32_t drops;
	uint16_t evicts, resident;
};

struct um_driver_lru_refresh {
	uint32_t block, next;
	int idle; /* nothing to do: the block is to be evicted by then */
};

struct um_driver_lru {
	struct um_driver_lru_in *ins; /* by number */
	uint32_t *successor; /* by block: its number in the next iteration */
	UM_VEC(struct um_driver_lru_refresh) refreshes;
};

/* 0, -ENOMEM, or -ENOTSUP: the order cannot be predicted. um_driver_lru_fini in any case. */
int um_driver_lru_find(const struct um_compiled_plan *p, uint64_t capacity_blocks, struct um_driver_lru *out);
void um_driver_lru_fini(struct um_driver_lru *o);

static inline uint32_t um_driver_lru_blocks(const struct um_action *a)
{
	return (uint32_t)(a->bytes / UM_BLOCK_BYTES);
}

#endif
