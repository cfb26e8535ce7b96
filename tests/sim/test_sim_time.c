/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated time: streams, events, values, the launch queue, workers, marks, deadlocks, and what calls cost their
 * caller.
 */
#include "sim/state.h"
#include "tap.h"

#define BLOCK UM_BLOCK_BYTES
#define MS 1000000ull

static struct um_profile profile;
static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static um_stream a, b;

static void open_with(struct um_sim_options o)
{
	o.profile = &profile;
	if (um_sim_open(&gpu, &o))
		tap_bail("cannot open");
	api = gpu->api;
	if (api->cudaStreamCreateWithFlags(gpu, &a, UM_STREAM_NON_BLOCKING) ||
	    api->cudaStreamCreateWithFlags(gpu, &b, UM_STREAM_NON_BLOCKING))
		tap_bail("no streams");
}

static void open_sim(unsigned blocks)
{
	open_with((struct um_sim_options){.capacity = blocks * BLOCK});
}

static void shut(void)
{
	api->close(gpu);
}

static char *written(unsigned blocks)
{
	void *p;

	if (api->cudaMallocManaged(gpu, &p, blocks * BLOCK, 1) || um_sim_host_touch(gpu, p, blocks * BLOCK, UM_WRITE))
		tap_bail("no memory");
	return p;
}

static int run(um_stream s, uint64_t ns)
{
	return um_sim_run(gpu, s, &(struct um_sim_kernel){.ns = ns});
}

static int touch(um_stream s, const void *p, uint64_t bytes, uint64_t ns)
{
	struct um_touch x = {p, bytes, 0, UM_UPDATE};

	return um_sim_run(gpu, s, &(struct um_sim_kernel){.ns = ns, .access = &x, .n_access = 1});
}

static um_event_handle event(void)
{
	um_event_handle e;

	if (api->cudaEventCreateWithFlags(gpu, &e, 0))
		tap_bail("no event");
	return e;
}

static uint64_t between(um_event_handle x, um_event_handle y)
{
	float ms = -1;

	if (api->cudaEventElapsedTime(gpu, &ms, x, y))
		return UINT64_MAX;
	return (uint64_t)((double)ms * 1e6 + 0.5);
}

static struct um_tally tally(void)
{
	struct um_tally t;

	um_sim_tally(gpu, &t);
	return t;
}

static void streams(void)
{
	um_event_handle e[4];
	float ms;

	open_sim(4);
	for (int i = 0; i < 4; i++)
		e[i] = event();
	is_int(api->cudaEventQuery(gpu, e[0]), UM_CUDA_OK, "an event never recorded is complete");
	is_int(api->cudaEventElapsedTime(gpu, &ms, e[0], e[1]), UM_CUDA_INVALID_VALUE,
	       "an event that was never recorded has no time");
	api->cudaEventRecord(gpu, e[0], a);
	run(a, 3 * MS);
	run(a, 2 * MS);
	api->cudaEventRecord(gpu, e[1], a);
	run(b, 4 * MS);
	api->cudaEventRecord(gpu, e[2], b);
	is_u64(um_sim_now(gpu), 0, "launching costs the app nothing");
	is_int(api->cudaEventQuery(gpu, e[0]), UM_CUDA_OK, "a stream's first record is reached at once");
	is_int(api->cudaEventQuery(gpu, e[1]), UM_CUDA_NOT_READY, "one behind a kernel is not");
	is_int(api->cudaEventElapsedTime(gpu, &ms, e[0], e[1]), UM_CUDA_NOT_READY,
	       "an event that is not reached has no time yet");
	is_int(api->cudaEventSynchronize(gpu, e[2]), UM_CUDA_OK, "waiting for an event times out");
	is_u64(um_sim_now(gpu), 4 * MS, "takes until it is reached");
	is_int(api->cudaEventQuery(gpu, e[1]), UM_CUDA_NOT_READY, "later ones are still to come");
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_OK, "waiting for a stream times out");
	is_u64(um_sim_now(gpu), 5 * MS, "kernels of a stream follow each other, those of two overlap");
	is_u64(between(e[0], e[1]), 5 * MS, "the elapsed time between events is exact");

	run(a, MS);
	api->cudaEventRecord(gpu, e[3], a);
	api->cudaStreamWaitEvent(gpu, b, e[3], 0);
	run(b, MS);
	api->cudaEventRecord(gpu, e[2], b);
	run(a, 7 * MS);
	api->cudaEventRecord(gpu, e[3], a); /* again: the wait is for the first one */
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "the device waits for all streams");
	is_u64(um_sim_now(gpu), 13 * MS, "takes until the last has ended");
	is_u64(between(e[1], e[2]), 2 * MS, "a stream waits for the record that was current when it was told to");
	is_u64(between(e[2], e[3]), 6 * MS, "an event holds its last record");

	run(a, MS);
	api->cudaEventRecord(gpu, e[3], a);
	is_int(api->cudaEventQuery(gpu, e[3]), UM_CUDA_NOT_READY, "recorded again, it is no longer complete");
	api->cudaStreamWaitEvent(gpu, b, e[3], 0);
	for (int i = 0; i < 4; i++)
		is_int(api->cudaEventDestroy(gpu, e[i]), UM_CUDA_OK,
		       "an event may be destroyed while it is waited for");
	is_int(api->cudaStreamDestroy(gpu, a), UM_CUDA_OK, "a stream is destroyed while it runs");
	is_int(run(a, 1), UM_CUDA_INVALID_HANDLE, "a destroyed stream refuses work");
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "the work of a destroyed stream ends");
	is_u64(um_sim_now(gpu), 14 * MS, "the work of a destroyed stream takes its time");
	is_int(api->cudaStreamDestroy(gpu, NULL), UM_CUDA_INVALID_HANDLE, "the default stream stays");
	shut();
}

