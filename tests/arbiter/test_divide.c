/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/divide.h"

#include "base/hash.h"
#include "tap.h"

#define ALL UINT64_MAX

static void given(const char *what, uint64_t blocks, const struct um_arbiter_claim *c, unsigned n,
		  const uint64_t *expected)
{
	uint64_t out[UM_ARBITER_MOST];

	um_arbiter_divide(c, n, blocks, out);
	for (unsigned i = 0; i < n; i++)
		is_u64(out[i], expected[i], "%s: context %u", what, i);
}

#define GIVEN(what, blocks, n, claims, ...)                                                                            \
	given(what, blocks, (const struct um_arbiter_claim[])claims, n, (const uint64_t[]){__VA_ARGS__})
#define CLAIMS(...)                                                                                                    \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}

static void examples(void)
{
	GIVEN("alone, it gets all", 100, 1, CLAIMS({5, ALL, 1}), 100);
	GIVEN("alone, it gets no more than it may have", 100, 1, CLAIMS({ALL, 40, 1}), 40);
	GIVEN("equal shares", 100, 2, CLAIMS({ALL, ALL, 1}, {ALL, ALL, 1}), 50, 50);
	GIVEN("the rest of a division goes to the first ones", 101, 3,
	      CLAIMS({ALL, ALL, 1}, {ALL, ALL, 1}, {ALL, ALL, 1}), 34, 34, 33);
	GIVEN("weights", 100, 2, CLAIMS({ALL, ALL, 3}, {ALL, ALL, 1}), 75, 25);
	GIVEN("what one does not need, the other gets", 100, 2, CLAIMS({10, ALL, 1}, {ALL, ALL, 1}), 10, 90);
	GIVEN("what is not needed is divided again", 120, 3, CLAIMS({10, ALL, 1}, {45, ALL, 1}, {ALL, ALL, 1}), 10, 45,
	      65);
	GIVEN("what nobody needs is divided, too", 100, 2, CLAIMS({10, ALL, 1}, {20, ALL, 1}), 45, 55);
	GIVEN("a limit is kept where others need nothing", 100, 2, CLAIMS({10, ALL, 1}, {ALL, 30, 1}), 70, 30);
	GIVEN("fewer blocks than contexts", 2, 3, CLAIMS({ALL, ALL, 1}, {ALL, ALL, 1}, {ALL, ALL, 1}), 1, 1, 0);
	GIVEN("no blocks", 0, 2, CLAIMS({ALL, ALL, 1}, {ALL, ALL, 1}), 0, 0);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* In any division the sum is what can be given; no one exceeds its limit; and one whose need is not met has no less, by
 * weight, than one that has more than its share. */
static int is_fair(const struct um_arbiter_claim *c, unsigned n, uint64_t blocks, const uint64_t *out)
{
	uint64_t sum = 0, may = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += out[i];
		may += c[i].most > blocks ? blocks : c[i].most;
		if (out[i] > c[i].most)
			return 0;
		for (unsigned k = 0; k < n && out[i] < least(c[i].need, c[i].most); k++)
			if ((out[i] + 1) * c[k].weight < (out[k] > 0 ? out[k] - 1 : 0) * c[i].weight)
				return 0;
	}
	return sum == least(blocks, may);
}

static void random_claims(int cases)
{
	uint64_t state = 1, wrong = 0;

	for (int i = 0; i < cases; i++) {
		struct um_arbiter_claim c[UM_ARBITER_MOST];
		uint64_t out[UM_ARBITER_MOST], blocks;
		unsigned n;

		state = um_hash_u64(state, (uint64_t)i);
		n = 1 + (unsigned)(state % UM_ARBITER_MOST);
		blocks = state >> 8 & 0xffff;
		for (unsigned k = 0; k < n; k++) {
			uint64_t r = um_hash_u64(state, k);

			c[k] = (struct um_arbiter_claim){r & 1 ? ALL : r >> 8 & 0x3ff, r & 6 ? ALL : r >> 20 & 0x3ff,
							 1 + (r & 8 ? r >> 32 & 7 : 0)};
		}
		um_arbiter_divide(c, n, blocks, out);
		wrong += !is_fair(c, n, blocks, out);
	}
	is_u64(wrong, 0, "%d random divisions give out all that can be given, to no one too much, and are fair", cases);
}

int main(void)
{
	examples();
	random_claims(tap_few() ? 200 : 20000);
	return tap_done();
}
