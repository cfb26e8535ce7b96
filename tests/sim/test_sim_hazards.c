/* SPDX-License-Identifier: Apache-2.0
 *
 * Hazards of the simulated GPU: programs that hang on a GPU are deadlocks here, and the report names the cycle.
 */
#include "sim/state.h"
#include "fixture/streams.h"
#include "tap.h"

#include <pthread.h>
#include <time.h>

#define MS 1000000ull
#define BLOCK UM_BLOCK_BYTES

static struct um_profile profile;
static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static um_stream a, b; /* streams 1 and 2 */
static uint32_t *word;
static char reported[UM_SIM_HANG_TEXT];

static void on_report(void *user, const char *text)
{
	(void)user;
	snprintf(reported, sizeof reported, "%s", text);
}

static void open_sim(const char *hazards, unsigned timeout_ms)
{
	struct um_sim_options o = {.profile = &profile, .timeout_ms = timeout_ms, .hazards.report = on_report};

	profile = *um_profile_find("a100");
	if ((*hazards && um_sim_hazards_parse(hazards, &o.hazards)) || um_sim_open(&gpu, &o))
		tap_bail("cannot open");
	api = gpu->api;
	a = fx_stream(api, gpu);
	b = fx_stream(api, gpu);
	if (api->cudaHostAlloc(gpu, (void **)&word, sizeof *word, 0))
		tap_bail("no memory");
	*word = 0;
	reported[0] = 0;
}

static int run(um_stream s, uint64_t ms)
{
	return um_sim_run(gpu, s, &(struct um_sim_kernel){.ns = ms * MS});
}

static int wait_value(um_stream s)
{
	return um_sim_wait_value(gpu, s, word, 1);
}

static int write_value(um_stream s)
{
	return um_sim_write_value(gpu, s, word, 1);
}

static uint64_t end(um_stream s)
{
	api->cudaStreamSynchronize(gpu, s);
	return um_sim_now(gpu) / MS;
}

static void says(const char *part)
{
	if (!ok(strstr(reported, part) != NULL, "the report says '%s'", part))
		diag("%s", reported);
}

static void options(void)
{
	struct um_sim_hazards h = {0};

	is_int(um_sim_hazards_parse("on,queues=1", &h), 0, "a list of hazards is read");
	ok(h.queues == 1 && h.depth == 1000 && h.locks && h.lazy && h.reuse && h.destroyed && !h.defer,
	   "an item overrides 'on'");
	is_int(um_sim_hazards_parse("depth=8,defer,timeout=50", &h), 0, "items are added");
	ok(h.queues == 1 && h.depth == 8 && h.defer && h.timeout_ms == 50, "to those that were set");
	for (const char *const *bad = (const char *const[]){"", "queues=0", "queues=33", "queues=x", "queues",
							    "depth=", "locks,", "locked", NULL};
	     *bad; bad++)
		is_int(um_sim_hazards_parse(*bad, &h), -EINVAL, "'%s' is refused", *bad);
	is_int(h.queues, 1, "a refused list changes nothing");
}

/* --- hardware queues ---------------------------------------------------------------------------------------------- */

static void independent_streams(void)
{
	open_sim("", 0);
	wait_value(a);
	write_value(b);
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_OK,
	       "without hazards a later write lets an earlier wait go on");
	is_u64(um_sim_hangs(gpu, NULL, 0), 0, "and nothing is reported");
	api->close(gpu);
}

static void one_queue(void)
{
	char text[40];

	open_sim("queues=1", 0);
	wait_value(a);
	write_value(b);
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_LAUNCH_TIMEOUT,
	       "a write behind its wait in one hardware queue is a deadlock");
	says("cudaStreamSynchronize of main thread");
	says("stream 1 (hardware queue 0): the value wait waits for m1+0 to be 1 (it is 0), written by stream 2");
	says("the value write stands in the hardware queue behind stream 1 (hardware queue 0), a cycle");
	is_u64(um_sim_hangs(gpu, text, sizeof text), 1, "one deadlock is counted");
	ok(!strncmp(text, "deadlock: cudaStreamSynchronize", 31), "its text is kept");
	*word = 1;
	is_int(api->cudaStreamSynchronize(gpu, b), UM_CUDA_OK, "a value that the host writes ends it");
	api->close(gpu);
}

