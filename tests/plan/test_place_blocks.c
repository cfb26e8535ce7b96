/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks with live content, beside a count op by op.
 */
#include "plan/place_blocks.h"
#include "fixture/random.h"
#include "tap.h"

#include "model/event.h"

#define OPS 40
#define RANGES 60
#define BLOCKS 64

static int is_alive(struct um_place_arc a, int32_t op)
{
	return (op >= a.from && op < a.to) || op < a.wrap;
}

static void count(const struct um_place_range *r, size_t n, uint64_t *blocks, uint64_t *bytes)
{
	*blocks = *bytes = 0;
	for (int32_t op = 0; op < OPS; op++) {
		char used[BLOCKS] = {0};
		uint64_t b = 0, sum = 0;

		for (size_t i = 0; i < n; i++) {
			if (!is_alive(r[i].arc, op))
				continue;
			sum += r[i].bytes;
			for (uint64_t k = r[i].addr / UM_BLOCK_BYTES; k * UM_BLOCK_BYTES < r[i].addr + r[i].bytes; k++)
				used[k] = 1;
		}
		for (int k = 0; k < BLOCKS; k++)
			b += (uint64_t)used[k];
		*blocks = b > *blocks ? b : *blocks;
		*bytes = sum > *bytes ? sum : *bytes;
	}
}

/* Ranges of all kinds of lengths and arcs that never overlap at the same time. */
static size_t draw(struct um_place_range *r, uint64_t *random)
{
	size_t n = 0;

	for (int i = 0; i < RANGES; i++) {
		uint64_t size = test_random64(random) % 4 ? test_random64(random) % (3 * UM_BLOCK_BYTES) + 1
							  : (1 + test_random64(random) % 3) * UM_BLOCK_BYTES;
		uint64_t addr = test_random64(random) % ((BLOCKS - 4) * UM_BLOCK_BYTES);
		int32_t from = (int32_t)(test_random64(random) % OPS);
		struct um_place_range x = {addr, size, {from, from + 1 + (int32_t)(test_random64(random) % OPS), 0}};
		int free = 1;

		if (test_random64(random) % 3 == 0)
			x.addr -= x.addr % UM_BLOCK_BYTES;
		if (from > 1 && test_random64(random) % 4 == 0)
			x.arc = (struct um_place_arc){from, INT32_MAX - 1, from / 2};
		for (size_t k = 0; k < n && free; k++)
			for (int32_t op = 0; op < OPS && free; op++)
				free = !(is_alive(r[k].arc, op) && is_alive(x.arc, op) &&
					 r[k].addr < x.addr + x.bytes && x.addr < r[k].addr + r[k].bytes);
		if (free)
			r[n++] = x;
	}
	return n;
}

int main(void)
{
	struct um_place_range r[RANGES];
	uint64_t random = 7, blocks, bytes, want_blocks, want_bytes;
	int wrong = 0, failed = 0;

	for (int i = 0; i < 2000 / tap_step(10); i++) {
		size_t n = draw(r, &random);

		failed += um_place_blocks(r, n, OPS, &blocks, &bytes) != 0;
		count(r, n, &want_blocks, &want_bytes);
		wrong += blocks != want_blocks || bytes != want_bytes;
	}
	is_int(failed, 0, "packings by chance are counted");
	is_int(wrong, 0, "blocks and bytes are those of a count op by op");
	is_int(um_place_blocks(r, 0, OPS, &blocks, &bytes), 0, "a packing of nothing is counted");
	is_u64(blocks, 0, "it needs no block");

	r[0] = (struct um_place_range){100, 50, {0, 10, 0}};
	r[1] = (struct um_place_range){200, 50, {10, 20, 0}};
	um_place_blocks(r, 2, OPS, &blocks, &bytes);
	is_u64(blocks, 1, "two ranges in one block need one block");
	is_u64(bytes, 50, "bytes that live one after the other count once");
	return tap_done();
}
