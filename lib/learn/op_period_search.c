/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period_search.c - finds the distances at which the sequence of ops repeats, and which of them is a period
 *
 * A hash table holds the last position of each sequence of SEED_OPS ops. When a sequence occurs again, the distance to
 * its last position becomes a candidate, which is checked after as many ops as the distance. An inner loop does not
 * hide an outer one: the ops around the inner loop were last seen an outer period ago. A rolling hash tells whether all
 * ops since then repeated.
 */
#include "learn/op_period_state.h"

#include "base/bisect.h"

#include <stdlib.h>

#define SEED_OPS 4 /* ops in a row whose repetition makes a candidate */
#define OUTLIER_SHARE 32 /* one op in 32 may have a longer reuse distance: it reads the next batch of a data set */
#define GROWTH_SHARE 16 /* one byte in 16 born in a period may stay alive after it */
#define RECHECK_OPS 64 /* least number of ops before a candidate that failed is checked again */

static uint64_t hash_power(uint64_t n)
{
	uint64_t x = UM_OP_BASE, y = 1;

	for (; n; n >>= 1, x *= x)
		if (n & 1)
			y *= x;
	return y;
}

/* Hash of the keys of ops [from, to). */
static uint64_t hash_of(const struct um_op_period *p, uint64_t from, uint64_t to, uint64_t factor)
{
	uint64_t end = to == p->n ? p->sum : um_op_seen_at(p, to)->sum;

	return end - um_op_seen_at(p, from)->sum * factor;
}

int um_op_seen_alike(const struct um_op_period *p, uint64_t from, uint32_t length)
{
	uint64_t factor = hash_power(p->n - from);

	return hash_of(p, from, p->n, factor) == hash_of(p, from - length, p->n - length, factor);
}

/* Ops that must have repeated before the candidate is a period. */
static uint64_t needed(const struct um_op_period *p, uint64_t length)
{
	uint64_t most = length * p->required;

	if (length + most > p->room)
		return p->room - length;
	return length + most < UM_OP_PERIOD_EVIDENCE ? UM_OP_PERIOD_EVIDENCE - length : most;
}

static void plan_check(struct um_op_period *p, struct um_op_period_candidate *c, uint64_t at)
{
	c->check_at = at;
	if (at < p->next_check)
		p->next_check = at;
}

/* The entry for a new candidate: one that no longer repeats, else the one that began last. */
static struct um_op_period_candidate *find_room(struct um_op_period *p)
{
	struct um_op_period_candidate *youngest = p->candidates;
	uint64_t key = um_op_seen_at(p, p->n - 1)->key;

	for (int i = 0; i < UM_OP_PERIOD_CANDIDATES; i++) {
		struct um_op_period_candidate *c = &p->candidates[i];

		if (p->due_length && p->due == (uint32_t)i)
			continue;
		if (!c->length || um_op_seen_at(p, p->n - 1 - c->length)->key != key)
			return c;
		if (c->from > youngest->from || (p->due_length && youngest == &p->candidates[p->due]))
			youngest = c;
	}
	return youngest;
}

/* The latest ops equal those `length` before them. */
static void add_repeat(struct um_op_period *p, uint32_t length)
{
	struct um_op_period_candidate *c = NULL;
	int known = p->recent_n + 1 == p->n && p->candidates[p->recent].length == length;

	for (int i = 0; i < UM_OP_PERIOD_CANDIDATES && !known && !c; i++)
		if (p->candidates[i].length == length)
			c = &p->candidates[i];
	if (!known) {
		int holds = c && c->from >= um_op_seen_oldest(p) + length && um_op_seen_alike(p, c->from, length);

		if (!c) {
			c = find_room(p);
			*c = (struct um_op_period_candidate){.length = length};
		}
		if (!holds) {
			c->least = 0;
			c->from = p->n - SEED_OPS;
			plan_check(p, c, c->from + needed(p, length));
		}
		p->recent = (uint32_t)(c - p->candidates);
	}
	p->recent_n = p->n;
}

