/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors lie where they lay, in turns where they outlive each other, and do not overlap.
 */
#include "play/caching_alloc.h"

#include "sim/sim.h"
#include "tap.h"

#define MIB (1ull << 20)

static struct um_caching_alloc h;

static uint64_t take(uint64_t bytes)
{
	uint64_t addr = 0;

	is_int(um_caching_alloc_take(&h, bytes, &addr), 0, "%d MiB are allocated", (int)(bytes / MIB));
	return addr;
}

int main(void)
{
	struct um_sim_options o = {.profile = um_profile_find("v100")};
	struct um_gpu *gpu;
	uint64_t a[5], b[5], large;

	if (um_sim_open(&gpu, &o))
		tap_bail("no device");
	um_caching_alloc_init(&h, gpu);
	/* One that is gone when the next iteration begins, and one that is given back after its successor was made. */
	for (int i = 0; i < 5; i++) {
		um_caching_alloc_iter(&h);
		a[i] = take(3 * MIB);
		um_caching_alloc_give(&h, a[i], 3 * MIB);
		b[i] = take(5 * MIB);
		if (i)
			um_caching_alloc_give(&h, b[i - 1], 5 * MIB);
	}
	ok(a[3] == a[1] && a[4] == a[2], "it lies where it lay, beside what is there in turns");
	ok(b[4] == b[2] && b[3] == b[1] && b[4] != b[3], "tensors that outlive each other alternate between places");
	um_caching_alloc_iter(&h);
	take(4 * MIB);
	large = take(700 * MIB);
	ok(large + 700 * MIB <= b[4] || large >= b[4] + 5 * MIB, "another size lies elsewhere");
	um_caching_alloc_fini(&h);
	gpu->api->close(gpu);
	return tap_done();
}
