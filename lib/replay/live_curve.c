/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/live_curve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPS UM_LIVE_CURVE_OPS
#define NONE UINT32_MAX

int um_live_curve_init(struct um_live_curve *c)
{
	c->bytes = calloc(OPS, sizeof *c->bytes);
	c->most = calloc(2 * OPS, sizeof *c->most);
	if (!c->bytes || !c->most)
		return -ENOMEM;
	for (uint32_t i = 0; i < OPS; i++)
		c->most[OPS + i] = i;
	for (uint32_t i = OPS - 1; i; i--)
		c->most[i] = c->most[2 * i];
	return 0;
}

void um_live_curve_fini(struct um_live_curve *c)
{
	free(c->bytes);
	free(c->most);
	memset(c, 0, sizeof *c);
}

/* Of two indices, `left` of the earlier op. */
static uint32_t more(const struct um_live_curve *c, uint32_t left, uint32_t right)
{
	if (left == NONE || right == NONE)
		return left == NONE ? right : left;
	return c->bytes[right] > c->bytes[left] ? right : left;
}

void um_live_curve_add(struct um_live_curve *c, uint64_t op, uint64_t bytes)
{
	uint32_t i = (uint32_t)(op % OPS);

	c->bytes[i] = bytes;
	for (i = (i + OPS) / 2; i; i /= 2)
		c->most[i] = more(c, c->most[2 * i], c->most[2 * i + 1]);
}

/* Of the indices [lo, hi). */
static uint32_t most_of(const struct um_live_curve *c, uint32_t lo, uint32_t hi)
{
	uint32_t left = NONE, right = NONE;

	for (lo += OPS, hi += OPS; lo < hi; lo /= 2, hi /= 2) {
		if (lo % 2)
			left = more(c, left, c->most[lo++]);
		if (hi % 2)
			right = more(c, c->most[--hi], right);
	}
	return more(c, left, right);
}

uint64_t um_live_curve_peak(const struct um_live_curve *c, uint64_t from, uint64_t to)
{
	uint32_t lo = (uint32_t)(from % OPS), hi = (uint32_t)(to % OPS) + 1, i;

	i = lo < hi ? most_of(c, lo, hi) : more(c, most_of(c, lo, OPS), most_of(c, 0, hi));
	return from + (i - lo) % OPS;
}