static void eight_queues(void)
{
	um_stream s[9];

	open_sim("queues=8", 0);
	for (int i = 0; i < 9; i++)
		s[i] = fx_stream(api, gpu); /* streams 3 to 11 */
	wait_value(a);
	write_value(b);
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_OK, "streams of different hardware queues are independent");
	*word = 0;
	wait_value(a);
	write_value(s[6]); /* stream 9, as stream 1 */
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_LAUNCH_TIMEOUT,
	       "the ninth stream has the queue of the first");
	api->close(gpu);
}

static void events_cannot_deadlock(void)
{
	um_event_handle e;

	open_sim("queues=1", 0);
	api->cudaEventCreateWithFlags(gpu, &e, 0);
	run(b, 3);
	api->cudaEventRecord(gpu, e, b);
	api->cudaStreamWaitEvent(gpu, a, e, 0);
	run(a, 1);
	is_u64(end(a), 4, "what waits for an event that was recorded before begins, in one queue too");
	is_u64(um_sim_hangs(gpu, NULL, 0), 0, "and nothing is reported");
	api->cudaEventDestroy(gpu, e);
	api->close(gpu);
}

static void false_dependency(void)
{
	open_sim("queues=1", 0);
	run(a, 5);
	run(b, 5);
	is_u64(end(b), 5, "kernels that can begin run at the same time");
	run(a, 5);
	run(a, 5);
	run(b, 1);
	is_u64(end(b), 11, "a kernel behind one that waits for its stream begins after that one's beginning");
	is_u64(end(a), 15, "and does not wait for its end");
	api->close(gpu);
}

/* --- the launch queue --------------------------------------------------------------------------------------------- */

static void launch_queue(void)
{
	open_sim("depth=8", 0);
	for (int i = 0; i < 9; i++)
		run(a, 1);
	is_u64(um_sim_now(gpu) / MS, 0, "a launch begins, and eight find room in a queue of eight");
	run(a, 1);
	is_u64(um_sim_now(gpu) / MS, 1, "the next one waits for the end of the first");
	run(b, 1);
	is_u64(um_sim_now(gpu) / MS, 1, "another stream has room of its own");
	wait_value(b);
	for (int i = 0; i < 7; i++)
		is_int(run(b, 1), UM_CUDA_OK, "launch %d behind a gate finds room", i);
	is_int(run(b, 1), UM_CUDA_LAUNCH_TIMEOUT, "a launch into a full queue behind a gate never returns");
	says("a kernel launch of main thread");
	says("waits for room in the queue of stream 2: the value wait waits for");
	api->close(gpu);

	open_sim("queues=1,depth=8", 0);
	wait_value(a);
	for (int i = 0; i < 7; i++)
		run(b, 1);
	is_int(run(b, 1), UM_CUDA_LAUNCH_TIMEOUT, "streams of one hardware queue share its room");
	api->close(gpu);
}

/* --- the driver's lock ------------------------------------------------------------------------------------------- */

enum locking { FREE, FREE_HOST, MODULE, LAUNCH };

static struct {
	enum locking how;
	void *ptr;
	int result;
} other;

static void *lock_it(void *arg)
{
	switch (other.how) {
	case FREE:
		other.result = api->cudaFree(gpu, other.ptr);
		break;
	case FREE_HOST:
		other.result = api->cudaFreeHost(gpu, other.ptr);
		break;
	case MODULE:
		other.result = um_sim_module(gpu, "cuModuleLoadData");
		break;
	case LAUNCH:
		other.result = um_sim_run(gpu, b, &(struct um_sim_kernel){.name = "new", .ns = MS});
		break;
	}
	return arg;
}

