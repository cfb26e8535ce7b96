/* SPDX-License-Identifier: Apache-2.0
 *
 * The link of a device without a profile: one timed migration of 64 MiB, over the table of the simulated device.
 */
#include "runtime/chosen_device.h"
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

/* What evicting costs on a device, by the profile that it is simulated with. */
static void test_evictions(const char *device)
{
	const struct um_profile *is = um_profile_find(device);
	double block = (double)UM_BLOCK_BYTES / (is->d2h * is->eta) * 1e9 + (double)(is->o_seg + is->c_api + is->c_pf);
	double rate, expected = (double)UM_BLOCK_BYTES / (block + (double)is->c_pf_cpu) * 1e9;
	struct um_gpu *gpu;
	void *memory;

	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = is}))
		tap_bail("no simulated device");
	rate = um_evict_speed(gpu, 0, &memory);
	ok(fabs(rate / expected - 1) < 0.05, "evictions on %s: %g bytes/s, by its profile %g", device, rate, expected);
	um_sim_tally(gpu, &tally);
	is_u64(tally.resident_bytes, 0, "the memory is on the host");
	is_int(gpu->api->cudaFree(gpu, memory), 0, "freeing it is left to the caller, as that waits for the device");
	gpu->api->close(gpu);
}

static _Atomic unsigned evicted[UM_KERNEL_EVICT_BYTES / UM_BLOCK_BYTES];
static _Atomic uintptr_t lowest; /* address of the memory */
static const struct um_gpu_api *simulated;
static _Atomic int evict_error;

static int evict(struct um_gpu *gpu, const void *ptr, size_t bytes)
{
	uint64_t block = ((uintptr_t)ptr - lowest) / UM_BLOCK_BYTES;

	(void)gpu;
	if (bytes == UM_BLOCK_BYTES && block < sizeof evicted / sizeof *evicted)
		evicted[block]++;
	return evict_error;
}

static int note_memory(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	int err = simulated->cudaMallocManaged(gpu, ptr, bytes, flags);

	lowest = (uintptr_t)*ptr;
	return err;
}

/* With calls that several threads make at once. */
static void test_threads(void)
{
	struct um_gpu_api api;
	struct um_gpu *gpu;
	unsigned equal = 1;
	void *memory;

	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = um_profile_find("h100")}))
		tap_bail("no simulated device");
	simulated = gpu->api;
	api = *simulated;
	api.evict = evict;
	api.cudaMallocManaged = note_memory;
	gpu->api = &api;
	ok(um_evict_speed(gpu, 3, &memory) > 0, "evictions by threads have a rate");
	for (unsigned i = 0; i < sizeof evicted / sizeof *evicted; i++)
		equal &= evicted[i] && evicted[i] == evicted[0];
	ok(equal, "each block is evicted once in each round (%u)", evicted[0]);
	gpu->api->cudaFree(gpu, memory);
	evict_error = UM_CUDA_INVALID_VALUE;
	ok(um_evict_speed(gpu, 3, &memory) <= 0, "evictions that fail have none");
	gpu->api->cudaFree(gpu, memory);
	gpu->api->close(gpu);
	ok(um_link_evicters() >= 1 && um_link_evicters() <= UM_GPU_EVICTERS, "the CPUs bound the number of threads: %u",
	   um_link_evicters());
}

static void test_profile_of_evictions(void)
{
	struct um_chosen_device d = {.profile = *um_profile_find("h100"), .larger = 1};
	struct um_profile was = d.profile;
	double rate;

	um_chosen_device_evicts_at(&d, 0);
	um_chosen_device_evicts_at(&d, was.d2h);
	ok(d.profile.d2h == was.d2h && d.profile.c_pf_cpu == was.c_pf_cpu,
	   "evictions as fast as copies, or not measured, change no cost");
	is_int(d.profile.serial_host, 1, "a real device evicts one block after the other");
	um_chosen_device_evicts_at(&d, 9e9);
	ok(fabs(d.profile.d2h * d.profile.eta / 9e9 - 1) < 1e-9,
	   "where the library evicts, plans reckon with the rate");
	is_u64(d.profile.c_pf_cpu, 0, "the cost of the calls is not counted twice");
	d.evicters = 4;
	um_chosen_device_evicts_at(&d, 8e9);
	is_int(d.profile.serial_host, 0, "evictions past libcuda keep no call waiting");
	ok(fabs(d.profile.d2h * d.profile.eta / 8e9 - 1) < 1e-9, "and plans reckon with their rate, too");
	d = (struct um_chosen_device){.profile = was, .evicters = 4};
	d.profile.measured = 1;
	um_chosen_device_evicts_at(&d, 16e9);
	rate = (double)UM_BLOCK_BYTES * UM_GPU_EVICTERS /
	       ((double)(d.profile.c_pf_cpu + d.profile.c_pf + d.profile.c_api) +
		(double)UM_BLOCK_BYTES * 1e9 / (was.d2h * was.eta)) *
	       1e9;
	ok(fabs(rate / 16e9 - 1) < 0.01, "the workers of a plan reach the measured rate together: %g", rate);
	d = (struct um_chosen_device){.profile = was, .larger = 1};
	d = (struct um_chosen_device){.profile = was};
	um_chosen_device_evicts_at(&d, 9e9);
	ok(d.profile.d2h == was.d2h, "where the driver evicts, too, its copies keep their rate");
	ok(fabs((double)d.profile.c_pf_cpu - 158e3) < 2e3, "and the library's calls have their measured cost: %llu",
	   (unsigned long long)d.profile.c_pf_cpu);
	d.profile.measured = 1;
	um_chosen_device_evicts_at(&d, 5e9);
	ok(fabs((double)d.profile.c_pf_cpu - 158e3) < 2e3, "the costs of a measured profile stay");
}

int main(void)
{
	static const char *const devices[] = {"k40", "v100", "rtx4090", "a100"};
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_gpu_api broken;
	struct um_profile p;
	void *memory;
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

	for (unsigned i = 0; i < 4; i++)
		test_evictions(devices[i]);
	test_evictions("h100");
	test_threads();
	test_profile_of_evictions();

	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = v100}))
		tap_bail("no simulated device");
	broken = *gpu->api;
	broken.cudaMemPrefetchAsync = refused;
	gpu->api = &broken;
	is_int(um_link_speed(gpu, &p), 0, "a device that refuses the copy has no rate");
	is_u64(calls, 1, "it is asked once");
	ok(um_evict_speed(gpu, 0, &memory) <= 0, "nor have its evictions");
	gpu->api->cudaFree(gpu, memory);
	um_sim_tally(gpu, &tally);
	is_u64(tally.resident_bytes, 0, "the memory is freed all the same");
	gpu->api->close(gpu);
	return tap_done();
}