void um_op_period_search(struct um_op_period *p)
{
	static const uint64_t factor = UM_OP_BASE * UM_OP_BASE * UM_OP_BASE * UM_OP_BASE; /* SEED_OPS of them */
	uint64_t age, h;
	uint32_t *last;

	if (p->n < SEED_OPS)
		return;
	h = hash_of(p, p->n - SEED_OPS, p->n, factor) * UM_OP_BASE;
	last = &p->last[(h >> 32) & (p->room - 1)];
	age = *last ? (uint32_t)p->n - *last : 0;
	*last = (uint32_t)p->n;
	if (!age || age > p->room / 2 || age + SEED_OPS > p->n)
		return;
	for (uint64_t k = 1; k <= SEED_OPS; k++)
		if (um_op_seen_at(p, p->n - k)->key != um_op_seen_at(p, p->n - k - age)->key)
			return;
	add_repeat(p, (uint32_t)age);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The greatest reuse distance of the latest ops, without the outliers: ops of a period, or of several short ones.
 * UINT64_MAX: no memory. */
static uint64_t reuse_distance(const struct um_op_period *p, uint32_t period)
{
	uint32_t length = 2 * period < UM_OP_PERIOD_EVIDENCE ? UM_OP_PERIOD_EVIDENCE - period : period;
	uint64_t *all = malloc(length * sizeof *all), r = UINT64_MAX;

	for (uint32_t i = 0; all && i < length; i++)
		all[i] = um_op_seen_at(p, p->n - length + i)->reuse_distance;
	if (all) {
		qsort(all, length, sizeof *all, by_value);
		r = all[length - 1 - length / OUTLIER_SHARE];
	}
	free(all);
	return r;
}

/* About as many bytes are alive as a period ago. */
static int balanced(const struct um_op_period *p, uint32_t length)
{
	const struct um_op_seen *is = um_op_seen_at(p, p->n - 1), *was = um_op_seen_at(p, p->n - 1 - length);
	uint64_t left = is->live > was->live ? is->live - was->live : was->live - is->live;

	return left <= (is->born - was->born) / GROWTH_SHARE;
}

/* Ops from number `first` of the latest `length` ops to one that occurs once among them, as an outer loop's op does
 * beside inner loops. 0: there is none. */
static uint32_t next_unique(const struct um_op_period *p, uint32_t length, uint32_t first)
{
	uint64_t *keys = malloc(length * sizeof *keys);
	uint32_t ops = 0;

	for (uint32_t i = 0; keys && i < length; i++)
		keys[i] = um_op_seen_at(p, p->n - length + i)->key;
	if (keys)
		qsort(keys, length, sizeof *keys, by_value);
	for (uint32_t i = 0; keys && i < length; i++) {
		uint64_t key = um_op_seen_at(p, p->n - length + (first + i) % length)->key;
		size_t at = 0;

		UM_BISECT(at, length, k, keys[k] < key)
		if (at + 1 < length && keys[at + 1] == key)
			continue;
		ops = i;
		break;
	}
	free(keys);
	return ops;
}

/* The candidate is a period, due now. */
static void propose(struct um_op_period *p, uint32_t candidate, uint32_t length)
{
	uint64_t from = p->candidates[candidate].from;

	while (from > um_op_seen_oldest(p) + length &&
	       um_op_seen_at(p, from - 1)->key == um_op_seen_at(p, from - 1 - length)->key)
		from--;
	p->due = candidate;
	p->due_length = length;
	p->due_at = p->n;
	p->start_known = 0;
	p->due_first = (uint32_t)((length - (p->n - from) % length) % length);
	p->due_first = (p->due_first + next_unique(p, length, p->due_first)) % length;
}

/* 1: a period of that length may replace the one that is followed. */
static int replaces(const struct um_op_period *p, uint32_t length)
{
	uint32_t now = um_op_period_length(p);

	if (!now)
		return 1;
	if (length <= now)
		return p->lost && p->n - p->lost_at >= 2ull * length;
	return p->mismatch_at + length >= p->n; /* the shorter period did not match all ops of the longer one */
}

static void evaluate(struct um_op_period *p, uint32_t number)
{
	struct um_op_period_candidate *c = &p->candidates[number];
	uint64_t length = c->length, oldest = um_op_seen_oldest(p), distance;

	if (c->from < oldest + length)
		c->from = oldest + length;
	if (c->from >= p->n || !um_op_seen_alike(p, c->from, c->length)) {
		c->length = 0;
		return;
	}
	if (p->n - c->from < needed(p, length)) {
		plan_check(p, c, c->from + needed(p, length));
		return;
	}
	plan_check(p, c, p->n + (length > RECHECK_OPS ? length : RECHECK_OPS));
	if (p->due_length || !replaces(p, c->length))
		return;
	distance = reuse_distance(p, c->length);
	if (distance < c->least)
		distance = c->least;
	if (distance > p->room / 2)
		return;
	/* in the longer period, all tensors are used again */
	length *= (distance + length - 1) / length + !distance;
	if (length > p->room / 2 || length > UM_OP_PERIOD_MOST)
		return;
	if (p->n - c->from < needed(p, length)) {
		plan_check(p, c, c->from + needed(p, length));
		return;
	}
	if (reuse_distance(p, (uint32_t)length) <= length && replaces(p, (uint32_t)length) &&
	    balanced(p, (uint32_t)length))
		propose(p, number, (uint32_t)length);
}

void um_op_period_check(struct um_op_period *p)
{
	p->next_check = UINT64_MAX;
	for (uint32_t i = 0; i < UM_OP_PERIOD_CANDIDATES; i++) {
		struct um_op_period_candidate *c = &p->candidates[i];

		if (c->length && c->check_at <= p->n)
			evaluate(p, i);
		else if (c->length && c->check_at < p->next_check)
			p->next_check = c->check_at;
	}
}
