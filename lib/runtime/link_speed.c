/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/link_speed.h"

#include "base/clock.h"
#include "replay/worker.h"

#include <pthread.h>
#include <sched.h>
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

unsigned um_link_evicters(void)
{
	cpu_set_t set;
	unsigned n = sched_getaffinity(0, sizeof set, &set) ? UM_GPU_EVICTERS * 2 : (unsigned)CPU_COUNT(&set);

	return n < 4 ? 1 : n < UM_GPU_EVICTERS * 2 ? n / 2 : UM_GPU_EVICTERS;
}

/* Threads begin together once all are there: to start one takes a lock that evictions take, too. */
struct evicters {
	const struct test *test;
	unsigned n;
	_Atomic uint32_t go;
	struct evicter {
		struct evicters *all;
		unsigned i;
		pthread_t thread;
		int started, err;
		uint64_t end; /* ns */
	} at[UM_GPU_EVICTERS];
};

static void *evict_part(void *arg)
{
	struct evicter *e = arg;
	const struct test *t = e->all->test;

	while (!atomic_load_explicit(&e->all->go, memory_order_acquire))
		um_futex_wait(&e->all->go, 0, UINT64_MAX);
	for (uint64_t at = e->i * UM_BLOCK_BYTES; at < t->bytes && !e->err; at += e->all->n * UM_BLOCK_BYTES)
		e->err = t->gpu->api->evict(t->gpu, (char *)t->memory + at, UM_BLOCK_BYTES);
	e->end = um_clock_ns(CLOCK_MONOTONIC);
	return NULL;
}

/* By `n` threads, in ms. 0, or a CUDA error code. */
static int timed_evictions(const struct test *t, unsigned n, float *ms)
{
	struct evicters all = {.test = t, .n = n};
	uint64_t begin, end = 0;
	int err = 0;

	for (unsigned i = 0; i < n; i++) {
		all.at[i].all = &all;
		all.at[i].i = i;
		all.at[i].started = !pthread_create(&all.at[i].thread, NULL, evict_part, &all.at[i]);
	}
	begin = um_clock_ns(CLOCK_MONOTONIC);
	atomic_store_explicit(&all.go, 1, memory_order_release);
	um_futex_wake(&all.go);
	for (unsigned i = 0; i < n; i++) {
		if (all.at[i].started)
			pthread_join(all.at[i].thread, NULL);
		else
			evict_part(&all.at[i]);
		end = all.at[i].end > end ? all.at[i].end : end;
		err = err ? err : all.at[i].err;
	}
	*ms = (float)(end - begin) / 1e6f;
	return err;
}

double um_evict_speed(struct um_gpu *gpu, unsigned evicters, void **memory)
{
	struct um_location here = um_on_device(gpu->caps.device);
	uint64_t bytes = evicters ? UM_KERNEL_EVICT_BYTES : UM_EVICT_BYTES;
	struct test t;
	float ms = 0, least = UM_LINK_LIMIT_MS;
	int err = test_begin(&t, gpu, bytes);

	/* The first eviction takes memory of the host, and any may be disturbed. */
	for (int round = 0; round < EVICT_ROUNDS && !err; round++) {
		err = timed_move(&t, here, t.bytes, &ms);
		if (!err)
			err = evicters ? timed_evictions(&t, evicters, &ms)
				       : timed_move(&t, um_on_host(), UM_BLOCK_BYTES, &ms);
		least = ms < least ? ms : least;
	}
	*memory = t.lost ? NULL : t.memory;
	t.memory = NULL;
	test_end(&t);
	return err ? 0 : (double)bytes / ((double)least / 1e3);
}
