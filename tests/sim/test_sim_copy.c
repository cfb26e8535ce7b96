/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies, fills and host functions of the simulated GPU: what they move, when, and how long that takes.
 */
#include "sim/state.h"
#include "tap.h"

#define BLOCK UM_BLOCK_BYTES
#define MS 1000000ull
#define SEG 1000u /* ns: a copy's own */

static struct um_profile profile;
static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static um_stream a, b;
static char *dev, *pin, *page;

/* 1 GB/s up, 2 GB/s down, 100 GB/s inside; nothing else costs anything. */
static void open_sim(int backed)
{
	um_profile_init(&profile);
	profile.capacity = 16 * BLOCK;
	profile.h2d = 1e9;
	profile.d2h = 2e9;
	profile.mem_bandwidth = 1e11;
	profile.eta = 1;
	profile.o_seg = SEG;
	profile.b_remote = 0.5;
	profile.c_api = 0;
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = &profile, .backed = backed, .query_ns = 10}))
		tap_bail("cannot open");
	api = gpu->api;
	if (api->cudaStreamCreateWithFlags(gpu, &a, UM_STREAM_NON_BLOCKING) ||
	    api->cudaStreamCreateWithFlags(gpu, &b, UM_STREAM_NON_BLOCKING) ||
	    api->cudaMalloc(gpu, (void **)&dev, BLOCK) || api->cudaHostAlloc(gpu, (void **)&pin, BLOCK, 0) ||
	    !(page = calloc(1, BLOCK)))
		tap_bail("no memory");
}

static void shut(void)
{
	api->close(gpu);
	free(page);
}

static int copy(um_stream s, void *to, const void *from, uint64_t bytes, int wait)
{
	return um_sim_copy(
		gpu, s,
		&(struct um_sim_copy){
			.to = to, .from = from, .to_pitch = bytes, .from_pitch = bytes, .bytes = bytes, .rows = 1},
		wait);
}

static uint64_t now(void)
{
	return um_sim_now(gpu);
}

static void pinned(void)
{
	struct um_tally t;
	uint64_t t0;

	open_sim(1);
	memset(pin, 1, MS);
	t0 = now();
	is_int(copy(a, dev, pin, MS, 0), UM_CUDA_OK, "a copy from pinned memory is accepted");
	is_u64(now(), t0, "the caller goes on");
	is_int(um_sim_stream_query(gpu, a), UM_CUDA_NOT_READY, "while the copy runs");
	is_u64(now(), t0 + 10, "asking takes a moment");
	copy(b, pin + MS, dev, MS, 0);
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "copies in both directions complete");
	is_u64(now() - t0, SEG + MS, "copies in both directions run at once, each at its rate");
	um_sim_tally(gpu, &t);
	ok(t.copied_h2d == MS && t.copied_d2h == MS && !t.h2d_bytes && !t.d2h_bytes,
	   "copies are counted apart from migrations");

	t0 = now();
	copy(a, dev, pin, MS, 0);
	copy(b, dev + MS, pin, MS, 0);
	um_sim_sync(gpu);
	is_u64(now() - t0, 2 * (SEG + MS), "one direction is one engine");
	t0 = now();
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = 5 * MS});
	copy(a, dev, pin, MS, 1);
	is_u64(now() - t0, 5 * MS + SEG + MS, "without Async the call waits");
	t0 = now();
	copy(a, dev + MS, dev, MS, 1);
	is_u64(now() - t0, 0, "a copy inside the device does not block the caller");
	api->cudaStreamSynchronize(gpu, a);
	is_u64(now() - t0, SEG + 2 * MS / 100, "where each byte is read and written");
	is_int(dev[MS + 5], 1, "the copied value is in device memory");
	is_int(copy(a, dev, pin, BLOCK + 1, 0), UM_CUDA_INVALID_VALUE,
	       "a copy past the end of an allocation is refused");
	is_int(copy(a, NULL, pin, 1, 0), UM_CUDA_INVALID_VALUE, "a copy to a null pointer is refused");
	is_int(copy(a, NULL, pin, 0, 0), UM_CUDA_OK, "unless it is nothing");
	shut();
}

static void when(void)
{
	open_sim(1);
	memset(pin, 7, 64);
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = MS});
	copy(a, dev, pin, 64, 0);
	pin[0] = 8;
	um_sim_sync(gpu);
	is_int(dev[0], 8, "pinned memory is read when the copy runs");
	memset(page, 5, 64);
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = MS});
	copy(a, dev, page, 64, 0);
	page[0] = 6;
	um_sim_sync(gpu);
	is_int(dev[0], 5, "a little pageable memory when the call is made");
	shut();
}

