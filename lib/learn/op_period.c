/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period.c - the ring of ops; follows the period that was accepted
 */
#include "learn/op_period_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024
#define RESYNC_OPS 8 /* ops in a row that must match a lost period before it is followed again */
#define GIVE_UP_PERIODS 2 /* a lost period is given up after as many periods, and */
#define GIVE_UP_OPS 256 /* as many ops */
#define MAX_REQUIRED 4 /* repetitions */
#define STABLE_ITERATIONS 8 /* iterations after which a period counts as correct */

void um_op_period_init(struct um_op_period *p)
{
	memset(p, 0, sizeof *p);
	p->next_check = UINT64_MAX;
	p->required = 1;
}

void um_op_period_fini(struct um_op_period *p)
{
	free(p->ring);
	free(p->last);
	um_vec_fini(&p->keys);
	um_vec_fini(&p->index);
	um_op_period_init(p);
}

/* Doubles the ring and keeps its ops. A failed allocation leaves the ring as it is. */
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
	for (uint64_t i = 0; i < p->room; i++) { /* the index has one more bit: either value of it is possible */
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
	*um_op_seen_at(p, p->n) = (struct um_op_seen){op->key, p->sum, op->live, op->born, op->reuse_distance};
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
	p->iterations_begun = 0;
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
	p->iterations_begun = 1;
	p->mismatch_at = 0;
	return 0;
}

/* The period that waits is not accepted. Its candidate is checked again after `ops` further ops. */
static enum um_op_period_step put_off(struct um_op_period *p, uint64_t ops)
{
	struct um_op_period_candidate *c = &p->candidates[p->due];

	c->check_at = p->n + ops;
	if (c->check_at < p->next_check)
		p->next_check = c->check_at;
	p->due_length = 0;
	return p->step;
}

enum um_op_period_step um_op_period_refuse(struct um_op_period *p)
{
	uint32_t *tries = &p->candidates[p->due].tries;
	uint64_t ops = (uint64_t)p->due_length << *tries;

	*tries += *tries < 5;
	return put_off(p, ops);
}

enum um_op_period_step um_op_period_lengthen(struct um_op_period *p, uint32_t length, uint32_t ops)
{
	p->candidates[p->due].least = length;
	return put_off(p, ops);
}

void um_op_period_wait(struct um_op_period *p, uint32_t ops)
{
	p->due_at = p->n + ops;
}

static enum um_op_period_step give_up(struct um_op_period *p)
{
	if (p->iterations_begun >= STABLE_ITERATIONS)
		p->required = 1;
	else if (p->required < MAX_REQUIRED)
		p->required *= 2;
	forget(p);
	return UM_OP_PERIOD_GIVEN_UP;
}

/* The period is lost: finds a phase that matches this op. The nearest phase at or after the lost one is tried first:
 * the same phase if ops were added, a later one if ops are missing. */
static enum um_op_period_step find_phase(struct um_op_period *p, uint64_t key)
{
	uint64_t length = p->keys.n,
		 limit = GIVE_UP_PERIODS * length > GIVE_UP_OPS ? GIVE_UP_PERIODS * length : GIVE_UP_OPS;
	uint32_t phase;
	int begins;

	p->mismatch_at = p->n - 1;
	if (p->n - p->lost_at > limit)
		return give_up(p);
	phase = p->guess == length ? 0 : p->guess;
	if (!p->matched || p->keys.at[phase] != key) {
		size_t at = find(p, key, p->phase);

		p->matched = 0;
		if (at == p->index.n || p->index.at[at].key != key)
			at = find(p, key, 0);
		if (at == p->index.n || p->index.at[at].key != key)
			return UM_OP_PERIOD_GOES_ON;
		phase = p->index.at[at].phase;
	}
	p->matched++;
	p->guess = phase + 1;
	begins = phase == 0 && p->matched == 1 && (p->first_is_unique || p->phase == 0);
	if (p->matched >= RESYNC_OPS || p->matched >= length) {
		p->lost = 0;
		p->phase = p->guess == length ? 0 : p->guess;
	}
	if (p->guess == length && p->matched > 1)
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
		p->matched = 0;
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
	p->iterations_begun += p->step == UM_OP_PERIOD_LAST;
	if (p->due_length && um_op_seen_at(p, p->n - 1 - p->due_length)->key != op->key)
		p->due_length = 0; /* it passed the checks, but this op does not repeat */
	if (!p->keys.n || p->lost)
		um_op_period_search(p);
	if (p->n >= p->next_check)
		um_op_period_check(p);
	return p->due_length && p->due_at == p->n ? UM_OP_PERIOD_FOUND : p->step;
}