static void launch_queue(void)
{
	open_sim(4);
	for (int i = 0; i < UM_SIM_QUEUE; i++)
		run(a, MS);
	is_u64(um_sim_now(gpu), 0, "a stream holds %d commands", UM_SIM_QUEUE);
	run(a, MS);
	is_u64(um_sim_now(gpu), MS, "the next waits for room");
	run(a, MS);
	is_u64(um_sim_now(gpu), 2 * MS, "later launches wait likewise");
	run(b, MS);
	is_u64(um_sim_now(gpu), 2 * MS, "another stream has its own");
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu), (UM_SIM_QUEUE + 2) * MS, "all are run");
	shut();
}

static void values(void)
{
	uint32_t *v;
	void *p;

	open_sim(4);
	is_int(api->cudaHostAlloc(gpu, &p, 4096, 0), UM_CUDA_OK, "pinned memory is allocated");
	v = p;
	um_sim_wait_value(gpu, a, v, 1);
	run(a, MS);
	run(b, 3 * MS);
	um_sim_write_value(gpu, b, v, 2);
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu), 4 * MS, "a stream waits until another has written the value");
	is_u64(*v, 2, "it is written");
	is_u64(tally().stall_ns, 3 * MS, "the wait is a stall of the kernel behind it");
	um_sim_wait_value(gpu, a, v, 2);
	run(a, MS);
	um_sim_wait_value(gpu, a, v, 1);
	um_sim_wait_value(gpu, a, v, (uint32_t)-5);
	run(a, MS);
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu), 6 * MS, "values at or below, in 32-bit round, do not hold it up");
	is_u64(tally().stall_ns, 3 * MS, "values that are reached already cause no stall");

	um_sim_wait_value(gpu, a, v, 10);
	run(a, MS);
	run(b, 2 * MS);
	is_int(api->cudaStreamSynchronize(gpu, b), UM_CUDA_OK, "other streams go on");
	__atomic_store_n(v, 11, __ATOMIC_RELEASE);
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_OK, "a value that the host stores ends the wait");
	is_u64(um_sim_now(gpu), 9 * MS, "the value is seen from then on");
	is_int(api->cudaFreeHost(gpu, p), UM_CUDA_OK, "pinned memory is freed");
	shut();
}

static void deadlocks(void)
{
	um_event_handle e;
	uint32_t v = 0;
	void *p;

	open_sim(4);
	e = event();
	api->cudaMallocManaged(gpu, &p, BLOCK, 1);
	um_sim_wait_value(gpu, a, &v, 1);
	api->cudaEventRecord(gpu, e, a);
	api->cudaStreamWaitEvent(gpu, b, e, 0);
	run(b, MS);
	is_int(um_sim_sync(gpu), UM_CUDA_LAUNCH_TIMEOUT, "a value that is never written: waiting for all times out");
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_LAUNCH_TIMEOUT,
	       "synchronizing a stream that cannot go on times out");
	is_int(api->cudaStreamSynchronize(gpu, b), UM_CUDA_LAUNCH_TIMEOUT,
	       "synchronizing a stream that waits for it times out");
	is_int(api->cudaEventSynchronize(gpu, e), UM_CUDA_LAUNCH_TIMEOUT,
	       "synchronizing an event that is not reached times out");
	is_int(api->cudaFree(gpu, p), UM_CUDA_LAUNCH_TIMEOUT, "freeing memory times out");
	for (int i = 0; i < UM_SIM_QUEUE - 2; i++)
		run(a, MS);
	is_int(run(a, MS), UM_CUDA_LAUNCH_TIMEOUT, "a launch into a full queue times out");
	v = 1;
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "written after all, it goes on");
	is_int(api->cudaFree(gpu, p), UM_CUDA_OK, "the memory is freed in the end");
	api->cudaEventDestroy(gpu, e);
	shut();
}

