/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/iteration_period.h"

#include <string.h>

#define MISSES 3 /* a single different iteration causes two differences: itself, and the next one */

void um_iteration_period_init(struct um_iteration_period *p)
{
	memset(p, 0, sizeof *p);
	p->length = 1;
	p->required = 1;
}

int um_iteration_period_mark(struct um_iteration_period *p)
{
	if (++p->marks < p->length)
		return 0;
	p->marks = 0;
	return 1;
}

static void add(struct um_iteration_period *p, uint64_t key, uint32_t ops)
{
	if (p->n == UM_PERIOD_KEYS) {
		p->n--;
		memmove(p->keys, p->keys + 1, p->n * sizeof *p->keys);
		memmove(p->ops, p->ops + 1, p->n * sizeof *p->ops);
	}
	p->keys[p->n] = key;
	p->ops[p->n++] = ops;
}

/* The latest `want` keys equal those `q` before them. */
static int repeats(const struct um_iteration_period *p, uint32_t q, uint32_t want)
{
	if (p->n < q + want)
		return 0;
	for (uint32_t i = p->n - want; i < p->n; i++)
		if (p->keys[i] != p->keys[i - q])
			return 0;
	return 1;
}

static uint64_t ops_of(const struct um_iteration_period *p, uint32_t q)
{
	uint64_t sum = 0;

	for (uint32_t i = p->n - q; i < p->n; i++)
		sum += p->ops[i];
	return sum;
}

/* The longest run of equal iterations in a program that repeats the latest `q`, at most `q`. */
static uint32_t longest_run(const struct um_iteration_period *p, uint32_t q)
{
	const uint64_t *keys = p->keys + p->n - q;
	uint32_t longest = 1, run = 1;

	for (uint32_t i = 1; i < 2 * q && longest < q; i++) {
		run = keys[i % q] == keys[(i - 1) % q] ? run + 1 : 1;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static uint32_t find(const struct um_iteration_period *p)
{
	for (uint32_t q = 1; q <= UM_PERIOD_MOST; q++)
		if (repeats(p, q, q == 1 ? 1 : q * p->required))
			return ops_of(p, q) <= UM_PERIOD_OPS && longest_run(p, q) < UM_PERIOD_RUN ? q : 1;
	return 1;
}

void um_iteration_period_set(struct um_iteration_period *p, uint32_t length)
{
	p->length = length;
	p->marks = 0;
	p->last = 0;
	p->misses = 0;
	p->n = 0;
}

int um_iteration_period_end(struct um_iteration_period *p, uint64_t key, uint32_t ops)
{
	uint32_t length = 1;

	if (p->length > 1) {
		p->misses = p->last && key != p->last ? p->misses + 1 : 0;
		p->last = key;
		if (p->misses < MISSES)
			return 0;
		if (p->required < UM_PERIOD_REQUIRED)
			p->required *= 2;
	} else {
		add(p, key, ops);
		length = find(p);
		if (length == 1)
			return 0;
	}
	um_iteration_period_set(p, length);
	return 1;
}
