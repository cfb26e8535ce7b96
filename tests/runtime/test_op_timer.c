/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of ops by pairs of events, on the simulated GPU where they are known exactly; and a umtrace recorded with them.
 */
#include "runtime/op_timer.h"

#include "sim/sim.h"
#include "io/umtrace.h"
#include "runtime/trace_sink.h"

#include "tap.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static struct um_gpu *gpu;

static uint64_t ns_of(uint32_t op)
{
	return 10000 + 1000ull * (op % 7);
}

static void kernel(um_stream s, uint64_t ns)
{
	struct um_sim_kernel k = {.name = "k", .ns = ns};

	um_sim_run(gpu, s, &k);
}

/* One iteration of n ops on two streams in turn, `skip` left out. Waits that are not the op's own stand before it. */
static void iteration(struct um_op_timer *w, uint32_t n, uint32_t skip, um_stream *s)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i == skip)
			continue;
		um_op_timer_stop_op(w, s[i % 2]);
		kernel(s[i % 2], 500000); /* stands for what is waited for */
		um_op_timer_start_op(w, s[i % 2], i);
		kernel(s[i % 2], ns_of(i));
	}
}

/* An op on the per-thread default stream of the thread that calls. */
static void op_here(struct um_op_timer *w, uint32_t op)
{
	um_op_timer_stop_op(w, UM_STREAM_PER_THREAD);
	kernel(UM_STREAM_PER_THREAD, 500000);
	um_op_timer_start_op(w, UM_STREAM_PER_THREAD, op);
	kernel(UM_STREAM_PER_THREAD, ns_of(op));
}

/* The second thread: announces the even ops, each when the first thread asks for it. */
struct second {
	struct um_op_timer *w;
	sem_t go, done;
	uint32_t op; /* UINT32_MAX: ends */
};

static void *second_thread(void *arg)
{
	struct second *t = arg;

	for (sem_wait(&t->go); t->op != UINT32_MAX; sem_wait(&t->go)) {
		op_here(t->w, t->op);
		sem_post(&t->done);
	}
	return NULL;
}

static uint32_t wrong(const struct um_op_timer *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->ns.n; i++)
		n += w->ns.at[i] != ns_of(i);
	return n;
}

static void test_measure(void)
{
	struct um_op_timer w;
	um_stream s[2], one[2] = {NULL, NULL};
	uint32_t n = UM_OP_TIMER_OPS + 100; /* two windows */
	int done = 0, rounds = 0;

	gpu->api->cudaStreamCreateWithFlags(gpu, &s[0], UM_STREAM_NON_BLOCKING);
	gpu->api->cudaStreamCreateWithFlags(gpu, &s[1], UM_STREAM_NON_BLOCKING);
	um_op_timer_init(&w, gpu);
	w.ends_known = 1;
	iteration(&w, 10, 10, s);
	is_int(um_op_timer_end(&w, 1), 0, "off: nothing is measured");
	is_int(um_op_timer_begin(&w, 10), 0, "the timer begins to measure");
	iteration(&w, 10, 3, s);
	is_int(um_op_timer_end(&w, 0), 0, "an iteration that went elsewhere does not count");
	is_int(w.state, UM_OP_TIMER_RUNS, "the next one may");
	iteration(&w, 10, 3, s);
	um_op_timer_end(&w, 1);
	is_int(w.state, UM_OP_TIMER_RUNS, "an iteration with an op that was not begun does not count");
	iteration(&w, 10, 10, s);
	is_int(um_op_timer_end(&w, 1), 0, "a time is not ready before the device gets there");
	is_int(w.state, UM_OP_TIMER_WAITS, "it is waited for, without waiting");
	um_sim_sync(gpu);
	is_int(um_op_timer_end(&w, 1), 0, "one pass is not enough");
	iteration(&w, 10, 10, s);
	um_sim_sync(gpu);
	is_int(um_op_timer_end(&w, 1), 1, "two passes: done");
	is_u64(wrong(&w), 0, "each op has its own time, without what it waited for");
	is_int(um_op_timer_end(&w, 1), 1, "the timer stays complete");

	is_int(um_op_timer_begin(&w, n), 0, "more ops than one window holds");
	while (!done && rounds < 10) {
		iteration(&w, n, n, one);
		um_sim_sync(gpu);
		done = um_op_timer_end(&w, 1);
		rounds++;
	}
	is_int(rounds, 2 * UM_OP_TIMER_PASSES, "ops are measured a window at a time");
	is_u64(wrong(&w), 0, "all times are right");
	um_op_timer_off(&w);
	is_int(um_op_timer_end(&w, 1), 0, "a timer that was switched off has no times");
	um_op_timer_fini(&w);
	gpu->api->cudaStreamDestroy(gpu, s[0]);
	gpu->api->cudaStreamDestroy(gpu, s[1]);
}

static const struct um_gpu_api *real;
static unsigned n_records;