static void callers(void)
{
	struct um_tally before;
	um_event_handle e;
	uint64_t t0, copy;
	char *p;

	profile.c_unmap = profile.c_dma = 0;
	open_sim(8);
	copy = um_sim_copy_ns(um_sim_of(gpu), UM_SIM_H2D, BLOCK, 1, 0);
	p = written(8);
	t0 = um_sim_now(gpu);
	api->cudaMemPrefetchAsync(gpu, p, 2 * BLOCK, um_on_device(0), 0, a);
	is_u64(um_sim_now(gpu) - t0, profile.c_api + 2 * profile.c_pf,
	       "prefetch on an idle stream: the caller does the work");
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) - t0, profile.c_api + profile.c_pf + 2 * copy,
	       "the prefetch call does not wait for the copies");

	t0 = um_sim_now(gpu);
	api->cudaMemPrefetchAsync(gpu, p + 5 * BLOCK, 3 * BLOCK, um_on_device(0), 0, a);
	before = tally();
	touch(b, p + 7 * BLOCK, BLOCK, MS);
	api->cudaStreamSynchronize(gpu, b);
	is_u64(um_sim_now(gpu) - t0, profile.c_api + profile.c_pf + 3 * copy + MS,
	       "a kernel on another stream waits for what is on its way");
	is_u64(tally().faults - before.faults, 0, "nothing has to be served for it");
	is_u64(tally().stall_ns - before.stall_ns, 3 * copy - 2 * profile.c_pf,
	       "the kernel stalls until its copies complete");
	touch(b, p + 7 * BLOCK, BLOCK, MS);
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) - t0, profile.c_api + profile.c_pf + 3 * copy + 2 * MS, "the stall is paid once");
	api->cudaMemPrefetchAsync(gpu, p + 5 * BLOCK, 3 * BLOCK, um_on_host(), 0, a);

	um_sim_sync(gpu);
	run(a, 5 * MS);
	t0 = um_sim_now(gpu);
	api->cudaMemPrefetchAsync(gpu, p + 2 * BLOCK, 2 * BLOCK, um_on_device(0), 0, a);
	is_u64(um_sim_now(gpu) - t0, profile.c_api, "on a busy stream a prefetch costs only the call");
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) - t0, 5 * MS + profile.c_pf + 2 * copy, "the work is done when the stream gets there");

	run(a, MS);
	run(b, MS);
	t0 = um_sim_now(gpu);
	api->cudaMemPrefetchAsync(gpu, p + 4 * BLOCK, BLOCK, um_on_device(0), 0, a);
	api->cudaMemPrefetchAsync(gpu, p, 4 * BLOCK, um_on_device(0), 0, b);
	um_sim_sync(gpu);
	is_u64(tally().h2d_bytes, 8 * BLOCK, "both were done");
	is_u64(um_sim_now(gpu) - t0, MS + profile.c_pf + copy, "one worker handles the prefetches in order");

	run(a, MS);
	run(b, MS);
	t0 = um_sim_now(gpu);
	api->cudaMemPrefetchAsync(gpu, p, 5 * BLOCK, um_on_device(0), 0, a);
	api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_device(0), 0, b);
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) - t0, MS + 6 * profile.c_pf_res, "even where nothing is copied");

	t0 = um_sim_now(gpu);
	copy = um_sim_copy_ns(um_sim_of(gpu), UM_SIM_D2H, BLOCK, 1, 0);
	api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_host(), 0, a);
	is_u64(um_sim_now(gpu) - t0, profile.c_api + profile.c_pf + copy + profile.c_pf_cpu,
	       "prefetch to the host blocks");

	e = event();
	run(a, MS);
	api->cudaEventRecord(gpu, e, a);
	api->cudaMemPrefetchAsync(gpu, p + BLOCK, BLOCK, um_on_host(), 0, a);
	api->cudaEventSynchronize(gpu, e);
	t0 = um_sim_now(gpu);
	um_sim_host_touch(gpu, p + BLOCK, 4096, UM_READ);
	is_u64(um_sim_now(gpu) - t0, profile.c_pf + copy, "deferred, who touches it meanwhile waits for the copy");
	api->cudaMemAdvise(gpu, p + 2 * BLOCK, BLOCK, UM_ADV_SET_ACCESSED_BY, um_on_device(0));
	um_sim_sync(gpu);
	before = tally();
	run(a, MS);
	run(b, MS + profile.c_pf + 1);
	api->cudaMemPrefetchAsync(gpu, p + 2 * BLOCK, BLOCK, um_on_host(), 0, a);
	touch(b, p + 2 * BLOCK, 65536, 0);
	um_sim_sync(gpu);
	is_u64(tally().faults - before.faults, 16, "the GPU faults even only to map pages");
	is_u64(tally().h2d_bytes - before.h2d_bytes, 0, "what it may reach over the link");
	api->cudaEventDestroy(gpu, e);
	shut();
	profile = *um_profile_find("a100");
}

