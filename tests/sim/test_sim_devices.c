/* SPDX-License-Identifier: Apache-2.0
 *
 * Several simulated devices of one process: memory that they share, copies between them, clocks, and a common link.
 */
#include "sim/state.h"
#include "tap.h"

#include <pthread.h>

#define BLOCK UM_BLOCK_BYTES
#define BLOCK_NS ((uint64_t)(BLOCK * 1.0)) /* at 1 GB/s */
#define ALL UINT32_MAX
#define DEVICES_MAX 4

static struct um_profile profile;
static struct um_gpu *gpu[DEVICES_MAX];
static um_stream stream[DEVICES_MAX];
static unsigned n_devices;

/* 1 GB/s in both directions; nothing else costs anything. `link`: 0, or all on this one. */
static void open_devices(unsigned n, unsigned link, int follow)
{
	struct um_sim_options o = {.profile = &profile, .backed = 1, .follow_cpu = follow, .link = link};

	um_profile_init(&profile);
	profile.capacity = 16 * BLOCK;
	profile.h2d = profile.d2h = 1e9;
	profile.mem_bandwidth = 1e11;
	profile.eta = 1;
	profile.o_seg = profile.c_api = profile.c_batch = profile.c_fault = profile.c_blk = profile.c_unmap = 0;
	profile.c_dma = profile.c_dma_4k = profile.c_hostpop = profile.c_hostzero = profile.c_pf = profile.c_pf_res = 0;
	profile.c_zero = profile.c_evict = profile.c_evict_unused = profile.c_pf_cpu = profile.c_disc_u = 0;
	profile.c_disc = profile.c_cpuf = profile.c_adv = profile.c_adv_ab = profile.c_perm = 0;
	n_devices = n;
	for (unsigned d = 0; d < n; d++) {
		o.beside = d ? gpu[0] : NULL;
		if (um_sim_open(&gpu[d], &o) ||
		    gpu[d]->api->cudaStreamCreateWithFlags(gpu[d], &stream[d], UM_STREAM_NON_BLOCKING))
			tap_bail("cannot open");
	}
}

static void shut(void)
{
	for (unsigned d = 0; d < n_devices; d++)
		gpu[d]->api->close(gpu[d]);
}

static char *managed(unsigned d, unsigned blocks)
{
	void *p = NULL;

	if (gpu[d]->api->cudaMallocManaged(gpu[d], &p, blocks * BLOCK, 1))
		tap_bail("no memory");
	return p;
}

static int run(unsigned d, void *at, uint64_t bytes, uint32_t access)
{
	const struct um_touch touch = {at, bytes, 0, access};
	int err = um_sim_run(gpu[d], stream[d], &(struct um_sim_kernel){.name = "k", .access = &touch, .n_access = 1});

	return err ? err : um_sim_sync(gpu[d]);
}

static int prefetch(unsigned on, void *at, uint64_t bytes, int to)
{
	struct um_location where = to < 0 ? um_on_host() : um_on_device(to);

	return gpu[on]->api->cudaMemPrefetchAsync(gpu[on], at, bytes, where, 0, stream[on]);
}

static int advise(unsigned d, void *at, uint64_t bytes, int advice, int where)
{
	return gpu[d]->api->cudaMemAdvise(gpu[d], at, bytes, advice, um_on_device(where));
}

static struct um_sim_block_state block(unsigned d, const void *at)
{
	struct um_sim_block_state s = {0};

	um_sim_block(gpu[d], at, &s);
	return s;
}

static struct um_tally tally(unsigned d)
{
	struct um_tally t;

	um_sim_tally(gpu[d], &t);
	return t;
}

static uint64_t room(unsigned d)
{
	size_t free_bytes = 0, total;

	gpu[d]->api->cudaMemGetInfo(gpu[d], &free_bytes, &total);
	return free_bytes;
}

