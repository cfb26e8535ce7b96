/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c - a segment tree without push-down
 *
 * The amount added to a whole subtree stays at its root and is summed on the way.
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

/* The maximum below a node, from its children. */
static inline int32_t most_below(const struct um_load *l, int32_t x)
{
	return (l->max[2 * x] > l->max[2 * x + 1] ? l->max[2 * x] : l->max[2 * x + 1]) + l->add[x];
}

/* Leaves [from, to] both inclusive, from the bottom up: nodes that cover the range, then the ancestors of its ends,
 * until they meet. Above that point no node is covered, so if a node does not change, its ancestors do not either. */
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
	for (a /= 2, b /= 2; a != b; a /= 2, b /= 2) {
		max[a] = most_below(l, a);
		max[b] = most_below(l, b);
	}
	if (a > 0)
		max[a] = most_below(l, a);
	for (a /= 2; a > 0; a /= 2) {
		int32_t m = most_below(l, a);

		if (max[a] == m)
			break;
		max[a] = m;
	}
}

/* The position at which the round of another position begins. Most are in the first two. */
static inline int64_t iteration_start(const struct um_load *l, int64_t position)
{
	return position < l->n ? 0 : position < 2ll * l->n ? l->n : position - position % l->n;
}

void um_load_add(struct um_load *l, int64_t from, int64_t to, int32_t delta)
{
	int32_t a, b;

	for (; to - from >= l->n; to -= l->n)
		add_flat(l, 0, l->n - 1, delta);
	if (from >= to)
		return;
	a = (int32_t)(from - iteration_start(l, from));
	b = (int32_t)(to - 1 - iteration_start(l, to - 1));
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

/* Of leaves [from, to] both inclusive. On the way up each side keeps the maximum so far. */
static int32_t max_flat(const struct um_load *l, int32_t from, int32_t to)
{
	int32_t a = from + l->size, b = to + l->size, x = l->max[a], y = l->max[b];

	while (a / 2 != b / 2) {
		if (!(a & 1) && l->max[a + 1] > x)
			x = l->max[a + 1];
		if (b & 1 && l->max[b - 1] > y)
			y = l->max[b - 1];
		a /= 2;
		b /= 2;
		x += l->add[a];
		y += l->add[b];
	}
	x = x > y ? x : y;
	for (a /= 2; a > 0; a /= 2)
		x += l->add[a];
	return x;
}

int32_t um_load_max(const struct um_load *l, int64_t from, int64_t to)
{
	int32_t a, b, x, y;

	if (from >= to)
		return INT32_MIN;
	if (to - from >= l->n)
		return l->max[1];
	a = (int32_t)(from - iteration_start(l, from));
	b = (int32_t)(to - 1 - iteration_start(l, to - 1));
	if (a <= b)
		return max_flat(l, a, b);
	x = max_flat(l, a, l->n - 1);
	y = max_flat(l, 0, b);
	return x > y ? x : y;
}

/* The last leaf of [from, to] with at least `limit`, -1 if there is none: from the right end leftwards over whole
 * subtrees, then down. `sum`: added above the node. */
static int32_t last_flat(const struct um_load *l, int32_t from, int32_t to, int32_t limit)
{
	int32_t x = to + l->size, sum = 0;

	for (int32_t up = x / 2; up > 0; up /= 2)
		sum += l->add[up];
	while (l->max[x] + sum < limit) {
		while (x > 1 && !(x & 1)) {
			x /= 2;
			sum -= l->add[x];
		}
		if (x == 1)
			return -1;
		x--;
	}
	while (x < l->size) {
		sum += l->add[x];
		x = 2 * x + (l->max[2 * x + 1] + sum >= limit);
	}
	return x - l->size >= from ? x - l->size : -1;
}

int64_t um_load_last(const struct um_load *l, int64_t from, int64_t to, int32_t limit)
{
	int64_t start = iteration_start(l, from);
	int32_t a = (int32_t)(from - start), b = (int32_t)(to - start), at;

	if (from >= to)
		return from - 1;
	if (b > l->n) {
		at = last_flat(l, 0, b - l->n - 1, limit);
		if (at >= 0)
			return start + l->n + at;
		b = l->n;
	}
	at = last_flat(l, a, b - 1, limit);
	return at >= 0 ? start + at : from - 1;
}
