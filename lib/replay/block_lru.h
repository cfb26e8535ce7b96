/* SPDX-License-Identifier: Apache-2.0
 *
 * block_lru.h - the blocks that hints made resident, in order of last use, limited to a budget
 *
 * in    addresses of blocks (multiples of UM_BLOCK_BYTES)
 * out   whether another block fits, and the least recently used one
 * owns  room for as many blocks as the budget holds, allocated once
 *
 * Operations are O(log budget) and allocate nothing. Not thread-safe.
 */
#ifndef UM_REPLAY_BLOCK_LRU_H
#define UM_REPLAY_BLOCK_LRU_H

#include "base/tree.h"
#include "model/event.h"

struct um_lru_block {
	struct um_tree_node node; /* by address: node.a */
	struct um_lru_block *prev, *next; /* least recently used first; in the free list: next only */
	uint64_t serial; /* of its last use */
};

struct um_block_lru {
	struct um_lru_block *blocks, *unused;
	struct um_lru_block *head, *tail;
	struct um_tree by_addr;
	uint64_t most;
	uint64_t n_used; /* records so far: memory for others is not touched */
	uint64_t serial; /* set by the caller: recorded with each use */
};

static inline uint64_t um_block_of(uint64_t addr)
{
	return addr & ~(UM_BLOCK_BYTES - 1);
}

int um_block_lru_init(struct um_block_lru *r, uint64_t most); /* 0 or -ENOMEM */
void um_block_lru_fini(struct um_block_lru *r);

struct um_lru_block *um_block_lru_find(const struct um_block_lru *r, uint64_t addr); /* NULL: not resident */
int um_block_lru_add(struct um_block_lru *r, uint64_t addr); /* as the most recently used one. 0, or -ENOSPC */
void um_block_lru_use(struct um_block_lru *r, struct um_lru_block *b);
void um_block_lru_remove(struct um_block_lru *r, struct um_lru_block *b);

/* The same for all blocks under a range. Adds all of them or none: 0, or -ENOSPC. */
int um_block_lru_add_range(struct um_block_lru *r, uint64_t addr, uint64_t bytes);
void um_block_lru_remove_range(struct um_block_lru *r, uint64_t addr, uint64_t bytes);

#endif
