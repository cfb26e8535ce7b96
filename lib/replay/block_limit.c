/* SPDX-License-Identifier: Apache-2.0
 *
 * block_limit.c - enforces a budget on the prefetches of all workers
 */
#include "replay/block_limit.h"

#include <string.h>

void um_block_limit_init(struct um_block_limit *l)
{
	memset(l, 0, sizeof *l);
	pthread_mutex_init(&l->lock, NULL);
}

void um_block_limit_fini(struct um_block_limit *l)
{
	um_block_lru_fini(&l->resident);
	pthread_mutex_destroy(&l->lock);
}

int um_block_limit_set(struct um_block_limit *l, uint64_t blocks)
{
	int err = um_block_lru_init(&l->resident, blocks);

	l->on = !err;
	return err;
}

int um_block_limit_add(struct um_block_limit *l, uint64_t addr, uint64_t bytes)
{
	int err;

	if (!l->on)
		return 0;
	pthread_mutex_lock(&l->lock);
	err = um_block_lru_add_range(&l->resident, addr, bytes);
	pthread_mutex_unlock(&l->lock);
	if (err)
		atomic_fetch_add_explicit(&l->refused, 1, memory_order_relaxed);
	return err;
}

void um_block_limit_remove(struct um_block_limit *l, uint64_t addr, uint64_t bytes)
{
	if (!l->on)
		return;
	pthread_mutex_lock(&l->lock);
	um_block_lru_remove_range(&l->resident, addr, bytes);
	pthread_mutex_unlock(&l->lock);
}
