/* SPDX-License-Identifier: Apache-2.0
 *
 * The curve of live bytes against a plain search.
 */
#include "replay/live_curve.h"

#include "fixture/random.h"
#include "tap.h"

#include <stdlib.h>

#define OPS (2 * UM_LIVE_CURVE_OPS + 100) /* the oldest are replaced */

static uint64_t slow_peak(const uint64_t *bytes, uint64_t from, uint64_t to)
{
	uint64_t best = from;

	for (uint64_t op = from; op <= to; op++)
		if (bytes[op] > bytes[best])
			best = op;
	return best;
}

int main(void)
{
	uint64_t *bytes = calloc(OPS, sizeof *bytes), seed = 5;
	struct um_live_curve c;
	int peak = 1, at = 1;

	if (!bytes || um_live_curve_init(&c))
		tap_bail("no memory");
	for (uint64_t op = 1; op < OPS; op++) {
		uint64_t first = op < UM_LIVE_CURVE_OPS ? 1 : op - UM_LIVE_CURVE_OPS + 1;
		uint64_t from, to;

		bytes[op] = test_random(&seed, op % 3 ? 1u << 30 : 4); /* with equal ones */
		um_live_curve_add(&c, op, bytes[op]);
		if (op % 16)
			continue;
		from = first + test_random(&seed, (uint32_t)(op - first + 1));
		to = from + test_random(&seed, (uint32_t)(op - from + 1));
		if (op % 64)
			to = to - from > 100 ? from + 100 : to;
		peak &= um_live_curve_peak(&c, from, to) == slow_peak(bytes, from, to);
		at &= um_live_curve_at(&c, from) == bytes[from];
	}
	ok(peak, "the first op with the most bytes of a range is found");
	ok(at, "the bytes of an op are kept");
	um_live_curve_fini(&c);
	free(bytes);
	return tap_done();
}