static int count_record(struct um_gpu *g, um_event_handle event, um_stream stream)
{
	n_records++;
	return real->cudaEventRecord(g, event, stream);
}

/* Streams of which the end is not known: no event is recorded on them at the end of an iteration. */
static void test_ends(void)
{
	const struct um_gpu_api *sim = gpu->api;
	struct um_gpu_api api = *sim;
	struct um_op_timer w;
	um_stream s[2];
	uint64_t longer;

	sim->cudaStreamCreateWithFlags(gpu, &s[0], UM_STREAM_NON_BLOCKING);
	sim->cudaStreamCreateWithFlags(gpu, &s[1], UM_STREAM_NON_BLOCKING);
	real = sim;
	api.cudaEventRecord = count_record;
	gpu->api = &api;
	um_op_timer_init(&w, gpu);
	um_op_timer_begin(&w, 10);
	iteration(&w, 10, 10, s);
	n_records = 0;
	um_op_timer_end(&w, 1);
	is_int((int)n_records, 0, "at the end of an iteration no event is recorded on a stream that may be destroyed");
	is_int(w.state, UM_OP_TIMER_ENDS, "the last op of each stream has not ended");
	um_op_timer_stop_op(&w, s[0]);
	um_op_timer_stop_op(&w, s[1]);
	is_int((int)n_records, 2, "it ends with the stream's next op");
	um_sim_sync(gpu);
	is_int(um_op_timer_end(&w, 0), 0, "the iteration before is measured, whatever this one is");
	is_int(w.pass, 1, "that was a pass");
	iteration(&w, 10, 10, s);
	um_op_timer_end(&w, 1);
	um_op_timer_stop_op(&w, s[0]);
	um_op_timer_end(&w, 1);
	is_int(w.pass, 1, "without an op on one of the streams it is none");
	is_int(w.state, UM_OP_TIMER_RUNS, "the next iteration is measured");
	iteration(&w, 10, 10, s);
	um_op_timer_end(&w, 1);
	um_op_timer_stop_op(&w, s[0]);
	um_op_timer_stop_op(&w, s[1]);
	um_sim_sync(gpu);
	is_int(um_op_timer_end(&w, 1), 1, "two passes are enough");
	longer = w.ns.at[8] + w.ns.at[9];
	w.ns.at[8] = ns_of(8);
	w.ns.at[9] = ns_of(9);
	is_u64(wrong(&w), 0, "each op has its own time");
	ok(longer >= ns_of(8) + ns_of(9), "the last ones at least their own");
	um_op_timer_fini(&w);
	gpu->api = sim;
	sim->cudaStreamDestroy(gpu, s[0]);
	sim->cudaStreamDestroy(gpu, s[1]);
}

/* Handle 2 is another stream in each thread. */
static void test_threads(void)
{
	struct um_op_timer w;
	struct second t = {.w = &w};
	pthread_t thread;
	int done = 0, rounds = 0;

	um_op_timer_init(&w, gpu);
	sem_init(&t.go, 0, 0);
	sem_init(&t.done, 0, 0);
	if (pthread_create(&thread, NULL, second_thread, &t) || um_op_timer_begin(&w, 10))
		tap_bail("no second thread");
	while (!done && rounds++ < 10) {
		for (t.op = 0; t.op < 10; t.op += 2) {
			sem_post(&t.go);
			sem_wait(&t.done);
			op_here(&w, t.op + 1);
		}
		um_op_timer_end(&w, 1);
		um_sim_sync(gpu);
		done = um_op_timer_end(&w, 1);
	}
	t.op = UINT32_MAX;
	sem_post(&t.go);
	pthread_join(thread, NULL);
	is_int(rounds, UM_OP_TIMER_PASSES, "the ops of two threads with per-thread default streams are measured");
	is_u64(wrong(&w), 0, "each op of the two threads has its own time");
	um_op_timer_fini(&w);
	sem_destroy(&t.go);
	sem_destroy(&t.done);
}

