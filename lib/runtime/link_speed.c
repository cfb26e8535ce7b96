/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/link_speed.h"

#include "base/clock.h"

#include <time.h>

#define SLOWEST 1e8 /* bytes/s: less is no link */
#define FASTEST 1e13

struct test {
	struct um_gpu *gpu;
	void *memory;
	um_stream stream;
	um_event_handle begin, end;
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

/* The host holds the memory, then the device: ms of the second migration. 0, or a CUDA error code. */
static int migrate(const struct test *t, float *ms)
{
	const struct um_gpu_api *api = t->gpu->api;
	int device = t->gpu->caps.device, err;

	err = api->cudaMemPrefetchAsync(t->gpu, t->memory, UM_LINK_BYTES, um_on_host(), 0, t->stream);
	if (!err)
		err = api->cudaEventRecord(t->gpu, t->begin, t->stream);
	if (!err)
		err = api->cudaMemPrefetchAsync(t->gpu, t->memory, UM_LINK_BYTES, um_on_device(device), 0, t->stream);
	if (!err)
		err = api->cudaEventRecord(t->gpu, t->end, t->stream);
	if (!err)
		err = await(t);
	return err ? err : api->cudaEventElapsedTime(t->gpu, ms, t->begin, t->end);
}

static int is_free(struct um_gpu *gpu)
{
	size_t unused, total;

	return !gpu->api->cudaMemGetInfo(gpu, &unused, &total) && unused >= 2 * UM_LINK_BYTES;
}

int um_link_speed(struct um_gpu *gpu, struct um_profile *p)
{
	const struct um_gpu_api *api = gpu->api;
	struct test t = {.gpu = gpu};
	double rate = 0;
	float ms = 0;
	int err;

	if (!gpu->caps.concurrent_managed || !is_free(gpu) ||
	    api->cudaStreamCreateWithFlags(gpu, &t.stream, UM_STREAM_NON_BLOCKING))
		return 0;
	err = api->cudaEventCreateWithFlags(gpu, &t.begin, 0);
	if (!err)
		err = api->cudaEventCreateWithFlags(gpu, &t.end, 0);
	if (!err)
		err = api->cudaMallocManaged(gpu, &t.memory, UM_LINK_BYTES, 1);
	if (!err)
		err = migrate(&t, &ms);
	if (err == UM_CUDA_NOT_READY) /* freeing would wait for it */
		return 0;
	if (t.memory)
		api->cudaFree(gpu, t.memory);
	if (t.begin)
		api->cudaEventDestroy(gpu, t.begin);
	if (t.end)
		api->cudaEventDestroy(gpu, t.end);
	api->cudaStreamDestroy(gpu, t.stream);
	if (!err && ms > 0)
		rate = (double)UM_LINK_BYTES / ((double)ms / 1e3) / p->eta;
	if (rate < SLOWEST || rate > FASTEST)
		return 0;
	p->d2h *= rate / p->h2d;
	p->h2d = rate;
	return 1;
}