static void memory_of_each(void)
{
	struct um_sim_memory m;
	void *p, *q;

	open_devices(2, 0, 0);
	ok(gpu[0]->caps.device == 0 && gpu[1]->caps.device == 1, "devices are numbered");
	ok(!gpu[1]->api->cudaMalloc(gpu[1], &p, 4 * BLOCK), "memory of the second");
	is_u64(room(0), 16 * BLOCK, "the first one has all of its own");
	is_u64(room(1), 12 * BLOCK, "the second one does not");
	ok(!um_sim_memory(gpu[0], p, &m) && m.device == 1 && m.kind == UM_SIM_DEVICE, "its device is known everywhere");
	q = managed(0, 1);
	ok(!um_sim_memory(gpu[1], q, &m) && m.device == 0 && m.kind == UM_SIM_MANAGED, "managed memory, too");
	is_int(gpu[0]->api->cudaFree(gpu[0], p), 0, "another device frees it");
	is_u64(room(1), 16 * BLOCK, "and its own device has the room");
	is_int(gpu[1]->api->cudaFree(gpu[1], q), 0, "so with managed memory");
	is_int(um_sim_memory(gpu[0], q, &m), -ENOENT, "which is gone on both");
	ok(um_sim_open(&gpu[2], &(struct um_sim_options){.profile = &profile, .beside = gpu[0]}) == -EINVAL,
	   "no device comes once there was memory");
	shut();
}

static void migrates(void)
{
	char *p;

	open_devices(2, 0, 0);
	p = managed(0, 2);
	is_int(run(0, p, 2 * BLOCK, UM_WRITE), 0, "a kernel on the first device");
	ok(block(0, p).gpu == ALL && !block(1, p).gpu, "has the memory there");
	is_u64(room(1), 16 * BLOCK, "the other device has no part of it");
	is_int(run(1, p, 2 * BLOCK, UM_READ), 0, "a kernel on the second one");
	ok(!block(0, p).gpu && block(1, p).gpu == ALL, "moves it there");
	is_u64(tally(0).d2h_bytes, 2 * BLOCK, "out of the first");
	is_u64(tally(1).h2d_bytes, 2 * BLOCK, "into the second");
	is_u64(tally(0).h2d_bytes + tally(1).d2h_bytes, 0, "and nothing else");
	ok(um_sim_now(gpu[1]) >= 3 * BLOCK_NS, "through the host: one block out, then in, beside the next one");
	is_int(prefetch(0, p, 2 * BLOCK, 1), 0, "a stream of the first prefetches to the second");
	is_u64(tally(1).h2d_bytes, 2 * BLOCK, "where it is already");
	is_int(prefetch(1, p, 2 * BLOCK, 0), 0, "and a stream of the second to the first");
	ok(block(0, p).gpu == ALL && !block(1, p).gpu, "where it goes");
	is_int(prefetch(1, p, 2 * BLOCK, -1) | um_sim_sync(gpu[1]), 0, "or to the host");
	ok(!block(0, p).gpu && !block(1, p).gpu, "from whichever device has it");
	is_u64(tally(0).d2h_bytes, 4 * BLOCK, "over the link of that device");
	is_int(prefetch(0, p, 2 * BLOCK, 2), UM_CUDA_INVALID_DEVICE, "there is no third device");
	is_int(run(0, p, BLOCK, UM_WRITE), 0, "the first one writes a block");
	is_int(gpu[1]->api->cudaMemDiscardBatchAsync(gpu[1], (void *[]){p}, (size_t[]){BLOCK}, 1, 0, stream[1]), 0,
	       "which a stream of the second one discards");
	is_int(run(1, p, BLOCK, UM_READ), 0, "and uses again");
	is_u64(tally(0).d2h_bytes, 4 * BLOCK, "without a copy out");
	shut();
}

static void duplicates(void)
{
	char *p;

	open_devices(3, 0, 0);
	p = managed(0, 1);
	memset(p, 1, BLOCK);
	um_sim_host_touch(gpu[0], p, BLOCK, UM_WRITE);
	is_int(advise(0, p, BLOCK, UM_ADV_SET_READ_MOSTLY, 0), 0, "memory becomes read-mostly");
	for (unsigned d = 0; d < 3; d++)
		is_int(run(d, p, BLOCK, UM_READ), 0, "is read by device %u", d);
	ok(block(0, p).gpu == ALL && block(1, p).gpu == ALL && block(2, p).gpu == ALL, "all have a duplicate");
	is_u64(tally(0).d2h_bytes + tally(1).d2h_bytes, 0, "from the host");
	for (unsigned d = 0; d < 3; d++)
		is_int(run(d, p, BLOCK, UM_READ), 0, "device %u reads again", d);
	is_u64(tally(0).h2d_bytes + tally(1).h2d_bytes + tally(2).h2d_bytes, 3 * BLOCK, "without a copy");
	for (unsigned d = 0; d < 3; d++)
		is_u64(room(d), 15 * BLOCK, "it counts on device %u", d);
	is_int(run(1, p, BLOCK, UM_WRITE), 0, "device 1 writes");
	ok(!block(0, p).gpu && block(1, p).gpu == ALL && !block(2, p).gpu, "the other duplicates end");
	is_int(run(2, p, BLOCK, UM_READ), 0, "device 2 reads what was written");
	is_u64(tally(1).d2h_bytes, BLOCK, "which has to leave device 1");
	um_sim_host_touch(gpu[0], p, BLOCK, UM_WRITE);
	ok(!block(1, p).gpu && !block(2, p).gpu, "the CPU's write ends all of them");
	is_int(run(0, p, BLOCK, UM_READ) | run(1, p, BLOCK, UM_READ), 0, "two have it again");
	is_int(advise(1, p, BLOCK, UM_ADV_UNSET_READ_MOSTLY, 0), 0, "no longer read-mostly");
	is_int(run(2, p, BLOCK, UM_WRITE), 0, "it is a single copy");
	ok(!block(0, p).gpu && !block(1, p).gpu && block(2, p).gpu == ALL, "on the device that used it last");
	shut();
}

