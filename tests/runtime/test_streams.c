/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a freed tensor gets a new owner while the old owner's kernel still runs, and the new owner's first op comes
 * on a stream that the library has not seen before. The kernels compute on the simulated GPU: an op that overtakes the
 * earlier use of its memory leaves a wrong number.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "fixture/streams.h"
#include "tap.h"

#include <pthread.h>

#define MIB (1ull << 20)
#define SLOW 50000000
#define FAST 1000
#define PER_THREAD UM_STREAM_PER_THREAD

/* Calls that fail. */
enum { CREATE = 1, RECORD = 2, WAIT = 4, EVENT_SYNC = 8, STREAM_SYNC = 16, QUERY = 32 };

struct job {
	unsigned char *at;
	int value;
};

static struct um_gpu *gpu;
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static unsigned failing;
static int code;
static struct umadv *adv;
static struct job jobs[64];
static unsigned n_jobs;

static int create(struct um_gpu *g, um_event_handle *event, unsigned flags)
{
	return failing & CREATE ? code : sim->cudaEventCreateWithFlags(g, event, flags);
}

static int record(struct um_gpu *g, um_event_handle event, um_stream stream)
{
	return failing & RECORD ? code : sim->cudaEventRecord(g, event, stream);
}

static int wait_event(struct um_gpu *g, um_stream stream, um_event_handle event, unsigned flags)
{
	return failing & WAIT ? code : sim->cudaStreamWaitEvent(g, stream, event, flags);
}

static int event_sync(struct um_gpu *g, um_event_handle event)
{
	return failing & EVENT_SYNC ? code : sim->cudaEventSynchronize(g, event);
}

static int stream_sync(struct um_gpu *g, um_stream stream)
{
	return failing & STREAM_SYNC ? code : sim->cudaStreamSynchronize(g, stream);
}

static int query(struct um_gpu *g, um_event_handle event)
{
	return failing & QUERY ? code : sim->cudaEventQuery(g, event);
}

static void scene_open(const char *strategy)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = 64 * MIB, .backed = 1};
	struct umadv_options o;

	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	sim = gpu->api;
	api = *sim;
	api.cudaEventCreateWithFlags = create;
	api.cudaEventRecord = record;
	api.cudaStreamWaitEvent = wait_event;
	api.cudaEventSynchronize = event_sync;
	api.cudaStreamSynchronize = stream_sync;
	api.cudaEventQuery = query;
	gpu->api = &api;
	failing = 0;
	code = UM_CUDA_INVALID_VALUE;
	n_jobs = 0;
	umadv_options_init(&o);
	o.strategy = strategy;
	o.log_level = UMADV_LOG_ERROR;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
}

static void fill(void *arg)
{
	const struct job *j = arg;

	memset(j->at, j->value, MIB);
}

/* An op that fills the tensor with a number, `ns` long. */
static void launch(um_stream stream, void *tensor, int value, uint64_t ns)
{
	struct umadv_use use = UMADV_WRITE(tensor);
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = ns};
	struct job *j = &jobs[n_jobs++];

	*j = (struct job){tensor, value};
	if (umadv_op_ex(adv, stream, "fill", &info) ||
	    um_sim_run(gpu, stream, &(struct um_sim_kernel){.announced = 1, .fn = fill, .arg = j}))
		tap_bail("an op failed");
}

static unsigned char *born(void)
{
	void *p;

	if (umadv_alloc(adv, &p, MIB, "t", UMADV_ACT))
		tap_bail("no memory");
	return p;
}

/* All that a tensor holds when the device is idle; -1: several numbers. */
static int content(const unsigned char *t)
{
	um_sim_sync(gpu);
	for (size_t i = 1; i < MIB; i++)
		if (t[i] != t[0])
			return -1;
	return t[0];
}

