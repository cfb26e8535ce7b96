/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/horizon_blocks.h"

#include "base/pqueue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UM_HORIZON_NONE

static int further(const struct um_horizon_item *a, const struct um_horizon_item *b)
{
	return a->next > b->next;
}

#define MOVED(x, i) ((x)->block->heap = (uint32_t)(i))
UM_PQUEUE_TRACKED(heap, struct um_horizon_item, further, MOVED)

int um_horizon_blocks_init(struct um_horizon_blocks *t, uint64_t capacity, int64_t in_ns)
{
	uint64_t n = capacity + UM_HORIZON_MISSED + 1, slots = 1;

	memset(t, 0, sizeof *t);
	while (slots < 2 * n)
		slots *= 2;
	t->at = calloc(n, sizeof *t->at);
	t->slot = calloc(slots, sizeof *t->slot);
	t->heap = calloc(capacity + 1, sizeof *t->heap);
	t->misses = calloc(UM_HORIZON_OPS, sizeof *t->misses);
	t->urgency = calloc(2 * UM_HORIZON_OPS, sizeof *t->urgency);
	if (!t->at || !t->slot || !t->heap || !t->misses || !t->urgency)
		return -ENOMEM;
	t->mask = (uint32_t)slots - 1;
	t->unused = NONE;
	for (uint32_t i = 0; i < UM_HORIZON_OPS; i++)
		t->misses[i].first = NONE;
	for (uint32_t i = 0; i < 2 * UM_HORIZON_OPS; i++)
		t->urgency[i].start = INT64_MAX;
	t->oldest = t->newest = NONE;
	t->window = 1;
	t->in_ns = in_ns;
	return 0;
}