static void evicted_duplicates(void)
{
	char *p, *q;

	open_devices(2, 0, 0);
	p = managed(0, 1);
	q = managed(1, 16);
	um_sim_host_touch(gpu[0], p, BLOCK, UM_WRITE);
	advise(0, p, BLOCK, UM_ADV_SET_READ_MOSTLY, 0);
	is_int(run(0, p, BLOCK, UM_READ) | run(1, p, BLOCK, UM_READ), 0, "there are two duplicates");
	is_int(run(1, q, 16 * BLOCK, UM_WRITE), 0, "device 1 needs all of its memory");
	ok(!block(1, p).gpu && block(0, p).gpu == ALL, "and evicts its duplicate only");
	is_int(run(0, q, 16 * BLOCK, UM_WRITE), 0, "device 0 needs all of its own");
	is_u64(tally(0).d2h_bytes, 0, "duplicates leave without a copy");
	is_u64(tally(0).host_bytes + tally(1).host_bytes, 17 * BLOCK, "the host has memory for each block once");
	shut();
}

static void attributes(void)
{
	struct um_sim_range_attributes a;
	char *p;

	open_devices(2, 0, 0);
	p = managed(0, 1);
	is_int(advise(0, p, BLOCK, UM_ADV_SET_PREFERRED, 1), 0, "the preferred location is the other device");
	is_int(advise(0, p, BLOCK, UM_ADV_SET_ACCESSED_BY, 0) | advise(0, p, BLOCK, UM_ADV_SET_ACCESSED_BY, 1), 0,
	       "both access it");
	is_int(advise(0, p, BLOCK, UM_ADV_SET_PREFERRED, 2), UM_CUDA_INVALID_DEVICE, "there is no third one");
	prefetch(0, p, BLOCK, 1);
	is_int(um_sim_range_attributes(gpu[0], p, BLOCK, &a), 0, "attributes are there");
	ok(a.preferred == 1 && a.accessed_gpu == 3 && a.prefetched == 1, "name the devices");
	advise(1, p, BLOCK, UM_ADV_SET_PREFERRED, 0);
	advise(1, p, BLOCK, UM_ADV_UNSET_ACCESSED_BY, 1);
	prefetch(1, p, BLOCK, -1);
	um_sim_range_attributes(gpu[1], p, BLOCK, &a);
	ok(a.preferred == 0 && a.accessed_gpu == 1 && a.prefetched == -1, "the latest advice counts");
	shut();
}

static int copy(unsigned d, void *to, const void *from, uint64_t bytes)
{
	return um_sim_copy(
		gpu[d], stream[d],
		&(struct um_sim_copy){
			.to = to, .from = from, .to_pitch = bytes, .from_pitch = bytes, .bytes = bytes, .rows = 1},
		1);
}

static void copies(void)
{
	char *p, *q, *pin;
	uint64_t before;

	open_devices(2, 0, 0);
	if (gpu[0]->api->cudaMalloc(gpu[0], (void **)&p, BLOCK) ||
	    gpu[1]->api->cudaMalloc(gpu[1], (void **)&q, BLOCK) ||
	    gpu[0]->api->cudaHostAlloc(gpu[0], (void **)&pin, BLOCK, 0))
		tap_bail("no memory");
	memset(pin, 7, BLOCK);
	is_int(copy(1, q, pin, BLOCK), 0, "pinned memory of one device is pinned for the other");
	is_u64(um_sim_now(gpu[1]), BLOCK_NS, "at the link's rate");
	before = um_sim_now(gpu[1]);
	is_int(copy(0, p, q, BLOCK), 0, "a copy between devices");
	is_int(p[BLOCK - 1], 7, "has the content");
	is_u64(um_sim_now(gpu[0]) - before, BLOCK_NS, "and takes the two links at once");
	ok(tally(1).copied_d2h == BLOCK && tally(0).copied_h2d == BLOCK, "each device counts its half");
	is_int(copy(0, q, pin, BLOCK), 0, "a stream of one device copies into the other");
	is_u64(tally(1).copied_h2d, 2 * BLOCK, "over the other's link");
	shut();
}

