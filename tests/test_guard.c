/* SPDX-License-Identifier: Apache-2.0
 *
 * The guard of the tests that touch a real GPU: what it lets through and what it refuses.
 */
#include "gpu/guard.h"

#include "tap.h"

#define GIB (1ull << 30)

int main(void)
{
	char why[200] = "old", small[8];

	is_int(guard_check(10 * GIB, 5 * GIB, 80 * GIB, why, sizeof(why)), 0, "an eighth, and half of that");
	is_str(why, "", "no reason");
	is_int(guard_check(10 * GIB, 10 * GIB, 80 * GIB, why, sizeof(why)), 0, "a budget for all of it");
	is_int(guard_check(10 * GIB + 1, 5 * GIB, 80 * GIB, why, sizeof(why)), -1, "a byte more than an eighth");
	ok(strstr(why, "an eighth of what is free"), "the reason: %s", why);
	is_int(guard_check(80 * GIB, 40 * GIB, 80 * GIB, why, sizeof(why)), -1, "the whole device");
	is_int(guard_check(120 * GIB, 10 * GIB, 80 * GIB, why, sizeof(why)), -1, "more than the device has");
	is_int(guard_check(10 * GIB, 0, 80 * GIB, why, sizeof(why)), -1, "no budget");
	ok(strstr(why, "no budget"), "the reason: %s", why);
	is_int(guard_check(GIB, 2 * GIB, 80 * GIB, why, sizeof(why)), -1, "a budget above what is managed");
	ok(strstr(why, "budget 2048 MiB"), "the reason: %s", why);
	is_int(guard_check(0, 0, 0, why, sizeof(why)), -1, "nothing of nothing");
	is_int(guard_check(UINT64_MAX, UINT64_MAX, UINT64_MAX, why, sizeof(why)), -1, "no sum overflows");
	is_int(guard_check(GIB, 0, GIB, small, sizeof(small)), -1, "a small buffer");
	is_u64(strlen(small), sizeof(small) - 1, "holds what fits");
	is_int(guard_check(GIB, 0, GIB, NULL, 0), -1, "none");
	return tap_done();
}
