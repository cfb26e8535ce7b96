/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/horizon_blocks.h"

#include "base/pqueue.h"
#include "replay/block_lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UM_HORIZON_NONE
#define LOOKED_AT 256 /* blocks of each kind, for one of those that a caller accepts */

static int further(const struct um_horizon_item *a, const struct um_horizon_item *b)
{
	return a->next != b->next ? a->next > b->next : a->block->on_host > b->block->on_host;
}

#define MOVED(x, i) ((x)->block->heap = (uint32_t)(i))
UM_PQUEUE_TRACKED(heap, struct um_horizon_item, further, MOVED)

int um_horizon_blocks_init(struct um_horizon_blocks *t, uint64_t capacity)
{
	uint64_t n = capacity + UM_HORIZON_MISSED + 1, slots = 1;

	memset(t, 0, sizeof *t);
	while (slots < 2 * n)
		slots *= 2;
	t->at = calloc(n, sizeof *t->at);
	t->slot = calloc(slots, sizeof *t->slot);
	t->heap = calloc(capacity + 1, sizeof *t->heap);
	t->missed = calloc(UM_HORIZON_OPS, sizeof *t->missed);
	if (!t->at || !t->slot || !t->heap || !t->missed)
		return -ENOMEM;
	t->mask = (uint32_t)slots - 1;
	t->unused = NONE;
	for (uint32_t i = 0; i < UM_HORIZON_OPS; i++)
		t->missed[i] = (struct um_horizon_list){NONE, NONE};
	for (int i = 0; i <= UM_BLOCK_DEAD; i++)
		t->list[i] = (struct um_horizon_list){NONE, NONE};
	t->used = (struct um_horizon_list){NONE, NONE};
	t->taken = NONE;
	t->window = 1;
	return 0;
}

void um_horizon_blocks_fini(struct um_horizon_blocks *t)
{
	free(t->at);
	free(t->slot);
	free(t->heap);
	free(t->missed);
	memset(t, 0, sizeof *t);
}

/* --- by address --------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct um_horizon_blocks *t, uint64_t addr)
{
	return (uint32_t)((addr / UM_BLOCK_BYTES * 0x9e3779b97f4a7c15ull) >> 32) & t->mask;
}

struct um_horizon_block *um_horizon_blocks_find(const struct um_horizon_blocks *t, uint64_t addr)
{
	for (uint32_t i = slot_of(t, addr); t->slot[i]; i = (i + 1) & t->mask)
		if (t->at[t->slot[i] - 1].addr == addr)
			return &t->at[t->slot[i] - 1];
	return NULL;
}

uint64_t um_horizon_blocks_missing(const struct um_horizon_blocks *t, uint64_t addr, uint64_t bytes)
{
	uint64_t n = 0;

	for (uint64_t a = um_block_of(addr); a < addr + bytes; a += UM_BLOCK_BYTES)
		n += !um_horizon_block_resident(um_horizon_blocks_find(t, a));
	return n;
}

/* There are as many records as there are blocks of all states. */
static struct um_horizon_block *add(struct um_horizon_blocks *t, uint64_t addr)
{
	uint32_t i = slot_of(t, addr), index = t->unused != NONE ? t->unused : t->n_used++;
	struct um_horizon_block *b = &t->at[index];

	if (index == t->unused)
		t->unused = b->in_state.behind;
	*b = (struct um_horizon_block){.addr = addr};
	while (t->slot[i])
		i = (i + 1) & t->mask;
	t->slot[i] = index + 1;
	return b;
}

