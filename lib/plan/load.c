/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment tree that never pushes down: what was added to a whole subtree stays at its root and is summed on the way.
 */
#include "plan/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int um_load_init(struct um_load *l, int32_t n)
{
	l->n = n;
	for (l->size = 1; l->size < n; l->size *= 2)
		;
	l->max = calloc(2 * (size_t)l->size, sizeof *l->max);
	l->add = calloc(2 * (size_t)l->size, sizeof *l->add);
	if (l->max && l->add)
		return 0;
	um_load_fini(l);
	return -ENOMEM;
}

void um_load_fini(struct um_load *l)
{
	free(l->max);
	free(l->add);
	memset(l, 0, sizeof *l);
}

void um_load_fill(struct um_load *l)
{
	for (int32_t x = l->size - 1; x > 0; x--)
		l->max[x] = l->max[2 * x] > l->max[2 * x + 1] ? l->max[2 * x] : l->max[2 * x + 1];
}

/* Leaves [from, to] both inclusive, from the bottom up: nodes that cover the range, then their ancestors. */
static void add_flat(struct um_load *l, int32_t from, int32_t to, int32_t delta)
{
	int32_t a = from + l->size, b = to + l->size;
	int32_t *max = l->max, *add = l->add;

	for (int32_t x = a, y = b; x <= y; x /= 2, y /= 2) {
		if (x & 1)
			max[x] += delta, add[x] += delta, x++;
		if (!(y & 1))
			max[y] += delta, add[y] += delta, y--;
	}
	for (int i = 0; i < 2; i++) {
		for (int32_t x = (i ? b : a) / 2; x > 0; x /= 2) {
			int32_t m = max[2 * x] > max[2 * x + 1] ? max[2 * x] : max[2 * x + 1];

			max[x] = m + add[x];
		}
	}
}

void um_load_add(struct um_load *l, int64_t from, int64_t to, int32_t delta)
{
	int32_t a, b;

	for (; to - from >= l->n; to -= l->n)
		add_flat(l, 0, l->n - 1, delta);
	if (from >= to)
		return;
	a = (int32_t)(from % l->n);
	b = (int32_t)((to - 1) % l->n);
	if (a <= b) {
		add_flat(l, a, b, delta);
	} else {
		add_flat(l, a, l->n - 1, delta);
		add_flat(l, 0, b, delta);
	}
}

int32_t um_load_at(const struct um_load *l, int32_t op)
{
	int32_t sum = l->max[op + l->size];

	for (int32_t x = (op + l->size) / 2; x > 0; x /= 2)
		sum += l->add[x];
	return sum;
}

static int32_t max_in(const struct um_load *l, int32_t node, int32_t lo, int32_t hi, int32_t from, int32_t to)
{
	int32_t mid = lo + (hi - lo) / 2, a, b;

	if (from >= hi || to <= lo)
		return INT32_MIN / 2;
	if (from <= lo && hi <= to)
		return l->max[node];
	a = max_in(l, 2 * node, lo, mid, from, to);
	b = max_in(l, 2 * node + 1, mid, hi, from, to);
	return (a > b ? a : b) + l->add[node];
}

int32_t um_load_max(const struct um_load *l, int64_t from, int64_t to)
{
	int32_t a, b, x, y;

	if (from >= to)
		return INT32_MIN;
	if (to - from >= l->n)
		return l->max[1];
	a = (int32_t)(from % l->n);
	b = (int32_t)((to - 1) % l->n) + 1;
	if (a < b)
		return max_in(l, 1, 0, l->size, a, b);
	x = max_in(l, 1, 0, l->size, a, l->n);
	y = max_in(l, 1, 0, l->size, 0, b);
	return x > y ? x : y;
}

/* `sum`: added above this node. */
static int32_t last_in(const struct um_load *l, int32_t node, int32_t lo, int32_t hi, int32_t from, int32_t to,
                       int32_t limit, int32_t sum)
{
	int32_t mid = lo + (hi - lo) / 2, at;

	if (from >= hi || to <= lo || l->max[node] + sum < limit)
		return -1;
	if (hi - lo == 1)
		return lo;
	at = last_in(l, 2 * node + 1, mid, hi, from, to, limit, sum + l->add[node]);
	return at >= 0 ? at : last_in(l, 2 * node, lo, mid, from, to, limit, sum + l->add[node]);
}

int64_t um_load_last(const struct um_load *l, int64_t from, int64_t to, int32_t limit)
{
	int64_t lap = from - from % l->n;
	int32_t a = (int32_t)(from - lap), b = (int32_t)(to - lap), at;

	if (from >= to)
		return from - 1;
	if (b > l->n) {
		at = last_in(l, 1, 0, l->size, 0, b - l->n, limit, 0);
		if (at >= 0)
			return lap + l->n + at;
		b = l->n;
	}
	at = last_in(l, 1, 0, l->size, a, b, limit, 0);
	return at >= 0 ? lap + at : from - 1;
}
