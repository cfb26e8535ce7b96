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

int main(void)
{
	struct um_sim_options o = {.profile = um_profile_find("v100")};

	if (um_sim_open(&gpu, &o))
		tap_bail("no simulated device");
	test_measure();
	test_threads();
	test_trace();
	gpu->api->close(gpu);
	return tap_done();
}