/* --- workers ---------------------------------------------------------------------------------------------------- */

struct script {
	struct um_step step[8]; /* what to answer */
	uint64_t at[8]; /* when */
	unsigned n;
	char *evict; /* what to do first, each time */
	struct um_worker *poke;
};

static struct um_step act(void *arg)
{
	struct script *s = arg;
	unsigned k = s->n++;

	if (k < 8)
		s->at[k] = um_sim_now(gpu);
	if (s->evict)
		api->cudaMemPrefetchAsync(gpu, s->evict + k % 4 * BLOCK, BLOCK, um_on_host(), 0, b);
	if (s->poke && k == 0)
		api->worker_poke(gpu, s->poke);
	return k < 8 ? s->step[k] : (struct um_step){UM_STEP_IDLE, NULL};
}

static int stepped_twice(void *arg)
{
	return ((struct script *)arg)->n == 2;
}

static void workers(void)
{
	struct script s = {.n = 0}, r = s;
	struct um_worker w = {act, &s, "w", NULL}, x = {act, &r, "x", NULL};
	um_event_handle e;
	uint64_t t0, home;
	char *p;

	for (int i = 0; i < 8; i++)
		s.step[i].kind = r.step[i].kind = UM_STEP_IDLE;
	open_sim(8);
	p = written(4);
	e = event();
	api->cudaMemPrefetchAsync(gpu, p, 4 * BLOCK, um_on_device(0), 0, a);
	um_sim_sync(gpu);
	home = profile.c_api + profile.c_pf + profile.c_pf_cpu +
	       um_sim_copy_ns(um_sim_of(gpu), UM_SIM_D2H, BLOCK, 1, 0);
	t0 = um_sim_now(gpu);
	run(a, 2 * MS);
	api->cudaEventRecord(gpu, e, a);
	s.evict = p;
	s.step[0].kind = UM_STEP_AGAIN;
	s.step[1] = (struct um_step){UM_STEP_WAIT, e};
	is_int(api->worker_start(gpu, &w), UM_CUDA_OK, "a worker is started");
	um_sim_sync(gpu);
	is_u64(s.n, 3, "the worker is stepped until it is idle");
	is_u64(s.at[0] - t0, 0, "an idle worker is called at once first");
	is_u64(s.at[1] - t0, home, "AGAIN: when its own call is over");
	is_u64(s.at[2] - t0, 2 * MS, "WAIT: when the event is there");
	is_u64(um_sim_now(gpu) - t0, 2 * MS + home, "its clock is its own; waiting for all includes it");

	t0 = um_sim_now(gpu);
	s.evict = NULL;
	run(a, MS);
	api->cudaStreamSynchronize(gpu, a);
	is_u64(s.n, 3, "an idle worker is asleep after three calls");
	api->worker_poke(gpu, &w);
	api->worker_poke(gpu, &w);
	um_sim_sync(gpu);
	is_u64(s.n, 4, "until it is poked");
	is_u64(s.at[3] - t0, MS, "the next call is at the time of the poke");

	r.poke = &x; /* while stepping: steps again */
	r.step[1].kind = UM_STEP_STOP;
	api->worker_start(gpu, &x);
	um_sim_sync(gpu);
	is_u64(r.n, 2, "a poke during a step is not lost");
	api->worker_poke(gpu, &x);
	um_sim_sync(gpu);
	is_u64(r.n, 2, "STOP: the worker is never called again");
	api->worker_stop(gpu, &x);

	s.step[4] = (struct um_step){UM_STEP_WAIT, event()};
	s.step[5].kind = UM_STEP_AGAIN;
	api->worker_poke(gpu, &w);
	api->worker_stop(gpu, &w);
	is_u64(s.n, 7, "stopping lets it run until it is idle; an event not recorded delays nothing");
	api->cudaEventDestroy(gpu, s.step[4].event);
	api->cudaEventDestroy(gpu, e);

	s.n = 0;
	s.step[0] = (struct um_step){UM_STEP_STOP, NULL};
	api->worker_start(gpu, &w); /* left to close */
	shut();
	ok(!w.impl, "closing ends workers");

	open_sim(8);
	s.n = 0;
	s.step[0].kind = UM_STEP_AGAIN;
	s.step[1].kind = UM_STEP_AGAIN;
	s.step[2].kind = UM_STEP_IDLE;
	e = event();
	run(a, MS);
	api->cudaEventRecord(gpu, e, a);
	s.step[0] = (struct um_step){UM_STEP_WAIT, e};
	api->worker_start(gpu, &w);
	is_int(api->worker_wait(gpu, stepped_twice, &s), UM_CUDA_OK, "the app may wait for what a worker does");
	is_u64(um_sim_now(gpu), MS, "until it has");
	s.n = 0;
	um_sim_sync(gpu);
	s.n = 0;
	is_int(api->worker_wait(gpu, stepped_twice, &s), UM_CUDA_NOT_READY, "unless it does not come");
	api->worker_stop(gpu, &w);
	api->cudaEventDestroy(gpu, e);
	shut();
}

