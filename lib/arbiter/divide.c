/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/divide.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Blocks that the context may still get up to its limit: its need, or all that it may have. */
static uint64_t wants(const struct um_arbiter_claim *c, int needs, uint64_t has)
{
	uint64_t limit = needs ? least(c->need, c->most) : c->most;

	return limit > has ? limit - has : 0;
}

/* Gives those whose want is within their share what they want. The number of contexts that want more. */
static unsigned satisfy(const struct um_arbiter_claim *c, unsigned n, int needs, uint64_t *left, uint64_t *weights,
			uint64_t *out)
{
	uint64_t blocks = *left, sum = 0;
	unsigned open = 0, given = 0;

	for (unsigned i = 0; i < n; i++)
		if (wants(&c[i], needs, out[i]))
			sum += c[i].weight;
	*weights = sum;
	for (unsigned i = 0; i < n; i++) {
		uint64_t want = wants(&c[i], needs, out[i]);

		if (want && want <= blocks * c[i].weight / sum) {
			out[i] += want;
			*left -= want;
			given++;
		} else {
			open += want != 0;
		}
	}
	return given && open && *left ? satisfy(c, n, needs, left, weights, out) : open;
}

/* Adds up to `*left` blocks to `out`. */
static void fill(const struct um_arbiter_claim *c, unsigned n, int needs, uint64_t *left, uint64_t *out)
{
	uint64_t weights, blocks;

	if (!*left || !satisfy(c, n, needs, left, &weights, out))
		return;
	blocks = *left;
	for (unsigned i = 0; i < n; i++) {
		uint64_t part = wants(&c[i], needs, out[i]) ? blocks * c[i].weight / weights : 0;

		out[i] += part;
		*left -= part;
	}
	for (unsigned i = 0; i < n && *left; i++) /* what rounding has left: less than a block for each */
		if (wants(&c[i], needs, out[i])) {
			out[i]++;
			--*left;
		}
}

void um_arbiter_divide(const struct um_arbiter_claim *claims, unsigned n, uint64_t blocks, uint64_t *out)
{
	for (unsigned i = 0; i < n; i++)
		out[i] = 0;
	fill(claims, n, 1, &blocks, out);
	fill(claims, n, 0, &blocks, out);
}