static void clocks(void)
{
	um_event_handle event;
	char *p, *q;

	open_devices(2, 0, 0);
	p = managed(0, 4);
	q = managed(1, 4);
	um_sim_host_touch(gpu[0], p, 4 * BLOCK, UM_WRITE);
	um_sim_host_touch(gpu[1], q, 4 * BLOCK, UM_WRITE);
	is_int(prefetch(0, p, 4 * BLOCK, 0) | prefetch(1, q, 4 * BLOCK, 1), 0, "both devices copy");
	is_int(um_sim_sync(gpu[0]) | um_sim_sync(gpu[1]), 0, "and the thread waits for both");
	is_u64(um_sim_now(gpu[1]), 4 * BLOCK_NS, "at the same time");
	gpu[0]->api->cudaEventCreateWithFlags(gpu[0], &event, 0);
	is_int(prefetch(0, p, 4 * BLOCK, -1) | gpu[0]->api->cudaEventRecord(gpu[0], event, stream[0]), 0,
	       "the first copies on, and records an event");
	is_int(gpu[1]->api->cudaStreamWaitEvent(gpu[1], stream[1], event, 0), 0,
	       "for which the second one's stream waits");
	um_sim_run(gpu[1], stream[1], &(struct um_sim_kernel){.name = "k", .ns = 1000});
	is_int(um_sim_sync(gpu[1]), 0, "before its kernel");
	is_u64(um_sim_now(gpu[1]), 8 * BLOCK_NS + 1000, "which runs then");
	gpu[0]->api->cudaEventDestroy(gpu[0], event);
	shut();
}

static void *other_thread(void *arg)
{
	uint64_t *end = arg;

	um_sim_run(gpu[1], stream[1], &(struct um_sim_kernel){.name = "k", .ns = 1000000});
	um_sim_sync(gpu[1]);
	*end = um_sim_now(gpu[1]);
	return NULL;
}

static void threads(void)
{
	uint64_t end = 0;
	pthread_t t;

	open_devices(2, 0, 0);
	um_sim_run(gpu[0], stream[0], &(struct um_sim_kernel){.name = "k", .ns = 5000000});
	um_sim_sync(gpu[0]);
	if (pthread_create(&t, NULL, other_thread, &end) || pthread_join(t, NULL))
		tap_bail("no thread");
	is_u64(end, 1000000, "a thread with a device of its own does not wait for another");
	is_u64(um_sim_now(gpu[0]), 5000000, "nor does that one");
	shut();
}

/* --- a link ------------------------------------------------------------------------------------------------------- */

/* All devices bring `blocks` blocks, in pieces of `piece`, turn by turn. Their ends, in blocks' times, times 1000. */
static void bring(unsigned n, unsigned link, unsigned blocks, unsigned piece, unsigned end[])
{
	char *p[DEVICES_MAX];

	open_devices(n, link, 0);
	for (unsigned d = 0; d < n; d++) {
		p[d] = managed(d, blocks);
		um_sim_host_touch(gpu[d], p[d], blocks * BLOCK, UM_WRITE);
	}
	for (unsigned i = 0; i < blocks; i += piece)
		for (unsigned d = 0; d < n; d++)
			prefetch(d, p[d] + i * BLOCK, piece * BLOCK, (int)d);
	for (unsigned d = 0; d < n; d++) {
		uint64_t at;

		um_sim_sync(gpu[d]);
		at = um_sim_of(gpu[d])->engine[UM_SIM_H2D].free_at;
		end[d] = (unsigned)(at * 1000 / BLOCK_NS);
	}
	shut();
}