/* --- marks, content, refusals ------------------------------------------------------------------------------------- */

static void marks(void)
{
	struct um_tally t;
	char *p;

	open_sim(4);
	p = written(4);
	touch(a, p, 3 * BLOCK, MS);
	um_sim_mark(gpu, &a, 1);
	run(a, MS);
	um_sim_mark(gpu, &a, 1);
	is_int(um_sim_mark_at(gpu, 0, &t), -EAGAIN, "a mark is not there before it is reached");
	um_sim_sync(gpu);
	is_int(um_sim_mark_at(gpu, 0, &t), 0, "the mark has a time then");
	is_u64(t.h2d_bytes, 3 * BLOCK, "sums at that time");
	is_u64(t.peak_resident_bytes, 3 * BLOCK, "the mark has the peak of resident bytes");
	api->cudaMemPrefetchAsync(gpu, p, 2 * BLOCK, um_on_host(), 0, a);
	touch(a, p + 3 * BLOCK, BLOCK, MS);
	um_sim_mark(gpu, &a, 1);
	touch(a, p + 3 * BLOCK, BLOCK, MS);
	um_sim_mark(gpu, &a, 1);
	um_sim_sync(gpu);
	is_int(um_sim_mark_at(gpu, 3, &t), 0, "a later mark has a time");
	is_u64(t.resident_bytes, 2 * BLOCK, "the mark has the resident bytes of its time");
	is_u64(t.peak_resident_bytes, 2 * BLOCK, "the peak is since the mark before");
	um_sim_mark_at(gpu, 2, &t);
	is_u64(t.peak_resident_bytes, 3 * BLOCK, "where there was more");
	is_int(um_sim_mark_at(gpu, 4, &t), -EAGAIN, "there are no others");
	shut();
}

static void marks_of_streams(void)
{
	um_event_handle begin, end;
	struct um_tally t, then;

	open_sim(4);
	begin = event();
	end = event();
	um_sim_mark(gpu, &a, 1);
	api->cudaEventRecord(gpu, begin, b);
	run(a, 10 * MS);
	run(b, 2 * MS);
	um_sim_mark(gpu, (const um_stream[]){a, b}, 2);
	run(b, 2 * MS);
	api->cudaEventRecord(gpu, end, b);
	api->cudaEventSynchronize(gpu, end);
	is_int(um_sim_mark_at(gpu, 1, &then), -EAGAIN,
	       "a mark of two streams is not reached while one has not reached it");
	um_sim_sync(gpu);
	um_sim_mark_at(gpu, 0, &t);
	um_sim_mark_at(gpu, 1, &then);
	ok(then.ns - t.ns >= 10 * MS, "it is reached when both have");
	is_u64(between(begin, end), 4 * MS, "neither waits for the other");
	api->cudaEventDestroy(gpu, begin);
	api->cudaEventDestroy(gpu, end);
	shut();
}

static void add_one(void *arg)
{
	(*(unsigned char *)arg)++;
}