/* A tensor that a slow op on the stream still writes, and that is freed. */
static unsigned char *slow_and_freed(um_stream stream)
{
	unsigned char *first, *t;

	first = born();
	launch(stream, first, 9, SLOW); /* a kernel computes when it begins */
	t = born();
	launch(stream, t, 1, SLOW);
	umadv_free(adv, t);
	return t;
}

/* Does the device, when idle, give this memory to a new tensor? */
static int comes_back(const unsigned char *old)
{
	int found = 0;

	for (int i = 0; i < 3 && !found; i++) {
		um_sim_sync(gpu);
		found = born() == old;
	}
	return found;
}

static void second_stream(const char *strategy)
{
	unsigned char *old, *t;

	scene_open(strategy);
	old = slow_and_freed(NULL);
	t = born();
	ok(t == old, "%s: with one stream memory is used again at once", strategy);
	launch(fx_stream(sim, gpu), t, 2, FAST);
	is_int(content(t), 2, "%s: the first op of a second stream runs after the earlier use of its memory", strategy);
	umadv_close(adv);
}

static void third_stream(void)
{
	unsigned char *t, *other;

	scene_open("on-demand");
	other = born();
	slow_and_freed(NULL);
	t = born();
	launch(fx_stream(sim, gpu), other, 3, FAST);
	launch(fx_stream(sim, gpu), t, 2, FAST);
	is_int(content(t), 2, "so does the first op of a third stream");
	is_int(content(other), 3, "the op of the second stream has run");
	umadv_close(adv);
}

static void many_streams(void)
{
	unsigned char *t, *other, *late;

	scene_open("on-demand");
	other = born();
	slow_and_freed(NULL);
	t = born();
	for (int i = 1; i < UM_APP_STREAMS; i++)
		launch(fx_stream(sim, gpu), other, 3, FAST);
	launch(fx_stream(sim, gpu), t, 2, FAST);
	late = born();
	launch(fx_stream(sim, gpu), late, 4, SLOW);
	umadv_free(adv, late);
	ok(born() != late, "with more streams than are told apart memory is not used again");
	is_int(content(t), 2, "an op on one stream too many runs after the earlier use of its memory");
	umadv_close(adv);
}

/* --- per-thread default streams ----------------------------------------------------------------------------------- */

struct visitor {
	unsigned char *frees, *t;
};

static void *visit(void *arg)
{
	struct visitor *v = arg;

	if (v->frees)
		umadv_free(adv, v->frees);
	v->t = born();
	launch(PER_THREAD, v->t, 2, FAST);
	return NULL;
}

static void on_other_thread(struct visitor *v)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, visit, v) || pthread_join(thread, NULL))
		tap_bail("no thread");
}

static void per_thread(void)
{
	struct visitor v = {0};
	unsigned char *old, *first;

	scene_open("on-demand");
	old = slow_and_freed(PER_THREAD);
	on_other_thread(&v);
	ok(v.t == old, "memory freed on one thread's default stream is used again by another thread");
	is_int(content(v.t), 2, "handle 2 names another stream there: its op runs after the earlier use");
	umadv_close(adv);

	scene_open("on-demand");
	first = born();
	launch(PER_THREAD, first, 9, SLOW);
	old = born();
	launch(PER_THREAD, old, 1, SLOW);
	v.frees = old;
	on_other_thread(&v);
	is_int(content(v.t), 2, "an op runs after the earlier use of its memory where its own thread freed it");
	umadv_close(adv);
}

/* Both threads are known: events recorded by one must stand for the other's work. */
static void *free_and_launch(void *arg)
{
	struct visitor *v = arg;

	launch(PER_THREAD, v->t, 3, FAST);
	umadv_free(adv, v->frees);
	v->t = born();
	launch(PER_THREAD, v->t, 2, FAST);
	return NULL;
}