static void shares(void)
{
	unsigned end[DEVICES_MAX];

	bring(2, 0, 8, 1, end);
	ok(end[0] == 8000 && end[1] == 8000, "with a link each, two devices do not slow one another down: %u, %u",
	   end[0], end[1]);
	bring(1, 1, 8, 1, end);
	is_u64(end[0], 8000, "alone on a link that others could use, a device has all of it");
	bring(2, 1, 8, 1, end);
	ok(end[0] >= 15000 && end[0] <= 16001 && end[1] >= 15000 && end[1] <= 16001,
	   "two on one link take twice as long: %u, %u", end[0], end[1]);
	ok(end[0] >= 15900 || end[1] >= 15900, "no less than the link needs");
	bring(2, 1, 8, 8, end);
	ok(end[1] >= 15900 && end[1] <= 16001 && end[0] >= 15900 && end[0] <= 16001,
	   "also if the first asks for all at once: %u, %u", end[0], end[1]);
	bring(4, 1, 8, 2, end);
	for (unsigned d = 0; d < 4; d++)
		ok(end[d] >= 29000 && end[d] <= 32001, "four: %u", end[d]);
	ok(end[0] >= 31900 || end[1] >= 31900 || end[2] >= 31900 || end[3] >= 31900, "no less than the link needs");
}

/* The link is free again when the others have finished. */
static void uneven(void)
{
	uint64_t first, second;
	char *p, *q;

	open_devices(2, 1, 0);
	p = managed(0, 12);
	q = managed(1, 2);
	um_sim_host_touch(gpu[0], p, 12 * BLOCK, UM_WRITE);
	um_sim_host_touch(gpu[1], q, 2 * BLOCK, UM_WRITE);
	for (unsigned i = 0; i < 12; i++) {
		prefetch(0, p + i * BLOCK, BLOCK, 0);
		if (i < 2)
			prefetch(1, q + i * BLOCK, BLOCK, 1);
	}
	um_sim_sync(gpu[0]);
	um_sim_sync(gpu[1]);
	first = um_sim_of(gpu[0])->engine[UM_SIM_H2D].free_at;
	second = um_sim_of(gpu[1])->engine[UM_SIM_H2D].free_at;
	ok(second >= 3 * BLOCK_NS && second <= 4 * BLOCK_NS + 8,
	   "the short one ends when both have copied as much: %llu", (unsigned long long)second);
	ok(first >= 14 * BLOCK_NS - 8 && first <= 14 * BLOCK_NS + 8, "the long one has the link alone then: %llu",
	   (unsigned long long)first);
	shut();
}

/* A direction has its own rate, as kappa says: 1 here. */
static void directions(void)
{
	char *p, *q;

	open_devices(2, 1, 0);
	p = managed(0, 4);
	q = managed(1, 4);
	um_sim_host_touch(gpu[0], p, 4 * BLOCK, UM_WRITE);
	run(1, q, 4 * BLOCK, UM_WRITE);
	um_sim_sync(gpu[0]);
	is_int(prefetch(0, p, 4 * BLOCK, 0) | prefetch(1, q, 4 * BLOCK, -1), 0,
	       "one device copies in, another one out");
	um_sim_sync(gpu[0]);
	ok(um_sim_of(gpu[0])->engine[UM_SIM_H2D].free_at <= 4 * BLOCK_NS + 8 &&
		   um_sim_of(gpu[1])->engine[UM_SIM_D2H].free_at <= 4 * BLOCK_NS + 8,
	   "neither slows the other down");
	shut();
}

/* Accesses of the CPU end what any of the devices has. */
static void cpu(void)
{
	char *p;

	open_devices(2, 0, 1);
	if (!um_sim_follows(gpu[0])) {
		printf("# the system hides page tables\n");
		shut();
		return;
	}
	p = managed(0, 1);
	memset(p, 1, BLOCK);
	is_int(run(0, p, BLOCK, UM_READ) | run(1, p, BLOCK, UM_READ), 0, "both devices have used it");
	ok(tally(0).h2d_bytes == BLOCK && tally(1).h2d_bytes == BLOCK, "with the content from the host");
	p[0] = 2;
	um_sim_sync(gpu[0]);
	is_u64(tally(1).cpu_faults, 1, "the CPU's write is a fault on the device that has it");
	ok(block(1, p).gpu != ALL, "and takes the page from it");
	is_u64(tally(0).cpu_faults, 6, "the first writes were faults on the other one");
	shut();
}

int main(void)
{
	memory_of_each();
	migrates();
	duplicates();
	evicted_duplicates();
	attributes();
	copies();
	clocks();
	threads();
	shares();
	uneven();
	directions();
	cpu();
	return tap_done();
}