static void content(void)
{
	unsigned char *p;
	size_t bytes = BLOCK;
	void *at;

	open_with((struct um_sim_options){.capacity = 2 * BLOCK, .backed = 1, .poison = 1});
	api->cudaMallocManaged(gpu, &at, BLOCK, 1);
	p = at;
	p[7] = 41;
	run(a, MS);
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = MS, .fn = add_one, .arg = p + 7});
	is_int(p[7], 41, "a kernel computes nothing before its time");
	um_sim_sync(gpu);
	is_int(p[7], 42, "the kernel writes its result then");
	touch(a, p, BLOCK, MS);
	is_int(api->cudaMemDiscardBatchAsync(gpu, &at, &bytes, 1, 0, a), UM_CUDA_OK, "a discard waits for the kernel");
	is_int(p[7], 42, "content is there until then");
	um_sim_sync(gpu);
	is_int(p[7], 0xdb, "the freed memory is poisoned afterwards");
	um_sim_run(gpu, a,
		   &(struct um_sim_kernel){.access = &(struct um_touch){p, BLOCK, 0, UM_READ},
					   .n_access = 1,
					   .fn = add_one,
					   .arg = p + 7});
	um_sim_sync(gpu);
	is_int(p[7], 0xdc, "written by a kernel that said it would only read");
	api->cudaMallocManaged(gpu, &at, 2 * BLOCK, 1);
	touch(a, at, 2 * BLOCK, MS);
	um_sim_sync(gpu);
	is_int(p[7], 0xdc, "an eviction keeps what was written since the discard");
	shut();
}

static void in_core(void)
{
	char *p;
	uint64_t t0;

	open_with((struct um_sim_options){.capacity = BLOCK, .in_core = 1});
	p = written(8);
	t0 = um_sim_now(gpu);
	touch(a, p, 8 * BLOCK, MS);
	api->cudaStreamSynchronize(gpu, a);
	is_u64(um_sim_now(gpu) - t0, MS, "in core a kernel takes its own time");
	is_int(api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_host(), 0, a), UM_CUDA_OK, "hints are accepted");
	api->cudaMemAdvise(gpu, p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_host());
	is_u64(um_sim_now(gpu) - t0, MS + 2 * profile.c_api, "the iteration costs the kernel and the calls");
	is_u64(tally().h2d_bytes + tally().d2h_bytes + tally().faults + tally().cpu_faults, 0,
	       "nothing moves and nothing faults");
	shut();
}

