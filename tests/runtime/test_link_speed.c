/* SPDX-License-Identifier: Apache-2.0
 *
 * The link of a device without a profile: one timed migration of 64 MiB, over the table of the simulated device.
 */
#include "runtime/link_speed.h"
#include "sim/sim.h"
#include "tap.h"

#include <math.h>

#define MIB (1ull << 20)

static struct um_tally tally;
static unsigned calls;

static int refused(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
		   um_stream stream)
{
	(void)gpu, (void)ptr, (void)bytes, (void)to, (void)flags, (void)stream;
	calls++;
	return UM_CUDA_NOT_SUPPORTED;
}

/* The link of `device`, found from the profile of a v100. */
static int timed(const char *device, uint64_t capacity, struct um_profile *p)
{
	struct um_gpu *gpu;
	int found;

	*p = *um_profile_find("v100");
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = um_profile_find(device), .capacity = capacity}))
		tap_bail("no simulated device");
	found = um_link_speed(gpu, p);
	um_sim_tally(gpu, &tally);
	gpu->api->close(gpu);
	return found;
}

int main(void)
{
	static const char *const devices[] = {"k40", "v100", "rtx4090", "a100"};
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_gpu_api broken;
	struct um_profile p;
	struct um_gpu *gpu;

	for (unsigned i = 0; i < 4; i++) {
		const struct um_profile *is = um_profile_find(devices[i]);

		is_int(timed(devices[i], 0, &p), 1, "the link of %s is timed", devices[i]);
		ok(fabs(p.h2d / is->h2d - 1) < 0.1, "its rate is found within 10 %%: %g, is %g", p.h2d, is->h2d);
		ok(fabs(p.d2h / p.h2d - v100->d2h / v100->h2d) < 1e-9, "the other direction is scaled with it");
		is_u64(tally.h2d_bytes, UM_LINK_BYTES, "one copy of 64 MiB is made");
		is_u64(tally.d2h_bytes, 0, "nothing is copied back");
		is_u64(tally.resident_bytes, 0, "the memory is freed");
	}
	is_int(timed("h100", 0, &p), 1, "the link of h100 is timed");
	ok(p.h2d > 0.6 * 52e9 && p.h2d < 52e9, "a link that is faster than the driver is found slower, not faster");
	ok(p.flops == v100->flops && p.c_pf == v100->c_pf, "nothing else of the profile changes");

	is_int(timed("a100", 100 * MIB, &p), 0, "with less than 128 MiB free nothing is timed");
	is_u64(tally.h2d_bytes, 0, "and nothing is copied");
	ok(p.h2d == v100->h2d && p.d2h == v100->d2h, "the profile is unchanged");

	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = v100}))
		tap_bail("no simulated device");
	broken = *gpu->api;
	broken.cudaMemPrefetchAsync = refused;
	gpu->api = &broken;
	is_int(um_link_speed(gpu, &p), 0, "a device that refuses the copy has no rate");
	is_u64(calls, 1, "it is asked once");
	um_sim_tally(gpu, &tally);
	is_u64(tally.resident_bytes, 0, "the memory is freed all the same");
	gpu->api->close(gpu);
	return tap_done();
}