void um_horizon_blocks_fini(struct um_horizon_blocks *t)
{
	free(t->at);
	free(t->slot);
	free(t->heap);
	free(t->misses);
	free(t->urgency);
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

/* There are as many records as there are blocks of all states. */
static struct um_horizon_block *add(struct um_horizon_blocks *t, uint64_t addr)
{
	uint32_t i = slot_of(t, addr), index = t->unused != NONE ? t->unused : t->n_used++;
	struct um_horizon_block *b = &t->at[index];

	if (index == t->unused)
		t->unused = b->behind;
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
	b->behind = t->unused;
	t->unused = index;
}

/* --- missed blocks ------------------------------------------------------------------------------------------------ */

/* Two ranges of ops, one after the other. */
static struct um_urgency both(struct um_urgency a, struct um_urgency b)
{
	if (b.start != INT64_MAX && b.start - a.takes < a.start)
		a.start = b.start - a.takes;
	a.takes += b.takes;
	return a;
}

static struct um_misses *misses_of(const struct um_horizon_blocks *t, uint64_t op)
{
	return &t->misses[op % UM_HORIZON_OPS];
}

/* The number of blocks that the op misses changes. */
static void count(struct um_horizon_blocks *t, uint64_t op, int more)
{
	uint32_t i = (uint32_t)(op % UM_HORIZON_OPS) + UM_HORIZON_OPS;
	struct um_misses *m = misses_of(t, op);
	struct um_urgency *u = &t->urgency[i];

	m->n += (uint32_t)more;
	t->n_missed += (uint32_t)more;
	u->takes = m->n * t->in_ns;
	u->start = m->n ? m->begins - u->takes : INT64_MAX;
	for (i /= 2; i; i /= 2)
		t->urgency[i] = both(t->urgency[2 * i], t->urgency[2 * i + 1]);
}

void um_horizon_blocks_miss(struct um_horizon_blocks *t, uint64_t addr, uint64_t op)
{
	struct um_misses *m = misses_of(t, op);
	struct um_horizon_block *b;

	if (t->n_missed == UM_HORIZON_MISSED)
		return;
	b = add(t, addr);
	b->state = UM_BLOCK_MISSED;
	b->next = op;
	b->before = NONE;
	b->behind = m->first;
	if (m->first != NONE)
		t->at[m->first].before = (uint32_t)(b - t->at);
	m->first = (uint32_t)(b - t->at);
	if (op < t->front)
		t->front = op;
	count(t, op, 1);
}

static void unlist(struct um_horizon_blocks *t, const struct um_horizon_block *b)
{
	if (b->before != NONE)
		t->at[b->before].behind = b->behind;
	else
		misses_of(t, b->next)->first = b->behind;
	if (b->behind != NONE)
		t->at[b->behind].before = b->before;
	count(t, b->next, -1);
}

struct um_horizon_block *um_horizon_blocks_first_missed(struct um_horizon_blocks *t)
{
	while (misses_of(t, t->front)->first == NONE)
		t->front++;
	return &t->at[misses_of(t, t->front)->first];
}

void um_horizon_blocks_pass(struct um_horizon_blocks *t, uint64_t op)
{
	while (t->n_missed) {
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

/* Of the ops at places [lo, hi). */
static struct um_urgency urgency_of(const struct um_horizon_blocks *t, uint32_t lo, uint32_t hi)
{
	struct um_urgency left = {0, INT64_MAX}, right = {0, INT64_MAX};

	for (lo += UM_HORIZON_OPS, hi += UM_HORIZON_OPS; lo < hi; lo /= 2, hi /= 2) {
		if (lo % 2)
			left = both(left, t->urgency[lo++]);
		if (hi % 2)
			right = both(t->urgency[--hi], right);
	}
	return both(left, right);
}

int64_t um_horizon_blocks_must_start(const struct um_horizon_blocks *t, uint64_t op)
{
	uint32_t from = (uint32_t)(op % UM_HORIZON_OPS);

	return both(urgency_of(t, from, UM_HORIZON_OPS), urgency_of(t, 0, from)).start;
}

/* --- resident blocks ---------------------------------------------------------------------------------------------- */

static void enter_heap(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next)
{
	b->state = UM_BLOCK_LIVE;
	b->next = next;
	t->heap[t->n_live] = (struct um_horizon_item){next, b};
	heap_rise(t->heap, t->n_live++);
}

static void leave_heap(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	uint32_t i = b->heap;

	if (i == --t->n_live)
		return;
	t->heap[i] = t->heap[t->n_live];
	heap_rise(t->heap, i);
	heap_sink(t->heap, t->n_live, i);
}

static void leave_dead(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	*(b->before == NONE ? &t->oldest : &t->at[b->before].behind) = b->behind;
	*(b->behind == NONE ? &t->newest : &t->at[b->behind].before) = b->before;
	t->n_dead--;
}

struct um_horizon_block *um_horizon_blocks_come(struct um_horizon_blocks *t, uint64_t addr, uint64_t next)
{
	struct um_horizon_block *b = um_horizon_blocks_find(t, addr);

	if (b)
		unlist(t, b);
	else
		b = add(t, addr);
	enter_heap(t, b, next);
	return b;
}

void um_horizon_blocks_drop(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	um_horizon_blocks_set_near(t, b, 0);
	if (b->state == UM_BLOCK_LIVE)
		leave_heap(t, b);
	else if (b->state == UM_BLOCK_DEAD)
		leave_dead(t, b);
	else
		unlist(t, b);
	forget(t, b);
}

void um_horizon_blocks_die(struct um_horizon_blocks *t, struct um_horizon_block *b)
{
	uint32_t index = (uint32_t)(b - t->at);

	um_horizon_blocks_set_near(t, b, 0);
	leave_heap(t, b);
	b->state = UM_BLOCK_DEAD;
	b->later = 0;
	b->before = t->newest;
	b->behind = NONE;
	*(b->before == NONE ? &t->oldest : &t->at[b->before].behind) = index;
	t->newest = index;
	t->n_dead++;
}

void um_horizon_blocks_revive(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next)
{
	leave_dead(t, b);
	enter_heap(t, b, next);
}

void um_horizon_blocks_set_next(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next)
{
	uint64_t was = b->next;

	b->next = next;
	t->heap[b->heap].next = next;
	if (next > was)
		heap_rise(t->heap, b->heap);
	else if (next < was)
		heap_sink(t->heap, t->n_live, b->heap);
}

void um_horizon_blocks_set_near(struct um_horizon_blocks *t, struct um_horizon_block *b, int near)
{
	t->n_near += (uint32_t)near - (b->near == t->window);
	b->near = near ? t->window : 0;
}
