/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period.c - the ring of ops, and the period that is followed
 */
#include "learn/op_period_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024
#define STREAK 8 /* ops in a row that find a lost period again */
#define LOST_ROUNDS 2 /* periods, and */
#define LOST_OPS 256 /* ops, after which a lost one is given up */
#define CAUTION 4
#define HELD 8 /* iterations after which a period was no mistake */

void um_op_period_init(struct um_op_period *p)
{
	memset(p, 0, sizeof *p);
	p->next_check = UINT64_MAX;
	p->caution = 1;
}

void um_op_period_fini(struct um_op_period *p)
{
	free(p->ring);
	free(p->last);
	um_vec_fini(&p->keys);
	um_vec_fini(&p->index);
	um_op_period_init(p);
}

/* Twice as many ops are kept; those of now stay. Without memory it goes on with what there is. */
static void grow(struct um_op_period *p)
{
	uint64_t room = p->room ? 2 * p->room : FIRST_ROOM;
	struct um_op_seen *ring = calloc(room, sizeof *ring);
	uint32_t *last = calloc(room, sizeof *last);

	if (!ring || !last) {
		free(ring);
		free(last);
		return;
	}
	for (uint64_t i = um_op_seen_oldest(p); i < p->n; i++)
		ring[i & (room - 1)] = *um_op_seen_at(p, i);
	for (uint64_t i = 0; i < p->room; i++) { /* the hash has one more bit: both places are as good */
		last[i] = p->last[i];
		last[i + p->room] = p->last[i];
	}
	free(p->ring);
	free(p->last);
	p->ring = ring;
	p->last = last;
	p->room = room;
}

static void push(struct um_op_period *p, const struct um_op_trait *op)
{
	*um_op_seen_at(p, p->n) = (struct um_op_seen){op->key, p->sum, op->live, op->born, op->reach};
	p->sum = p->sum * UM_OP_BASE + op->key;
	p->n++;
}

/* --- the period --------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct um_op_phase *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->phase < y->phase ? -1 : x->phase > y->phase;
}

static void forget(struct um_op_period *p)
{
	um_vec_clear(&p->keys);
	um_vec_clear(&p->index);
	p->lost = 0;
	p->rounds = 0;
}

/* Where (key, phase) is or would be in the index. */
static size_t find(const struct um_op_period *p, uint64_t key, uint32_t phase)
{
	size_t lo = 0, hi = p->index.n;
	struct um_op_phase at = {key, phase};

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (by_key(&p->index.at[mid], &at) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int um_op_period_accept(struct um_op_period *p)
{
	uint32_t length = p->due_length;
	uint64_t first = p->n - length;

	p->due_length = 0;
	forget(p);
	if (um_vec_reserve(&p->keys, length) || um_vec_reserve(&p->index, length))
		return -ENOMEM;
	for (uint32_t i = 0; i < length; i++) {
		uint64_t key = um_op_seen_at(p, first + i)->key;

		p->keys.at[p->keys.n++] = key;
		p->index.at[p->index.n++] = (struct um_op_phase){key, i};
	}
	qsort(p->index.at, p->index.n, sizeof *p->index.at, by_key);
	size_t at = find(p, p->keys.at[0], 1);

	p->first_is_unique = at == p->index.n || p->index.at[at].key != p->keys.at[0];
	p->phase = 0;
	p->rounds = 1;
	p->odd_at = 0;
	return 0;
}

enum um_op_period_step um_op_period_refuse(struct um_op_period *p)
{
	struct um_op_period_candidate *c = &p->candidates[p->due];

	c->check_at = p->n + ((uint64_t)p->due_length << c->tries);
	if (c->check_at < p->next_check)
		p->next_check = c->check_at;
	c->tries += c->tries < 5;
	p->due_length = 0;
	return p->step;
}

void um_op_period_wait(struct um_op_period *p, uint32_t ops)
{
	p->due_at = p->n + ops;
}

static enum um_op_period_step give_up(struct um_op_period *p)
{
	if (p->rounds >= HELD)
		p->caution = 1;
	else if (p->caution < CAUTION)
		p->caution *= 2;
	forget(p);
	return UM_OP_PERIOD_GIVEN_UP;
}

/* The period is lost: does this op fit it somewhere? The nearest place after the one where it was lost comes first:
 * there, if ops were added, and not far, if some are missing. */
static enum um_op_period_step find_phase(struct um_op_period *p, uint64_t key)
{
	uint64_t length = p->keys.n, patience = LOST_ROUNDS * length > LOST_OPS ? LOST_ROUNDS * length : LOST_OPS;
	uint32_t phase;
	int begins;

	p->odd_at = p->n - 1;
	if (p->n - p->lost_at > patience)
		return give_up(p);
	phase = p->guess == length ? 0 : p->guess;
	if (!p->streak || p->keys.at[phase] != key) {
		size_t at = find(p, key, p->phase);

		p->streak = 0;
		if (at == p->index.n || p->index.at[at].key != key)
			at = find(p, key, 0);
		if (at == p->index.n || p->index.at[at].key != key)
			return UM_OP_PERIOD_GOES_ON;
		phase = p->index.at[at].phase;
	}
	p->streak++;
	p->guess = phase + 1;
	begins = phase == 0 && p->streak == 1 && (p->first_is_unique || p->phase == 0);
	if (p->streak >= STREAK || p->streak >= length) {
		p->lost = 0;
		p->phase = p->guess == length ? 0 : p->guess;
	}
	if (p->guess == length && p->streak > 1)
		return UM_OP_PERIOD_LAST;
	return begins ? UM_OP_PERIOD_BEGINS : UM_OP_PERIOD_GOES_ON;
}

static enum um_op_period_step follow(struct um_op_period *p, uint64_t key)
{
	if (!p->lost && p->keys.at[p->phase] == key) {
		if (++p->phase < p->keys.n)
			return UM_OP_PERIOD_GOES_ON;
		p->phase = 0;
		return UM_OP_PERIOD_LAST;
	}
	if (!p->lost) {
		p->lost = 1;
		p->lost_at = p->n - 1;
		p->streak = 0;
	}
	return find_phase(p, key);
}

enum um_op_period_step um_op_period_feed(struct um_op_period *p, const struct um_op_trait *op)
{
	p->step = UM_OP_PERIOD_GOES_ON;
	if (p->n == p->room && p->room < 2 * UM_OP_PERIOD_MOST)
		grow(p);
	if (!p->room)
		return p->step;
	push(p, op);
	if (p->keys.n)
		p->step = follow(p, op->key);
	p->rounds += p->step == UM_OP_PERIOD_LAST;
	if (p->due_length && um_op_seen_at(p, p->n - 1 - p->due_length)->key != op->key)
		p->due_length = 0; /* it passed the checks, and does not go on */
	if (!p->keys.n || p->lost)
		um_op_period_look(p);
	if (p->n >= p->next_check)
		um_op_period_check(p);
	return p->due_length && p->due_at == p->n ? UM_OP_PERIOD_FOUND : p->step;
}