/* Returns when the other thread waits inside its call. */
static void await_waiter(void)
{
	const struct timespec nap = {0, 1000000};
	int there = 0;

	while (!there) {
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&um_sim_of(gpu)->node->lock);
		there = um_sim_of(gpu)->waiters != NULL;
		pthread_mutex_unlock(&um_sim_of(gpu)->node->lock);
	}
}

/* The gate is opened by a command of this thread, which comes while the other one is in its call. */
static void gate_and(enum locking how, const char *hazards, const char *call, int deadlocks)
{
	um_stream c;
	pthread_t t;

	open_sim(hazards, deadlocks ? 100 : 20000);
	c = fx_stream(api, gpu);
	other.how = how;
	if (how == FREE)
		api->cudaMalloc(gpu, &other.ptr, BLOCK);
	else if (how == FREE_HOST)
		api->cudaHostAlloc(gpu, &other.ptr, BLOCK, 0);
	wait_value(a);
	if (pthread_create(&t, NULL, lock_it, NULL))
		tap_bail("no thread");
	await_waiter();
	is_int(api->cudaEventQuery(gpu, NULL), UM_CUDA_INVALID_VALUE, "%s: queries need no lock", call);
	is_int(um_sim_stream_query(gpu, a), UM_CUDA_NOT_READY, "%s: not even of a stream that waits", call);
	is_int(write_value(c), UM_CUDA_OK, "%s%s: the value is written in the end", call, deadlocks ? ", locked" : "");
	pthread_join(t, NULL);
	is_int(other.result, deadlocks ? UM_CUDA_LAUNCH_TIMEOUT : UM_CUDA_OK, "%s %s while a gate is pending", call,
	       deadlocks ? "never returns" : "returns");
	is_int(um_sim_hangs(gpu, NULL, 0) != 0, deadlocks, "%s: a deadlock is reported if there is one", call);
	if (deadlocks) {
		says(call);
		says("it holds the driver's lock");
		says("cuStreamWriteValue32 of main thread");
		says("waits for the driver's lock");
	}
	api->close(gpu);
}

static void driver_lock(void)
{
	gate_and(FREE, "queues=32", "cudaFree", 0);
	gate_and(FREE, "locks", "cudaFree", 1);
	gate_and(FREE_HOST, "locks", "cudaFreeHost", 1);
	gate_and(MODULE, "locks", "cuModuleLoadData", 1);
	gate_and(LAUNCH, "locks,lazy", "a kernel launch", 1);
}

static int worker_steps;

static struct um_step write_once(void *arg)
{
	(void)arg;
	if (worker_steps++ == 0)
		return (struct um_step){.kind = UM_STEP_IDLE};
	write_value(b);
	return (struct um_step){.kind = UM_STEP_IDLE};
}

static void worker(void)
{
	static struct um_worker w = {.step = write_once, .name = "writer"};
	void *p;

	for (int locks = 0; locks < 2; locks++) {
		open_sim(locks ? "locks" : "queues=32", 0);
		api->cudaMalloc(gpu, &p, BLOCK);
		worker_steps = 0;
		api->worker_start(gpu, &w);
		um_sim_sync(gpu);
		wait_value(a);
		um_sim_of(gpu)->lanes->at += MS; /* its step is still to come */
		api->worker_poke(gpu, &w);
		is_int(api->cudaFree(gpu, p), locks ? UM_CUDA_LAUNCH_TIMEOUT : UM_CUDA_OK,
		       "a worker %s while cudaFree waits", locks ? "stands still" : "opens a gate");
		if (locks)
			says("workers stand still");
		um_sim_sync(gpu);
		is_u64(*word, 1, "it goes on afterwards");
		api->worker_stop(gpu, &w);
		api->close(gpu);
	}
}

static struct um_step fill_queue(void *arg)
{
	um_event_handle e = arg;