static void test_trace(void)
{
	struct um_trace_sink t;
	struct um_trace *trace = NULL;
	struct um_diag diag;
	char path[] = "/tmp/um_op_timer.XXXXXX";
	struct um_tensor_id id = {1};
	struct um_use use = {.id = id, .bytes = 100, .touched = 100, .access = UM_UPDATE};
	struct um_event e = {.kind = UM_EV_ALLOC, .alloc = {.id = id, .bytes = 100, .name = "x"}};
	char name[] = "first";
	uint64_t ns[2] = {0, 0};
	int fd = mkstemp(path), n = 0;

	close(fd);
	is_int(um_trace_sink_open(&t, path, gpu, &diag), 0, "a trace is opened");
	is_int(um_trace_sink_feed(&t, &e, NULL), 0, "a tensor is born");
	e = (struct um_event){.kind = UM_EV_ITER};
	um_trace_sink_feed(&t, &e, NULL);
	for (int i = 0; i < 2; i++) {
		e = (struct um_event){.kind = UM_EV_OP, .op = {.name = name, .uses = &use, .n_uses = 1}};
		is_int(um_trace_sink_feed(&t, &e, NULL), 0, "an op is announced");
		kernel(NULL, 300000);
		um_trace_sink_launch(&t);
		kernel(NULL, 12000u + 1000u * (unsigned)i);
		memcpy(name, "other", sizeof name); /* borrowed for the call only */
	}
	is_int(um_trace_sink_close(&t), 0, "the trace is closed");
	is_int(um_trace_load(&trace, path, &diag), 0, "the recorded trace can be read");
	for (size_t i = 0; trace && i < um_trace_length(trace); i++) {
		const struct um_event *ev = um_trace_event(trace, i);

		if (ev->kind == UM_EV_OP) {
			ok(strcmp(ev->op.name, n ? "other" : "first") == 0, "an op has its own name");
			if (n < 2)
				ns[n++] = ev->op.cost.ns;
		}
	}
	is_u64(ns[0], 12000, "the first op's time is measured");
	is_u64(ns[1], 13000, "the last one's");
	um_trace_free(trace);
	unlink(path);
}

/* Feeds an op of this length on the stream, which is launched. */
static void feed_op(struct um_trace_sink *t, um_stream s, uint64_t ns)
{
	um_trace_sink_feed(t, &(struct um_event){.kind = UM_EV_OP, .op = {.name = "op"}}, s);
	um_trace_sink_launch(t);
	kernel(s, ns);
}

/* A stream that is used, destroyed, and named no more, and another one with events between its ops. */
static void test_trace_ends(void)
{
	static const enum um_event_kind order[] = {UM_EV_ITER, UM_EV_OP, UM_EV_ALLOC, UM_EV_FREE,
						   UM_EV_OP,   UM_EV_OP, UM_EV_OP};
	static const uint64_t times[] = {12000, 0, 14000, 0};
	const struct um_gpu_api *sim = gpu->api;
	struct um_gpu_api api = *sim;
	struct um_tensor_id id = {1};
	struct um_event born = {.kind = UM_EV_ALLOC, .alloc = {.id = id, .bytes = 100}};
	struct um_event dies = {.kind = UM_EV_FREE, .free = {.id = id}}, begin = {.kind = UM_EV_ITER};
	char path[] = "/tmp/um_trace_ends.XXXXXX", name[] = "kept";
	struct um_trace *trace = NULL;
	struct um_trace_sink t;
	struct um_diag diag;
	um_stream s[2];
	size_t n_op = 0, i = 0;

	close(mkstemp(path));
	for (int k = 0; k < 2; k++)
		sim->cudaStreamCreateWithFlags(gpu, &s[k], UM_STREAM_NON_BLOCKING);
	real = sim;
	api.cudaEventRecord = count_record;
	gpu->api = &api;
	if (um_trace_sink_open(&t, path, gpu, &diag))
		tap_bail("no trace");
	um_trace_sink_feed(&t, &begin, NULL);
	feed_op(&t, s[0], 12000);
	n_records = 0;
	born.alloc.name = name;
	um_trace_sink_feed(&t, &born, NULL);
	memcpy(name, "gone", sizeof name); /* borrowed for the call only */
	um_trace_sink_feed(&t, &dies, NULL);
	is_int((int)n_records, 0, "allocations and frees record no event on a stream that may be destroyed");
	feed_op(&t, s[0], 13000);
	feed_op(&t, s[1], 14000);
	feed_op(&t, s[1], 15000);
	n_records = 0;
	is_int(um_trace_sink_close(&t), 0, "the trace is closed");
	is_int((int)n_records, 0, "the end of the trace records none either");
	gpu->api = sim;
	is_int(um_trace_load(&trace, path, &diag), 0, "it can be read");
	for (; trace && i < um_trace_length(trace) && i < sizeof order / sizeof *order; i++) {
		const struct um_event *ev = um_trace_event(trace, i);

		ok(ev->kind == order[i], "event %zu has its place", i);
		if (ev->kind == UM_EV_OP)
			is_u64(ev->op.cost.ns, times[n_op++], "an op has a time if the next one is on its stream");
		if (ev->kind == UM_EV_ALLOC)
			is_str(ev->alloc.name, "kept", "an event that waited has its name");
	}
	is_u64(i, sizeof order / sizeof *order, "no event is missing");
	um_trace_free(trace);
	unlink(path);
	for (int k = 0; k < 2; k++)
		sim->cudaStreamDestroy(gpu, s[k]);
}

int main(void)
{
	struct um_sim_options o = {.profile = um_profile_find("v100")};

	if (um_sim_open(&gpu, &o))
		tap_bail("no simulated device");
	test_measure();
	test_ends();
	test_threads();
	test_trace();
	test_trace_ends();
	gpu->api->close(gpu);
	return tap_done();
}
