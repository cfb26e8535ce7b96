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

int um_block_limit_change(struct um_block_limit *l, uint64_t blocks, int watches)
{
	struct um_block_lru other;
	const struct um_lru_block *b = l->resident.head;
	uint64_t over = l->resident.by_addr.n > blocks ? l->resident.by_addr.n - blocks : 0;
	int err = um_block_lru_init(&other, blocks);

	if (err) {
		um_block_lru_fini(&other);
		return err;
	}
	pthread_mutex_lock(&l->lock);
	for (; b; b = b->next)
		if (over)
			over--;
		else
			um_block_lru_add(&other, b->node.a);
	um_block_lru_fini(&l->resident);
	l->resident = other;
	l->watches = watches;
	l->on = 1;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

int um_block_limit_watch(struct um_block_limit *l, uint64_t blocks)
{
	l->watches = 1;
	return um_block_limit_set(l, blocks);
}

void um_block_limit_visit(struct um_block_limit *l, void (*visit)(void *user, uint64_t addr), void *user)
{
	if (!l->on)
		return;
	pthread_mutex_lock(&l->lock);
	for (const struct um_lru_block *b = l->resident.head; b; b = b->next)
		visit(user, b->node.a);
	pthread_mutex_unlock(&l->lock);
}

int um_block_limit_has(struct um_block_limit *l, uint64_t addr)
{
	int has;

	if (!l->on)
		return 0;
	pthread_mutex_lock(&l->lock);
	has = um_block_lru_find(&l->resident, addr) != NULL;
	pthread_mutex_unlock(&l->lock);
	return has;
}

uint64_t um_block_limit_count(struct um_block_limit *l, const uint64_t *addr, size_t n)
{
	uint64_t count = n;

	if (!l->on)
		return n;
	pthread_mutex_lock(&l->lock);
	count += l->resident.by_addr.n;
	for (size_t i = 0; i < n; i++)
		count -= um_block_lru_find(&l->resident, addr[i]) != NULL;
	pthread_mutex_unlock(&l->lock);
	return count;
}

/* As the driver does: the block that was prefetched least recently is evicted for another one. */
static void note(struct um_block_lru *r, uint64_t addr, uint64_t bytes)
{
	for (uint64_t a = um_block_of(addr); a < addr + bytes; a += UM_BLOCK_BYTES) {
		struct um_lru_block *b = um_block_lru_find(r, a);

		if (b)
			um_block_lru_remove(r, b);
		if (um_block_lru_add(r, a)) {
			um_block_lru_remove(r, r->head);
			um_block_lru_add(r, a);
		}
	}
}

int um_block_limit_add(struct um_block_limit *l, uint64_t addr, uint64_t bytes)
{
	int err = 0;

	if (!l->on)
		return 0;
	pthread_mutex_lock(&l->lock);
	if (l->watches)
		note(&l->resident, addr, bytes);
	else
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