static void pageable(void)
{
	uint64_t t0;

	open_sim(1);
	t0 = now();
	copy(a, dev, page, 65536, 0);
	is_u64(now() - t0, 0, "64 KiB are taken aside");
	um_sim_sync(gpu);
	is_u64(now() - t0, SEG + 65536, "the copies that were taken aside run at full rate");
	t0 = now();
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = 3 * MS});
	copy(a, dev, page, MS, 0);
	is_u64(now() - t0, 3 * MS + SEG + 2 * MS, "more goes through a buffer, on the caller's time");
	t0 = now();
	copy(a, page, dev, MS, 0);
	is_u64(now() - t0, SEG + MS, "a copy to pageable memory on the way back takes as long");
	is_int(um_sim_host_register(gpu, page, BLOCK), UM_CUDA_OK, "host memory is registered");
	is_int(um_sim_host_register(gpu, page + 4096, 1), UM_CUDA_ALREADY_REGISTERED,
	       "registering memory twice is refused");
	t0 = now();
	copy(a, page, dev, MS, 0);
	is_u64(now() - t0, 0, "it is pinned");
	is_int(um_sim_host_unregister(gpu, page + 1), UM_CUDA_NOT_REGISTERED, "an address inside the page is refused");
	is_int(um_sim_host_unregister(gpu, page), UM_CUDA_OK, "the page is unregistered");
	is_u64(now() - t0, SEG + MS / 2, "unregistering memory waits for its copies");
	t0 = now();
	copy(a, page, pin, MS, 0);
	is_u64(now() - t0, SEG + MS, "host to host holds the caller up");
	shut();
}

static void rows(void)
{
	const struct um_sim_copy c = {.to = NULL, .to_pitch = 100, .from_pitch = 300, .bytes = 50, .rows = 3};
	struct um_sim_copy d = c;
	struct um_sim_set s = {.pitch = 100, .width = 10, .rows = 2, .value = 0x01020304, .size = 4};
	uint64_t t0;

	open_sim(1);
	for (int i = 0; i < 900; i++)
		pin[i] = (char)(i / 300 + 1);
	d.to = dev;
	d.from = pin;
	t0 = now();
	is_int(um_sim_copy(gpu, a, &d, 1), UM_CUDA_OK, "a copy of rows is accepted");
	is_u64(now() - t0, SEG + 150, "rows without gaps are one copy");
	ok(dev[0] == 1 && dev[49] == 1 && dev[50] == 0 && dev[149] == 2 && dev[200] == 3, "each value is in its place");
	d.to_pitch = 49;
	is_int(um_sim_copy(gpu, a, &d, 1), UM_CUDA_INVALID_VALUE, "a copy of rows onto each other is refused");
	s.at = dev;
	is_int(um_sim_set(gpu, a, &s), UM_CUDA_OK, "rows of words are filled");
	s.size = 2;
	s.at = dev + 400;
	um_sim_set(gpu, a, &s);
	s.size = 1;
	s.at = dev + 800;
	um_sim_set(gpu, a, &s);
	um_sim_sync(gpu);
	ok(dev[0] == 4 && dev[39] == 1 && dev[40] == 1 && dev[100] == 4, "memory is set as asked");
	ok(dev[400] == 4 && dev[419] == 3 && dev[420] == 0 && dev[809] == 4 && dev[810] == 0,
	   "memory of a shorter set is set as asked");
	s.size = 4;
	s.at = dev + 2;
	is_int(um_sim_set(gpu, a, &s), UM_CUDA_INVALID_VALUE, "where a word can be");
	s.at = page;
	is_int(um_sim_set(gpu, a, &s), UM_CUDA_INVALID_VALUE,
	       "a set of memory that the device cannot reach is refused");
	s = (struct um_sim_set){.at = dev, .width = BLOCK, .rows = 1, .size = 1};
	t0 = now();
	um_sim_set(gpu, a, &s);
	um_sim_sync(gpu);
	is_u64(now() - t0, SEG + (BLOCK * 10 + 500) / 1000, "a fill is written once");
	shut();
}