static void refusals(void)
{
	struct um_location here = um_on_device(0), there = um_on_device(1);
	size_t bytes = BLOCK, odd = 100, zero = 0, one = 1;
	void *p, *in, *d, *h;

	is_int(um_sim_open(&gpu, &(struct um_sim_options){.profile = &profile, .capacity = 100}), -EINVAL,
	       "no block fits");
	is_int(um_sim_open(&gpu, &(struct um_sim_options){.profile = &(struct um_profile){.capacity = BLOCK}}), -EINVAL,
	       "a profile without rates is refused");
	open_sim(2);
	p = written(2);
	in = (char *)p + 4096;
	api->cudaMalloc(gpu, &d, 4096);
	api->cudaHostAlloc(gpu, &h, 4096, 0);
	is_int(api->cudaMemPrefetchAsync(gpu, d, 4096, here, 0, a), UM_CUDA_INVALID_VALUE,
	       "a prefetch of unmanaged memory is refused");
	is_int(api->cudaMemPrefetchAsync(gpu, p, 3 * BLOCK, here, 0, a), UM_CUDA_INVALID_VALUE,
	       "a prefetch beyond the end is refused");
	is_int(api->cudaMemPrefetchAsync(gpu, p, 0, here, 0, a), UM_CUDA_INVALID_VALUE,
	       "a prefetch of no bytes is refused");
	is_int(api->cudaMemPrefetchAsync(gpu, p, BLOCK, there, 0, a), UM_CUDA_INVALID_DEVICE,
	       "a prefetch to another device is refused");
	is_int(api->cudaMemPrefetchAsync(gpu, p, BLOCK, here, 1, a), UM_CUDA_INVALID_VALUE,
	       "a prefetch with flags is refused");
	is_int(api->cudaMemPrefetchAsync(gpu, p, BLOCK, here, 0, p), UM_CUDA_INVALID_HANDLE,
	       "a prefetch on an unknown stream is refused");
	is_int(api->cudaMemPrefetchBatchAsync(gpu, &p, &bytes, 1, &here, &zero, 1, 0, NULL), UM_CUDA_INVALID_VALUE,
	       "a batch on the default stream is refused");
	is_int(api->cudaMemPrefetchBatchAsync(gpu, &p, &bytes, 1, &here, &one, 1, 0, a), UM_CUDA_INVALID_VALUE,
	       "whose locations begin late");
	is_int(api->cudaMemPrefetchBatchAsync(gpu, &p, &bytes, 1, &here, &zero, 1, 0, a), UM_CUDA_OK,
	       "a batch in order is accepted");
	is_int(api->cudaMemDiscardBatchAsync(gpu, &in, &odd, 1, 0, a), UM_CUDA_INVALID_VALUE,
	       "discard: not whole pages");
	is_int(api->cudaMemAdvise(gpu, p, BLOCK, 9, here), UM_CUDA_INVALID_VALUE, "unknown advice is refused");
	is_int(api->cudaMemAdvise(gpu, p, BLOCK, UM_ADV_SET_PREFERRED, there), UM_CUDA_INVALID_DEVICE,
	       "advice for another device is refused");
	is_u64(tally().refused, 11, "refused hints are counted");
	is_u64(tally().hints, 1, "accepted hints are counted");
	is_int(api->cudaFree(gpu, in), UM_CUDA_INVALID_VALUE, "freeing what is no beginning");
	is_int(api->cudaFree(gpu, h), UM_CUDA_INVALID_VALUE, "pinned memory is not freed as device memory");
	is_int(api->cudaFree(gpu, NULL), UM_CUDA_OK, "freeing a null pointer succeeds");
	touch(a, h, 4096, MS);
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "a kernel may touch what is not managed");
	api->cudaFree(gpu, p);
	is_int(api->cudaMalloc(gpu, &in, BLOCK), UM_CUDA_OK, "device memory fills the device");
	p = written(1);
	is_int(api->cudaMemPrefetchAsync(gpu, p, BLOCK, here, 0, a), UM_CUDA_NO_MEMORY,
	       "a prefetch without free memory is refused");
	touch(a, p, BLOCK, MS);
	is_int(um_sim_sync(gpu), UM_CUDA_LAUNCH_FAILURE, "a fault without free memory is fatal");
	is_int(run(a, MS), UM_CUDA_LAUNCH_FAILURE, "the failure persists");
	shut();
}

/* What faults cost: batches of `p` blocks, one fault worker, zeroing, stalls. */
static void faults(void)
{
	uint64_t t0, one, d2h;
	um_event_handle e;
	struct um_tally t;
	void *p;

	open_sim(32);
	api->cudaMallocManaged(gpu, &p, 64 * BLOCK, 1);
	t0 = um_sim_now(gpu);
	touch(a, p, 6 * BLOCK, MS); /* 2 groups of 3 blocks, 3 visits each, of 8 entries */
	um_sim_sync(gpu);
	t = tally();
	one = 6 * (profile.c_batch + 3 * 8 * profile.c_fault + 3 * profile.c_blk);
	is_u64(t.batches, 6, "6 blocks in groups of 3: 6 batches");
	is_u64(t.faults, 6 * 24, "faults come in batches of 24 entries");
	is_u64(um_sim_now(gpu) - t0, MS + one, "they take their time, then the kernel computes");
	is_u64(t.stall_ns, one, "the time of a batch is a stall");
	is_u64(t.zeroed_bytes, 0, "memory never used need not be zeroed");

	e = event();
	t0 = um_sim_now(gpu);
	touch(a, (char *)p + 8 * BLOCK, 6 * BLOCK, 0);
	touch(b, (char *)p + 16 * BLOCK, 6 * BLOCK, 0);
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) - t0, 2 * one, "two streams that fault share one fault worker");

	api->cudaMemPrefetchAsync(gpu, p, 32 * BLOCK, um_on_device(0), 0, a); /* full */
	um_sim_sync(gpu);
	t0 = um_sim_now(gpu);
	um_sim_run(gpu, a,
		   &(struct um_sim_kernel){.access = &(struct um_touch){(char *)p + 32 * BLOCK, BLOCK, 0, UM_WRITE},
					   .n_access = 1,
					   .pattern = UM_PATTERN_ONE_BATCH});
	um_sim_sync(gpu);
	d2h = um_sim_copy_ns(um_sim_of(gpu), UM_SIM_D2H, BLOCK, 1, 0);
	is_u64(um_sim_now(gpu) - t0,
	       profile.c_batch + 17 * profile.c_fault + profile.c_blk + profile.c_evict + profile.c_hostpop +
		       profile.c_dma + d2h + profile.c_zero,
	       "an eviction: host memory, its copy, then zeroing");
	is_u64(tally().zeroed_bytes, BLOCK, "the memory that the eviction freed is zeroed");
	t0 = tally().batches;
	um_sim_run(
		gpu, a,
		&(struct um_sim_kernel){.access = &(struct um_touch){(char *)p + 40 * BLOCK, 16 * BLOCK, 0, UM_WRITE},
					.n_access = 1,
					.pattern = UM_PATTERN_WIDE});
	um_sim_sync(gpu);
	is_u64(tally().batches - t0, 6 * 5, "wide: 16 blocks in groups of 3, each with 5 visits: 30 batches");
	api->cudaEventDestroy(gpu, e);
	shut();
}

