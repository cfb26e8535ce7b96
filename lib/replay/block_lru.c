/* SPDX-License-Identifier: Apache-2.0
 *
 * block_lru.c - a tree and a list over a fixed pool of block records
 */
#include "replay/block_lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int um_block_lru_init(struct um_block_lru *r, uint64_t most)
{
	memset(r, 0, sizeof *r);
	r->blocks = calloc(most + 1, sizeof *r->blocks);
	if (!r->blocks)
		return -ENOMEM;
	r->most = most;
	return 0;
}

void um_block_lru_fini(struct um_block_lru *r)
{
	free(r->blocks);
	memset(r, 0, sizeof *r);
}

struct um_lru_block *um_block_lru_find(const struct um_block_lru *r, uint64_t addr)
{
	struct um_tree_node *n = um_tree_floor(&r->by_addr, addr, 0);

	return n && n->a == addr ? um_tree_entry(n, struct um_lru_block, node) : NULL;
}

static void unlink_block(struct um_block_lru *r, struct um_lru_block *b)
{
	*(b->prev ? &b->prev->next : &r->head) = b->next;
	*(b->next ? &b->next->prev : &r->tail) = b->prev;
}

static void link_last(struct um_block_lru *r, struct um_lru_block *b)
{
	b->serial = r->serial;
	b->prev = r->tail;
	b->next = NULL;
	*(r->tail ? &r->tail->next : &r->head) = b;
	r->tail = b;
}

void um_block_lru_use(struct um_block_lru *r, struct um_lru_block *b)
{
	unlink_block(r, b);
	link_last(r, b);
}

int um_block_lru_add(struct um_block_lru *r, uint64_t addr)
{
	struct um_lru_block *b = r->unused;

	if (b)
		r->unused = b->next;
	else if (r->n_used < r->most)
		b = &r->blocks[r->n_used++];
	else
		return -ENOSPC;
	b->node.a = addr;
	b->node.b = 0;
	um_tree_add(&r->by_addr, &b->node);
	link_last(r, b);
	return 0;
}

void um_block_lru_remove(struct um_block_lru *r, struct um_lru_block *b)
{
	um_tree_remove(&r->by_addr, &b->node);
	unlink_block(r, b);
	b->next = r->unused;
	r->unused = b;
}

int um_block_lru_add_range(struct um_block_lru *r, uint64_t addr, uint64_t bytes)
{
	uint64_t first = um_block_of(addr), left = r->most - r->by_addr.n;

	for (uint64_t a = first; a < addr + bytes; a += UM_BLOCK_BYTES)
		if (!um_block_lru_find(r, a) && !left--)
			return -ENOSPC;
	for (uint64_t a = first; a < addr + bytes; a += UM_BLOCK_BYTES)
		if (!um_block_lru_find(r, a))
			um_block_lru_add(r, a);
	return 0;
}

void um_block_lru_remove_range(struct um_block_lru *r, uint64_t addr, uint64_t bytes)
{
	for (uint64_t a = um_block_of(addr); a < addr + bytes; a += UM_BLOCK_BYTES) {
		struct um_lru_block *b = um_block_lru_find(r, a);

		if (b)
			um_block_lru_remove(r, b);
	}
}
