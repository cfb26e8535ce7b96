/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_supplied.c - supplied tensors that stay on the device between their uses
 *
 * A plan evicts a supplied tensor after its last use, since another one comes next. Where there is room beside the
 * plan's own blocks, it stays. What is there is not evicted for the latest one: of tensors that take turns, the one
 * unused for longest comes next. Only what has not been used for long makes room.
 */
#include "replay/executor_state.h"

#define UNUSED_ITERATIONS 64 /* a block that has not been used for as many makes room */

/* Blocks of all supplied tensors of an iteration, at most. */
static uint64_t count_supplied(const struct um_schedule *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].flags & UM_SLOT_SUPPLIED)
			n += s->slots.at[i].bytes / UM_BLOCK_BYTES + 1;
	return n;
}

void um_executor_open_room(struct um_executor *ex, const struct um_schedule *s, uint64_t blocks)
{
	uint64_t leaving = ex->program->supplied_leaving, once = count_supplied(s);

	um_block_lru_fini(&ex->supplied);
	ex->supplied_leaving = leaving < once ? leaving : once;
	ex->supplied_leave = 0;
	ex->supplied_outs = ex->supplied_before = ex->supplied_latest = 0;
	if (blocks && once)
		um_block_lru_init(&ex->supplied, blocks); /* without memory for it there is no room */
}

void um_executor_begin_room(struct um_executor *ex)
{
	struct um_block_lru *l = &ex->supplied;

	l->serial++;
	ex->supplied_before = ex->supplied_latest;
	if (!ex->supplied_leave)
		return;
	l->most -= l->most < ex->supplied_leaving ? l->most : ex->supplied_leaving;
	ex->supplied_leaving = 0;
}

int um_executor_room_exceeded(struct um_executor *ex, uint64_t *addr)
{
	struct um_block_lru *l = &ex->supplied;

	if (l->by_addr.n <= l->most)
		return 0;
	*addr = l->head->node.a;
	um_block_lru_remove(l, l->head);
	ex->supplied_outs = ex->supplied_latest = um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT) + 1;
	return 1;
}

void um_executor_stays_unused(struct um_executor *ex, uint64_t addr)
{
	struct um_block_lru *l = &ex->supplied;

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

/* A run of as many blocks as the range has that have not been used for long. No bytes: none was found. */
static struct um_executor_range find_unused(const struct um_block_lru *l, uint64_t bytes)
{
	struct um_executor_range r = {l->head ? l->head->node.a : 0, bytes};

	for (uint64_t off = 0; off < bytes; off += UM_BLOCK_BYTES) {
		const struct um_lru_block *b = um_block_lru_find(l, r.addr + off);

		if (!b || l->serial - b->serial < UNUSED_ITERATIONS)
			r.bytes = 0;
	}
	return r;
}

struct um_executor_range um_executor_supply(struct um_executor *ex, enum um_action_kind kind,
					    struct um_executor_range r)
{
	struct um_block_lru *l = &ex->supplied;
	struct um_executor_range unused;

	if (is_there(l, r)) {
		if (kind == UM_ACTION_PREFETCH) /* until its eviction it is one of the plan's blocks */
			um_block_lru_remove_range(l, r.addr, r.bytes);
		r.bytes = 0;
	} else if (kind == UM_ACTION_PREFETCH) {
		um_block_lru_remove_range(l, r.addr, r.bytes);
	} else if (kind == UM_ACTION_EVICT) {
		if (!um_block_lru_add_range(l, r.addr, r.bytes))
			return (struct um_executor_range){r.addr, 0};
		/* those of one iteration may be in progress, once there is room for them */
		ex->supplied_latest = um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT) + 1;
		ex->supplied_outs = ex->supplied_leaving ? ex->supplied_latest : ex->supplied_before;
		unused = find_unused(l, r.bytes);
		um_block_lru_remove_range(l, unused.addr, unused.bytes);
		if (unused.bytes && !um_block_lru_add_range(l, r.addr, r.bytes))
			return unused;
		ex->supplied_leave = 1;
	}
	return r;
}