	if (worker_steps == 12)
		return (struct um_step){.kind = UM_STEP_IDLE};
	worker_steps++;
	api->cudaEventRecord(gpu, e, a);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static void worker_fills(void)
{
	struct um_worker w = {.step = fill_queue, .name = "filler"};
	um_event_handle e;

	open_sim("depth=8", 0);
	api->cudaEventCreateWithFlags(gpu, &e, 0);
	w.arg = e;
	worker_steps = 0;
	wait_value(a);
	api->worker_start(gpu, &w);
	is_int(um_sim_sync(gpu), UM_CUDA_LAUNCH_TIMEOUT, "a worker that waits for room behind a gate deadlocks");
	is_int(worker_steps, 7, "it stands still when the queue is full");
	says("cudaEventRecord of worker filler waits for room in the queue of stream 1");
	*word = 1;
	is_int(um_sim_sync(gpu), UM_CUDA_OK, "it goes on when there is room");
	is_int(worker_steps, 12, "to its end");
	api->worker_stop(gpu, &w);
	api->cudaEventDestroy(gpu, e);
	api->close(gpu);
}

/* --- lazy loading, handles, deferred hints -------------------------------------------------------------------- */

static int run_named(um_stream s, const char *name)
{
	return um_sim_run(gpu, s, &(struct um_sim_kernel){.name = name, .ns = MS});
}

static void lazy_loading(void)
{
	open_sim("lazy", 0);
	run_named(a, "one");
	is_u64(um_sim_now(gpu) / MS, 0, "the first launch on an idle device returns at once");
	run_named(a, "one");
	is_u64(um_sim_now(gpu) / MS, 0, "so does a launch of a kernel that was loaded");
	run_named(b, "two");
	is_u64(um_sim_now(gpu) / MS, 2, "the first launch of another kernel waits for the device");
	wait_value(a);
	is_int(run_named(b, "one"), UM_CUDA_OK, "a loaded kernel is launched beside a gate");
	is_int(run_named(b, "three"), UM_CUDA_LAUNCH_TIMEOUT, "another one never is");
	says("a kernel launch of main thread");
	says("waits for all work of the device");
	api->close(gpu);
}

static void handles(void)
{
	um_stream c, d;

	open_sim("reuse", 0);
	run(a, 3);
	is_int(api->cudaStreamDestroy(gpu, a), UM_CUDA_OK, "a stream with work is destroyed");
	is_int(run(a, 1), UM_CUDA_INVALID_HANDLE, "a launch on a destroyed stream is an invalid handle");
	says("a kernel launch names a stream that does not exist or was destroyed");
	is_int(api->cudaStreamDestroy(gpu, a), UM_CUDA_INVALID_HANDLE, "it cannot be destroyed twice");
	is_int(api->cudaStreamSynchronize(gpu, a), UM_CUDA_INVALID_HANDLE, "nor waited for");
	is_int(wait_value(a), UM_CUDA_INVALID_HANDLE, "nor made to wait");
	c = fx_stream(api, gpu);
	ok(c == a, "a new stream has the handle of the destroyed one");
	run(c, 1);
	is_u64(end(c), 1, "it is not ordered after the work of that one");
	um_sim_sync(gpu);
	is_u64(um_sim_now(gpu) / MS, 3, "which goes on");
	d = fx_stream(api, gpu);
	ok(d != a && d != b, "a stream that is alive keeps its handle");
	api->close(gpu);
}

static void deferred(void)
{
	void *p;

	for (int defer = 0; defer < 2; defer++) {
		open_sim(defer ? "defer" : "queues=32", 0);
		api->cudaMallocManaged(gpu, &p, BLOCK, 1);
		api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_device(0), 0, a);
		api->cudaStreamSynchronize(gpu, a);
		api->cudaMemPrefetchAsync(gpu, p, BLOCK, um_on_host(), 0, a);
		is_int(um_sim_stream_query(gpu, a), defer ? UM_CUDA_NOT_READY : UM_CUDA_OK,
		       "a prefetch to the host on an idle stream is %s when it returns", defer ? "pending" : "done");
		api->close(gpu);
	}
}

int main(void)
{
	options();
	independent_streams();
	one_queue();
	eight_queues();
	events_cannot_deadlock();
	false_dependency();
	launch_queue();
	driver_lock();
	worker();
	worker_fills();
	lazy_loading();
	handles();
	deferred();
	return tap_done();
}