/* A copy engine faults on what is not there, one block after the other, a page at a time: 6 visits. */
static void managed(int backed)
{
	struct um_sim_block_state st;
	struct um_tally t, u;
	char *m;

	open_sim(backed);
	api->cudaMallocManaged(gpu, (void **)&m, 2 * BLOCK, 1);
	if (backed)
		memset(m, 3, 2 * BLOCK);
	um_sim_host_touch(gpu, m, 2 * BLOCK, UM_WRITE);
	um_sim_tally(gpu, &t);
	copy(a, pin, m, BLOCK, 0);
	um_sim_sync(gpu);
	um_sim_tally(gpu, &u);
	is_u64(u.visits - t.visits, 6, "a copy out of a managed block");
	is_u64(u.batches - t.batches, 6, "faults page by page");
	is_u64(u.h2d_bytes - t.h2d_bytes, BLOCK, "the copy brings it to the device");
	is_u64(u.copied_d2h - t.copied_d2h, BLOCK, "the rest is copied from the device");
	um_sim_block(gpu, m, &st);
	is_u64(st.gpu, UINT32_MAX, "where it stays");
	um_sim_block(gpu, m + BLOCK, &st);
	is_u64(st.gpu, 0, "no other page is on the device");
	if (backed)
		is_int(pin[BLOCK - 1], 3, "its content came along");
	copy(a, m + BLOCK, pin, 65536, 0);
	um_sim_sync(gpu);
	um_sim_block(gpu, m + BLOCK, &st);
	is_u64(st.gpu, 1, "a copy into a page takes the page");
	um_sim_set(gpu, a, &(struct um_sim_set){.at = m + BLOCK, .width = BLOCK, .rows = 1, .size = 1});
	um_sim_sync(gpu);
	um_sim_block(gpu, m + BLOCK, &st);
	is_u64(st.gpu, UINT32_MAX, "a fill makes all pages resident on the device");
	shut();
}

static int order[4], n_order;

static void note(void *arg)
{
	order[n_order++ & 3] = (int)(intptr_t)arg;
}

static void calls_and_frees(void)
{
	struct um_sim_memory mem;
	char *m;

	open_sim(1);
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = 2 * MS});
	um_sim_call(gpu, a, note, (void *)1);
	um_sim_run(gpu, b, &(struct um_sim_kernel){.ns = MS});
	um_sim_call(gpu, b, note, (void *)2);
	is_int(n_order, 0, "host functions wait for their streams");
	um_sim_sync(gpu);
	ok(n_order == 2 && order[0] == 2 && order[1] == 1, "host functions are called in the order of time");
	is_int(um_sim_call(gpu, a, NULL, NULL), UM_CUDA_INVALID_VALUE, "if they are there");

	api->cudaMalloc(gpu, (void **)&m, BLOCK);
	is_int(um_sim_memory(gpu, m + 5, &mem), 0, "memory is known");
	ok(mem.kind == UM_SIM_DEVICE && mem.addr == (uintptr_t)m && mem.bytes == BLOCK,
	   "any address inside an allocation finds it");
	is_int(um_sim_free_async(gpu, a, m + 5), UM_CUDA_INVALID_VALUE,
	       "an allocation is freed only by its own address");
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = MS});
	is_int(um_sim_free_async(gpu, a, m), UM_CUDA_OK, "a free in the order of a stream is accepted");
	is_int(um_sim_memory(gpu, m, &mem), 0, "the memory exists until the stream reaches the free");
	copy(b, m, pin, 64, 0);
	um_sim_sync(gpu);
	is_int(um_sim_memory(gpu, m, &mem), -ENOENT, "the memory is gone after the stream reached the free");
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "who was done with it before is content");
	api->cudaMalloc(gpu, (void **)&m, BLOCK);
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = MS});
	um_sim_free_async(gpu, a, m);
	um_sim_run(gpu, b, &(struct um_sim_kernel){.ns = 2 * MS});
	copy(b, m, pin, 64, 0);
	is_int(um_sim_sync(gpu), UM_CUDA_ILLEGAL_ADDRESS, "who comes too late is an error of the device");
	is_int(copy(b, dev, pin, 64, 0), UM_CUDA_ILLEGAL_ADDRESS, "the illegal address error persists");
	shut();
}

/* The memory of a kernel may go while it faults on it. */
static void free_under_way(void)
{
	struct um_touch x;
	char *m;

	open_sim(1);
	api->cudaMallocManaged(gpu, (void **)&m, 4 * BLOCK, 1);
	um_sim_host_touch(gpu, m, 4 * BLOCK, UM_WRITE);
	x = (struct um_touch){m, 4 * BLOCK, 0, UM_READ};
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = MS, .access = &x, .n_access = 1});
	um_sim_run(gpu, b, &(struct um_sim_kernel){.ns = 100000});
	um_sim_free_async(gpu, b, m);
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "memory freed under a kernel is not touched any more");
	shut();
}

int main(void)
{
	pinned();
	when();
	pageable();
	rows();
	managed(1);
	managed(0);
	calls_and_frees();
	free_under_way();
	return tap_done();
}
