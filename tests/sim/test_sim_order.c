/* SPDX-License-Identifier: Apache-2.0
 *
 * Implicit order of streams: of the default stream, and of threads.
 */
#include "sim/state.h"
#include "tap.h"

#include <pthread.h>

#define MS 1000000ull
#define LEGACY ((um_stream)1)
#define THREAD ((um_stream)2)

static struct um_profile profile;
static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static um_stream a, b, alone;

static void open_sim(unsigned timeout_ms)
{
	profile = *um_profile_find("a100");
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = &profile, .timeout_ms = timeout_ms}))
		tap_bail("cannot open");
	api = gpu->api;
	if (api->cudaStreamCreateWithFlags(gpu, &a, 0) || api->cudaStreamCreateWithFlags(gpu, &b, 0) ||
	    api->cudaStreamCreateWithFlags(gpu, &alone, UM_STREAM_NON_BLOCKING))
		tap_bail("no streams");
}

static void run(um_stream s, uint64_t ms)
{
	if (um_sim_run(gpu, s, &(struct um_sim_kernel){.ns = ms * MS}))
		tap_bail("not run");
}

static uint64_t end(um_stream s)
{
	api->cudaStreamSynchronize(gpu, s);
	return um_sim_now(gpu) / MS;
}

static void default_stream(void)
{
	open_sim(0);
	run(a, 3);
	run(b, 5);
	run(NULL, 1);
	run(a, 2);
	run(alone, 4);
	run(b, 7);
	is_u64(end(alone), 4, "a non-blocking stream waits for no other");
	is_u64(end(a), 8, "a blocking one for the default stream, which waits for all blocking ones");
	is_u64(end(b), 13, "other streams do not wait");
	run(a, 1);
	is_u64(end(LEGACY), 14, "waiting for the default stream is waiting for them");
	run(LEGACY, 1);
	is_int(um_sim_stream_query(gpu, a), UM_CUDA_NOT_READY, "a stream behind it is not ready");
	is_int(um_sim_stream_query(gpu, alone), UM_CUDA_OK, "a stream that does not block is idle");
	is_u64(end(NULL), 15, "its other name");
	run(a, 2);
	api->cudaStreamDestroy(gpu, a);
	run(NULL, 1);
	is_u64(end(NULL), 18, "the default stream waits also for destroyed streams");
	run(alone, 2);
	api->cudaStreamDestroy(gpu, alone);
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) / MS, 20, "the device waits for all of them");
	api->close(gpu);
}

static void with_events(void)
{
	um_event_handle e;
	uint32_t *word;

	open_sim(0);
	api->cudaEventCreateWithFlags(gpu, &e, 0);
	api->cudaHostAlloc(gpu, (void **)&word, 4, 0);
	run(a, 3);
	api->cudaEventRecord(gpu, e, NULL);
	api->cudaStreamWaitEvent(gpu, alone, e, 0);
	run(alone, 1);
	is_u64(end(alone), 4, "an event of the default stream stands for all blocking streams");
	*word = 0;
	um_sim_wait_value(gpu, a, word, 1);
	run(NULL, 1);
	run(b, 1);
	is_int(api->cudaStreamSynchronize(gpu, b), UM_CUDA_LAUNCH_TIMEOUT, "who waits for ever holds up all of them");
	um_sim_write_value(gpu, alone, word, 1);
	is_u64(end(b), 6, "until it is let go");
	api->cudaEventDestroy(gpu, e);
	api->close(gpu);
}

/* Recorded again on another stream before the device has reached the first record. */
static void recorded_again(void)
{
	um_event_handle e;

	open_sim(0);
	api->cudaEventCreateWithFlags(gpu, &e, 0);
	run(alone, 9);
	api->cudaEventRecord(gpu, e, alone);
	api->cudaStreamWaitEvent(gpu, b, e, 0);
	run(b, 1);
	run(a, 3);
	api->cudaEventRecord(gpu, e, a);
	is_u64(end(a), 3, "the second record is reached first");
	is_u64(end(b), 10, "a stream that waits for the first record does not begin after the second one");
	is_int(api->cudaEventQuery(gpu, e), UM_CUDA_OK, "the event stays complete after the first record");
	api->cudaStreamWaitEvent(gpu, alone, e, 0);
	run(alone, 1);
	is_u64(end(alone), 11, "a stream that waits for the second record begins");
	api->cudaEventDestroy(gpu, e);
	api->close(gpu);
}

static void *on_thread(void *arg)
{
	run(THREAD, 2);
	*(uint64_t *)arg = end(THREAD);
	return NULL;
}

static void thread_streams(void)
{
	uint64_t other = 0;
	pthread_t t;

	open_sim(0);
	run(THREAD, 5);
	pthread_create(&t, NULL, on_thread, &other);
	pthread_join(t, NULL);
	is_u64(other, 2, "each thread has a default stream of its own");
	run(NULL, 1);
	is_u64(end(NULL), 6, "the default stream waits for a thread's own");
	is_int(api->cudaStreamDestroy(gpu, THREAD), UM_CUDA_INVALID_HANDLE,
	       "the stream of a thread cannot be destroyed");
	api->close(gpu);
}

/* --- several threads ---------------------------------------------------------------------------------------------- */

static uint32_t *flag;
static um_event_handle event;

static void *let_go(void *arg)
{
	const struct timespec nap = {0, 20000000};

	nanosleep(&nap, NULL);
	um_sim_write_value(gpu, alone, flag, 1);
	return arg;
}

static void *store(void *arg)
{
	const struct timespec nap = {0, 20000000};

	nanosleep(&nap, NULL);
	__atomic_store_n(flag, 2, __ATOMIC_RELEASE);
	return arg;
}

static void *wait_event(void *arg)
{
	*(int *)arg = api->cudaEventSynchronize(gpu, event);
	return NULL;
}

static void patience(void)
{
	int got[3] = {-1, -1, -1};
	pthread_t t[4];

	open_sim(60000);
	api->cudaHostAlloc(gpu, (void **)&flag, 4, 0);
	api->cudaEventCreateWithFlags(gpu, &event, 0);
	*flag = 0;
	um_sim_wait_value(gpu, a, flag, 1);
	api->cudaEventRecord(gpu, event, a);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, wait_event, &got[i]);
	pthread_create(&t[3], NULL, let_go, NULL);
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_OK, "a stream waits for work that another thread enqueues");
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	ok(!got[0] && !got[1] && !got[2], "several threads write the value at once without an error");

	um_sim_wait_value(gpu, a, flag, 2);
	pthread_create(&t[0], NULL, store, NULL);
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "the device completes what waits for a stored value");
	pthread_join(t[0], NULL);
	api->cudaEventDestroy(gpu, event);
	api->close(gpu);

	open_sim(1);
	api->cudaHostAlloc(gpu, (void **)&flag, 4, 0);
	*flag = 0;
	um_sim_wait_value(gpu, a, flag, 1);
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_LAUNCH_TIMEOUT, "a wait without end times out");
	api->close(gpu);
}

int main(void)
{
	default_stream();
	with_events();
	recorded_again();
	thread_streams();
	patience();
	return tap_done();
}
