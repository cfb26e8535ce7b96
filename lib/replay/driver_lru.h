/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_lru.h - the driver's list of blocks, over a steady iteration (private to yield)
 *
 * in    a program's steady iteration, the number of blocks that the device holds
 * out   by in: which blocks are asked for again before it, what it waits for, and what the driver evicts for it
 *
 * The list's head is evicted; its tail is what was brought last, or asked for last while it was there. An out only says
 * that a block may be evicted. Before an in that finds no memory unused there must be nothing at the head that stays:
 * that is asked for again. Where it leaves by what was put before this in, the in waits for that instead.
 */
#ifndef UM_REPLAY_DRIVER_LRU_H
#define UM_REPLAY_DRIVER_LRU_H

#include "replay/compiled_plan.h"

#define UM_RUN_KEEP 16 /* most blocks in one call that asks again: long, since it copies nothing */
#define UM_DRIVER_LRU_NONE UINT32_MAX

struct um_driver_lru_in {
	uint32_t action;
	uint32_t first, last; /* keeps before it, UM_DRIVER_LRU_NONE */
	int32_t room; /* as in um_action */
	uint32_t drops;
	uint16_t evicts, there;
};

struct um_driver_lru_keep {
	uint32_t block, next;
	int idle; /* nothing to do: it is to leave by then */
};

struct um_driver_lru {
	struct um_driver_lru_in *ins; /* by number */
	uint32_t *successor; /* by block: what it is in the next iteration */
	UM_VEC(struct um_driver_lru_keep) keeps;
};

/* 0, -ENOMEM, or -ENOTSUP: it cannot be foreseen. um_driver_lru_fini in any case. */
int um_driver_lru_find(const struct um_compiled_plan *p, uint64_t capacity_blocks, struct um_driver_lru *out);
void um_driver_lru_fini(struct um_driver_lru *o);

static inline uint32_t um_driver_lru_blocks(const struct um_action *a)
{
	return (uint32_t)(a->bytes / UM_BLOCK_BYTES);
}

#endif