static void forget(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	uint32_t index = (uint32_t)(b - t->at), i = slot_of(t, b->addr), hole;

	while (t->slot[i] != index + 1)
		i = (i + 1) & t->mask;
	for (hole = i, i = (i + 1) & t->mask; t->slot[i]; i = (i + 1) & t->mask) {
		uint32_t home = slot_of(t, t->at[t->slot[i] - 1].addr);

		if (((i - home) & t->mask) < ((i - hole) & t->mask))
			continue; /* it would come to lie before its home */
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole] = 0;
	b->in_state.behind = t->unused;
	t->unused = index;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void enter_list(struct um_horizon_blocks *t, struct um_horizon_list *l, struct um_horizon_block *b)
{
	uint32_t index = (uint32_t)(b - t->at);

	b->in_state = (struct um_horizon_link){l->newest, NONE};
	*(l->newest == NONE ? &l->oldest : &t->at[l->newest].in_state.behind) = index;
	l->newest = index;
}

static void leave_list(struct um_horizon_blocks *t, struct um_horizon_list *l, const struct um_horizon_block *b)
{
	struct um_horizon_link at = b->in_state;

	*(at.before == NONE ? &l->oldest : &t->at[at.before].in_state.behind) = at.behind;
	*(at.behind == NONE ? &l->newest : &t->at[at.behind].in_state.before) = at.before;
}

static void enter_used(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	struct um_horizon_list *l = &t->used;
	uint32_t index = (uint32_t)(b - t->at);

	b->in_use = (struct um_horizon_link){l->newest, NONE};
	*(l->newest == NONE ? &l->oldest : &t->at[l->newest].in_use.behind) = index;
	l->newest = index;
}

static void leave_used(struct um_horizon_blocks *t, const struct um_horizon_block *b)
{
	struct um_horizon_link at = b->in_use;

	if (t->taken == (uint32_t)(b - t->at))
		t->taken = at.before;
	*(at.before == NONE ? &t->used.oldest : &t->at[at.before].in_use.behind) = at.behind;
	*(at.behind == NONE ? &t->used.newest : &t->at[at.behind].in_use.before) = at.before;
}

void um_horizon_blocks_use(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	leave_used(t, b);
	enter_used(t, b);
}

struct um_horizon_block *um_horizon_blocks_oldest(const struct um_horizon_blocks *t)
{
	return t->used.oldest == NONE ? NULL : &t->at[t->used.oldest];
}

struct um_horizon_block *um_horizon_blocks_take(struct um_horizon_blocks *t)
{
	uint32_t i = t->taken == NONE ? t->used.oldest : t->at[t->taken].in_use.behind;

	if (i == NONE)
		return NULL;
	t->taken = i;
	return &t->at[i];
}

/* --- missed blocks ------------------------------------------------------------------------------------------------ */

static struct um_horizon_list *missed_by(const struct um_horizon_blocks *t, uint64_t op)
{
	return &t->missed[op % UM_HORIZON_OPS];
}

void um_horizon_blocks_miss(struct um_horizon_blocks *t, uint64_t addr, uint64_t op)
{
	struct um_horizon_block *b;

	if (t->n[UM_BLOCK_MISSED] == UM_HORIZON_MISSED)
		return;
	b = add(t, addr);
	b->state = UM_BLOCK_MISSED;
	b->next = op;
	enter_list(t, missed_by(t, op), b);
	if (op < t->front)
		t->front = op;
	t->n[UM_BLOCK_MISSED]++;
}

static void leave_missed(struct um_horizon_blocks *t, const struct um_horizon_block *b)
{
	leave_list(t, missed_by(t, b->next), b);
	t->n[UM_BLOCK_MISSED]--;
}

struct um_horizon_block *um_horizon_blocks_first_missed(struct um_horizon_blocks *t)
{
	while (missed_by(t, t->front)->oldest == NONE)
		t->front++;
	return &t->at[missed_by(t, t->front)->oldest];
}

void um_horizon_blocks_pass(struct um_horizon_blocks *t, uint64_t op)
{
	while (t->n[UM_BLOCK_MISSED]) {
		struct um_horizon_block *b = um_horizon_blocks_first_missed(t);

		if (t->front >= op)
			return;
		um_horizon_blocks_drop(t, b);
	}
	if (t->front < op)
		t->front = op;
}

void um_horizon_blocks_begin(struct um_horizon_blocks *t, uint64_t op)
{
	um_horizon_blocks_pass(t, UINT64_MAX);
	t->front = op;
	t->window++;
	t->n_near = 0;
}

/* --- resident blocks ---------------------------------------------------------------------------------------------- */

static void enter_heap(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	uint32_t n = t->n[UM_BLOCK_KNOWN];

	t->heap[n] = (struct um_horizon_item){b->next, b};
	heap_rise(t->heap, n);
}

static void leave_heap(struct um_horizon_blocks *t, const struct um_horizon_block *b)
{
	uint32_t i = b->heap, n = t->n[UM_BLOCK_KNOWN] - 1;

	if (i == n)
		return;
	t->heap[i] = t->heap[n];
	heap_rise(t->heap, i);
	heap_sink(t->heap, n, i);
}

static void enter(struct um_horizon_blocks *t, struct um_horizon_block *b, enum um_horizon_state state)
{
	b->state = state;
	if (state == UM_BLOCK_KNOWN)
		enter_heap(t, b);
	else
		enter_list(t, &t->list[state], b);
	t->n[state]++;
}

static void leave(struct um_horizon_blocks *t, const struct um_horizon_block *b)
{
	if (b->state == UM_BLOCK_KNOWN)
		leave_heap(t, b);
	else
		leave_list(t, &t->list[b->state], b);
	t->n[b->state]--;
}

static void enter_live(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next)
{
	b->next = next;
	b->dies = b->overwritten = 0;
	enter(t, b, next == UM_HORIZON_UNKNOWN ? UM_BLOCK_UNKNOWN : UM_BLOCK_KNOWN);
}

struct um_horizon_block *um_horizon_blocks_furthest(const struct um_horizon_blocks *t)
{
	return t->n[UM_BLOCK_KNOWN] ? t->heap->block : NULL;
}

static struct um_horizon_block *oldest(const struct um_horizon_blocks *t, enum um_horizon_state state)
{
	return t->n[state] ? &t->at[t->list[state].oldest] : NULL;
}

struct um_horizon_block *um_horizon_blocks_victim(const struct um_horizon_blocks *t)
{
	struct um_horizon_block *b = oldest(t, UM_BLOCK_UNKNOWN);

	return b ? b : um_horizon_blocks_furthest(t);
}

struct um_horizon_block *um_horizon_blocks_victim_of(const struct um_horizon_blocks *t, uint64_t op,
						     int (*fn)(void *user, uint64_t addr), void *user)
{
	uint32_t i = t->n[UM_BLOCK_UNKNOWN] ? t->list[UM_BLOCK_UNKNOWN].newest : UM_HORIZON_NONE;
	struct um_horizon_block *best = NULL;

	for (uint32_t k = 0; k < LOOKED_AT && i != UM_HORIZON_NONE; k++, i = t->at[i].in_state.before)
		if (fn(user, t->at[i].addr))
			return &t->at[i];
	for (uint32_t k = 0; k < LOOKED_AT && k < t->n[UM_BLOCK_KNOWN]; k++) {
		struct um_horizon_block *b = t->heap[k].block;

		if (b->next > op && (!best || b->next > best->next) && fn(user, b->addr))
			best = b;
	}
	return best;
}

struct um_horizon_block *um_horizon_blocks_dead(struct um_horizon_blocks *t)
{
	return oldest(t, UM_BLOCK_DEAD);
}

struct um_horizon_block *um_horizon_blocks_come(struct um_horizon_blocks *t, uint64_t addr, uint64_t next, int on_host)
{
	struct um_horizon_block *b = um_horizon_blocks_find(t, addr);

	if (b)
		leave_missed(t, b);
	else
		b = add(t, addr);
	b->on_host = on_host;
	enter_live(t, b, next);
	enter_used(t, b);
	return b;
}

void um_horizon_blocks_drop(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	um_horizon_blocks_set_near(t, b, 0);
	if (um_horizon_block_live(b))
		leave_used(t, b);
	if (b->state == UM_BLOCK_MISSED)
		leave_missed(t, b);
	else
		leave(t, b);
	forget(t, b);
}

void um_horizon_blocks_die(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	um_horizon_blocks_set_near(t, b, 0);
	leave_used(t, b);
	leave(t, b);
	enter(t, b, UM_BLOCK_DEAD);
}

void um_horizon_blocks_revive(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next)
{
	if (b->state == UM_BLOCK_DEAD)
		enter_used(t, b);
	leave(t, b);
	enter_live(t, b, next);
}

void um_horizon_blocks_set_next(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next)
{
	uint64_t was = b->next;

	if (b->state != UM_BLOCK_KNOWN || next == UM_HORIZON_UNKNOWN) {
		um_horizon_blocks_revive(t, b, next);
		return;
	}
	b->next = next;
	b->dies = b->overwritten = 0;
	t->heap[b->heap].next = next;
	if (next > was)
		heap_rise(t->heap, b->heap);
	else if (next < was)
		heap_sink(t->heap, t->n[UM_BLOCK_KNOWN], b->heap);
}

void um_horizon_blocks_set_near(struct um_horizon_blocks *t, struct um_horizon_block *b, int near)
{
	t->n_near += (uint32_t)near - (b->near == t->window);
	b->near = near ? t->window : 0;
}