/* Two tensors in one block, two accesses at different speeds, partial and scattered ones. */
static void walks(void)
{
	struct um_touch x[2];
	struct um_sim_block_state s;
	struct um_tally t;
	uint64_t h2d;
	char *p;
	void *q;

	open_sim(16);
	p = written(8);
	x[0] = (struct um_touch){p + BLOCK - 4096, 4096, 0, UM_READ};
	x[1] = (struct um_touch){p + BLOCK / 2, 65536, 0, UM_UPDATE};
	um_sim_run(gpu, a, &(struct um_sim_kernel){.access = x, .n_access = 2, .pattern = UM_PATTERN_WIDE});
	um_sim_sync(gpu);
	um_sim_block(gpu, p, &s);
	is_u64(s.gpu, 1u << 31 | 1u << 16, "two tensors in one block have their own pages");
	is_u64(tally().batches, 1, "all faults are in one batch");
	x[0] = (struct um_touch){p + BLOCK, 4 * BLOCK, 8 * 4096, UM_READ};
	um_sim_run(gpu, a, &(struct um_sim_kernel){.access = x, .n_access = 1, .pattern = UM_PATTERN_NARROW});
	um_sim_sync(gpu);
	t = tally();
	is_u64(t.faults, 2 + 8, "scattered: 8 rows of 4 KiB over 4 blocks");
	um_sim_block(gpu, p + BLOCK, &s);
	is_u64(s.gpu, 1u << 16 | 1, "touched pages are evenly spread");
	um_sim_run(gpu, a, &(struct um_sim_kernel){.access = x, .n_access = 1, .pattern = UM_PATTERN_NARROW});
	um_sim_sync(gpu);
	is_u64(tally().faults, t.faults, "the same pages are touched again");
	is_int(um_sim_block(gpu, p + 8 * BLOCK + 100, &s), -ENOENT, "unmapped memory has no block");
	shut();

	open_sim(2);
	p = written(5);
	api->cudaMallocManaged(gpu, &q, 4 * BLOCK, 1);
	api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_device(0), 0, a);
	um_sim_sync(gpu);
	x[0] = (struct um_touch){p, BLOCK, 0, UM_READ};
	x[1] = (struct um_touch){p + BLOCK, 4 * BLOCK, 0, UM_READ};
	um_sim_run(gpu, a, &(struct um_sim_kernel){.access = x, .n_access = 2, .pattern = UM_PATTERN_NARROW});
	um_sim_sync(gpu);
	is_u64(tally().h2d_bytes, 5 * BLOCK, "what had its turn does not come back when it is evicted");
	um_sim_block(gpu, p, &s);
	is_int(s.chunk, 0, "the evicted block stays without a chunk");
	api->cudaMemPrefetchAsync(gpu, p + BLOCK, BLOCK, um_on_device(0), 0, a);
	api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_host(), 0, a);
	um_sim_sync(gpu);
	h2d = tally().h2d_bytes;
	x[0] = (struct um_touch){p, 2 * BLOCK, 0, UM_READ}; /* missing, resident */
	x[1] = (struct um_touch){q, 4 * BLOCK, 0, UM_READ}; /* missing */
	um_sim_run(gpu, a, &(struct um_sim_kernel){.access = x, .n_access = 2, .pattern = UM_PATTERN_NARROW});
	um_sim_sync(gpu);
	is_u64(tally().h2d_bytes - h2d, 2 * BLOCK, "a block evicted before its turn migrates again");
	shut();
}

int main(void)
{
	profile = *um_profile_find("a100");
	streams();
	launch_queue();
	values();
	deadlocks();
	callers();
	workers();
	marks();
	marks_of_streams();
	content();
	in_core();
	refusals();
	faults();
	walks();
	return tap_done();
}