static void per_thread_known(void)
{
	struct visitor v = {.t = NULL};
	unsigned char *old;
	pthread_t thread;

	scene_open("on-demand");
	v.t = born();
	launch(PER_THREAD, v.t, 9, SLOW);
	old = v.frees = born();
	launch(PER_THREAD, old, 1, SLOW);
	if (pthread_create(&thread, NULL, free_and_launch, &v) || pthread_join(thread, NULL))
		tap_bail("no thread");
	is_int(content(v.t), 2, "a free on one thread is ordered after an op on the default stream of another thread");
	ok(comes_back(old), "its memory is used again when that op is over");
	umadv_close(adv);
}

/* --- calls that fail ---------------------------------------------------------------------------------------------- */

static uint64_t errors_counted(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(adv, &s);
	return s.errors;
}

static void failing_waits(unsigned which, const char *what)
{
	unsigned char *t;

	scene_open("on-demand");
	slow_and_freed(NULL);
	t = born();
	failing = which;
	launch(fx_stream(sim, gpu), t, 2, FAST);
	failing = 0;
	is_int(content(t), 2, "%s: the op still runs after the earlier use of its memory", what);
	is_u64(errors_counted(), 0, "%s: no error is counted", what);
	umadv_close(adv);
}

static void failing_records(unsigned which, int how, const char *what)
{
	unsigned char *old, *t;

	scene_open("on-demand");
	failing = which;
	code = how;
	old = slow_and_freed(NULL);
	t = born();
	ok(t != old, "%s: the memory is not used again", what);
	launch(fx_stream(sim, gpu), t, 2, FAST);
	failing = 0;
	is_int(content(t), 2, "%s: the numbers are right", what);
	ok(comes_back(old), "%s: it is used again once an event could be recorded", what);
	umadv_close(adv);
}

static void all_fails(void)
{
	unsigned char *t, *late;

	scene_open("on-demand");
	slow_and_freed(NULL);
	t = born();
	failing = WAIT | EVENT_SYNC | STREAM_SYNC;
	launch(fx_stream(sim, gpu), t, 2, FAST);
	failing = 0;
	is_u64(errors_counted(), 1, "an order that the device refuses in every way is counted as an error");
	late = born();
	launch(NULL, late, 1, SLOW);
	umadv_free(adv, late);
	ok(born() != late, "from then on no memory is used again");
	umadv_close(adv);
}

static void destroyed(void)
{
	um_stream s, other;
	unsigned char *old, *t;

	scene_open("on-demand");
	s = fx_stream(sim, gpu);
	other = fx_stream(sim, gpu); /* while the first lives: its handle is another one */
	t = slow_and_freed(s);
	sim->cudaStreamSynchronize(gpu, s);
	sim->cudaStreamDestroy(gpu, s);
	old = born();
	ok(old == t, "memory freed on a stream is used again after the stream was destroyed");
	launch(other, old, 2, SLOW);
	umadv_free(adv, old);
	t = born();
	ok(t == old, "a destroyed stream does not keep memory of another one from being used again");
	launch(NULL, t, 3, FAST);
	is_int(content(t), 3, "the first op of a third stream runs after that one's use");
	is_u64(errors_counted(), 0, "no error is counted");
	umadv_close(adv);
}

int main(void)
{
	second_stream("on-demand");
	second_stream("prefetch-on-use");
	second_stream("lookahead");
	third_stream();
	many_streams();
	per_thread();
	per_thread_known();
	failing_waits(WAIT, "a wait that is refused");
	failing_waits(WAIT | EVENT_SYNC, "a wait that is refused twice");
	failing_waits(QUERY, "a query that fails");
	failing_records(CREATE, UM_CUDA_NO_MEMORY, "without an event");
	failing_records(RECORD, UM_CUDA_CAPTURING, "on a stream that captures");
	failing_records(RECORD, UM_CUDA_INVALID_VALUE, "with records that fail");
	failing_records(RECORD | QUERY, UM_CUDA_INVALID_VALUE, "with records and queries that fail");
	all_fails();
	destroyed();
	return tap_done();
}
