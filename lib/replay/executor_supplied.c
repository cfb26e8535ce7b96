/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_supplied.c - supplied tensors that stay on the device between their uses
 *
 * A plan evicts a supplied tensor after its last use, since another one comes next. Where there is room beside the
 * plan's own blocks, it stays. As long as all of them fit, those in use take no other room than those that stay; once
 * one had to leave, the plan's peak is kept free. What is there is not evicted for the latest one: of tensors that take
 * turns, the one unused for longest comes next. Only what has not been used for long makes room.
 */
#include "replay/executor_state.h"

#define UNUSED_ITERATIONS 64 /* a block that has not been used for as many makes room */
#define MOST_RUNS 64 /* places where such blocks may be next to each other that are looked at */

uint64_t um_executor_count_supplied(const struct um_schedule *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].flags & UM_SLOT_SUPPLIED)
			n += s->slots.at[i].bytes / UM_BLOCK_BYTES + 1;
	return n;
}

void um_executor_open_room(struct um_executor *ex, const struct um_schedule *s, uint64_t room, uint64_t all)
{
	uint64_t leaving = ex->program->supplied_leaving, once = um_executor_count_supplied(s);
	struct um_executor_supplied *x = &ex->supplied;

	um_block_lru_fini(&x->blocks);
	*x = (struct um_executor_supplied){.room = room, .all = all, .reserve = leaving < once ? leaving : once};
	if ((room || all) && once)
		um_block_lru_init(&x->blocks, room > all ? room : all); /* without memory for it there is no room */
}

/* Blocks that may stay now. The next supplied tensor is one of those that stayed, if there was room for all of them. */
static uint64_t room_now(const struct um_executor_supplied *x)
{
	return x->all > x->room + x->in_use ? x->all - x->in_use : x->room;
}

void um_executor_begin_room(struct um_executor *ex)
{
	struct um_executor_supplied *x = &ex->supplied;

	x->blocks.serial++;
	x->before = x->latest;
	if (!x->leave)
		return;
	x->room -= x->room < x->reserve ? x->room : x->reserve;
	x->reserve = 0;
}

static int is_unused(const struct um_block_lru *l, const struct um_lru_block *b)
{
	return b && l->serial - b->serial >= UNUSED_ITERATIONS;
}

int um_executor_room_exceeded(struct um_executor *ex, uint64_t *addr)
{
	struct um_block_lru *l = &ex->supplied.blocks;
	struct um_lru_block *b;

	if (l->by_addr.n <= room_now(&ex->supplied))
		return 0;
	b = is_unused(l, l->head) ? l->head : l->tail;
	*addr = b->node.a;
	um_block_lru_remove(l, b);
	ex->supplied.outs = ex->supplied.latest = um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT) + 1;
	return 1;
}

void um_executor_stays_unused(struct um_executor *ex, uint64_t addr)
{
	struct um_block_lru *l = &ex->supplied.blocks;

	l->serial = 0;
	um_block_lru_add_range(l, addr, UM_BLOCK_BYTES);
	l->serial = UNUSED_ITERATIONS;
}

static int is_there(const struct um_block_lru *l, struct um_executor_range r)
{
	for (uint64_t a = um_block_of(r.addr); a < r.addr + r.bytes; a += UM_BLOCK_BYTES)
		if (!um_block_lru_find(l, a))
			return 0;
	return 1;
}

/* A run of as many blocks as the range is in that have not been used for long. No bytes: none was found. */
static struct um_executor_range find_unused(const struct um_block_lru *l, struct um_executor_range r)
{
	uint64_t bytes = um_block_of(r.addr + r.bytes + UM_BLOCK_BYTES - 1) - um_block_of(r.addr), run;
	const struct um_lru_block *b = l->head;

	for (int i = 0; i < MOST_RUNS && is_unused(l, b); i++, b = b->next) {
		for (run = UM_BLOCK_BYTES; run < bytes; run += UM_BLOCK_BYTES)
			if (!is_unused(l, um_block_lru_find(l, b->node.a + run)))
				break;
		if (run >= bytes)
			return (struct um_executor_range){b->node.a, bytes};
	}
	return (struct um_executor_range){r.addr, 0};
}

static uint64_t blocks_of(struct um_executor_range r)
{
	return r.bytes ? (um_block_of(r.addr + r.bytes - 1) - um_block_of(r.addr)) / UM_BLOCK_BYTES + 1 : 0;
}

/* What is evicted, as a supplied tensor leaves this range. */
static struct um_executor_range evict(struct um_executor *ex, struct um_executor_range r)
{
	struct um_executor_supplied *x = &ex->supplied;
	struct um_executor_range unused;

	if (x->blocks.by_addr.n + blocks_of(r) <= room_now(x) && !um_block_lru_add_range(&x->blocks, r.addr, r.bytes))
		return (struct um_executor_range){r.addr, 0};
	x->all = 0;
	/* evictions of one iteration may be in progress, once there is room for them */
	x->latest = um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT) + 1;
	x->outs = x->reserve ? x->latest : x->before;
	unused = find_unused(&x->blocks, r);
	if (!unused.bytes) {
		x->leave = 1;
		return r;
	}
	um_block_lru_remove_range(&x->blocks, unused.addr, unused.bytes);
	um_block_lru_add_range(&x->blocks, r.addr, r.bytes);
	return um_executor_clip(ex, unused);
}

struct um_executor_range um_executor_supply(struct um_executor *ex, enum um_action_kind kind,
					    struct um_executor_range r)
{
	struct um_executor_supplied *x = &ex->supplied;
	struct um_block_lru *l = &x->blocks;
	int there = is_there(l, r);
	uint64_t n = blocks_of(r);

	if (kind == UM_ACTION_PREFETCH) { /* until its eviction it is one of the plan's blocks */
		um_block_lru_remove_range(l, r.addr, r.bytes);
		x->in_use += n;
		if (l->by_addr.n + x->in_use > x->all)
			x->all = 0;
	} else if (kind == UM_ACTION_EVICT) {
		x->in_use -= n < x->in_use ? n : x->in_use;
	}
	if (there)
		r.bytes = 0;
	return kind == UM_ACTION_EVICT && !there ? evict(ex, r) : r;
}
