/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/link_speed.h"

#include "base/clock.h"

#include <time.h>

#define SLOWEST 1e8 /* bytes/s: less is no link */
#define FASTEST 1e13
#define EVICT_ROUNDS 4

struct test {
	struct um_gpu *gpu;
	uint64_t bytes;
	void *memory;
	um_stream stream;
	um_event_handle begin, end;
	int lost; /* its work does not end: freeing would wait for it */
};

/* The copy's events: 0 when they have been reached. A simulated device has no clock to be polled. */
static int await(const struct test *t)
{
	const struct um_gpu_api *api = t->gpu->api;
	uint64_t until = um_clock_ns(CLOCK_MONOTONIC) + UM_LINK_LIMIT_MS * 1000000ull;
	int err;

	if (t->gpu->caps.virtual_time)
		return api->cudaEventSynchronize(t->gpu, t->end);
	while ((err = api->cudaEventQuery(t->gpu, t->end)) == UM_CUDA_NOT_READY && um_clock_ns(CLOCK_MONOTONIC) < until)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	return err;
}

/* Moves the memory in pieces of `step` bytes. 0, or a CUDA error code. */
static int move(const struct test *t, struct um_location to, uint64_t step)
{
	int err = 0;

	for (uint64_t at = 0; at < t->bytes && !err; at += step)
		err = t->gpu->api->cudaMemPrefetchAsync(t->gpu, (char *)t->memory + at, step, to, 0, t->stream);
	return err;
}

/* The same, in ms. */
static int timed_move(struct test *t, struct um_location to, uint64_t step, float *ms)
{
	const struct um_gpu_api *api = t->gpu->api;
	int err = api->cudaEventRecord(t->gpu, t->begin, t->stream);

	if (!err)
		err = move(t, to, step);
	if (!err)
		err = api->cudaEventRecord(t->gpu, t->end, t->stream);
	if (!err)
		err = await(t);
	t->lost = err == UM_CUDA_NOT_READY;
	return err ? err : api->cudaEventElapsedTime(t->gpu, ms, t->begin, t->end);
}

static int is_free(struct um_gpu *gpu, uint64_t bytes)
{
	size_t unused, total;

	return !gpu->api->cudaMemGetInfo(gpu, &unused, &total) && unused >= 2 * bytes;
}

/* 0; or not: nothing can be measured, and test_end() is due all the same. */
static int test_begin(struct test *t, struct um_gpu *gpu, uint64_t bytes)
{
	const struct um_gpu_api *api = gpu->api;

	*t = (struct test){.gpu = gpu, .bytes = bytes};
	return !gpu->caps.concurrent_managed || !is_free(gpu, bytes) ||
	       api->cudaStreamCreateWithFlags(gpu, &t->stream, UM_STREAM_NON_BLOCKING) ||
	       api->cudaEventCreateWithFlags(gpu, &t->begin, 0) || api->cudaEventCreateWithFlags(gpu, &t->end, 0) ||
	       api->cudaMallocManaged(gpu, &t->memory, bytes, 1);
}

static void test_end(struct test *t)
{
	const struct um_gpu_api *api = t->gpu->api;

	if (t->lost)
		return;
	if (t->memory)
		api->cudaFree(t->gpu, t->memory);
	if (t->begin)
		api->cudaEventDestroy(t->gpu, t->begin);
	if (t->end)
		api->cudaEventDestroy(t->gpu, t->end);
	if (t->stream)
		api->cudaStreamDestroy(t->gpu, t->stream);
}

int um_link_speed(struct um_gpu *gpu, struct um_profile *p)
{
	struct test t;
	double rate = 0;
	float ms = 0;
	int err = test_begin(&t, gpu, UM_LINK_BYTES);

	if (!err) /* the host holds the memory, then the device */
		err = move(&t, um_on_host(), t.bytes);
	if (!err)
		err = timed_move(&t, um_on_device(gpu->caps.device), t.bytes, &ms);
	test_end(&t);
	if (!err && ms > 0)
		rate = (double)UM_LINK_BYTES / ((double)ms / 1e3) / p->eta;
	if (rate < SLOWEST || rate > FASTEST)
		return 0;
	p->d2h *= rate / p->h2d;
	p->h2d = rate;
	return 1;
}

double um_evict_speed(struct um_gpu *gpu, void **memory)
{
	struct um_location here = um_on_device(gpu->caps.device);
	struct test t;
	float ms = 0, least = UM_LINK_LIMIT_MS;
	int err = test_begin(&t, gpu, UM_EVICT_BYTES);

	/* The first eviction takes memory of the host, and any may be disturbed. */
	for (int round = 0; round < EVICT_ROUNDS && !err; round++) {
		err = timed_move(&t, here, t.bytes, &ms);
		if (!err)
			err = timed_move(&t, um_on_host(), UM_BLOCK_BYTES, &ms);
		least = ms < least ? ms : least;
	}
	*memory = t.lost ? NULL : t.memory;
	t.memory = NULL;
	test_end(&t);
	return err ? 0 : (double)UM_EVICT_BYTES / ((double)least / 1e3);
}
