/* SPDX-License-Identifier: Apache-2.0
 *
 * hazard_library.h - the cases of hazards.cu that run the library: T5, T6, T8, T10
 *
 * A case runs a program on plain managed memory and with the library under half of what it needs, and compares bits.
 */
#ifndef HAZARD_LIBRARY_H
#define HAZARD_LIBRARY_H

#include "hazard_child.h"
#include "run.h"
#include "work_train.h"
#include "work_vector.h"

enum { VECTORS = 16, ITERATIONS = 8 };

static int warnings;

/* That a plan is slower than predicted is no sign of a hazard. */
static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	if (level > UMADV_LOG_WARN)
		return;
	note("  log: %s", line);
	warnings += strstr(line, "predicted") == NULL;
}

static struct umadv *library_open(uint64_t budget)
{
	struct umadv_options options;

	umadv_options_init(&options);
	options.budget = budget;
	options.log = on_log;
	options.log_level = UMADV_LOG_WARN;
	must(umadv_open(&child.adv, &options), "umadv_open");
	return child.adv;
}

static struct work vectors(long mib)
{
	return work_vector(VECTORS, (mib << 20) / VECTORS / (long)sizeof(float));
}

static long elements(const struct work *w)
{
	return (long)(w->tensors[0].bytes / sizeof(float));
}

static cudaStream_t stream_of(unsigned flags)
{
	cudaStream_t s;

	check_cuda(cudaStreamCreateWithFlags(&s, flags), "cudaStreamCreate");
	return s;
}

static void iteration(const struct runner *r)
{
	if (r->adv)
		must(CALL(umadv_iter(r->adv, NULL)), "umadv_iter");
}

static void op_on(const struct runner *r, stream_t s, const struct op &o)
{
	struct runner on = *r;

	on.stream = s;
	CALL_AS("umadv_op or a launch", run_op(&on, o));
}

/* --- T5: the end of a context with operations outstanding -------------------------------------------------------- */

static struct runner unsynchronised(struct work *w)
{
	struct runner r = {w, NULL, 0};

	ask(w->bytes(), w->bytes() / 2);
	r.adv = library_open(w->bytes() / 2);
	run_place(&r);
	r.stream = stream_of(cudaStreamNonBlocking);
	CALL_AS("umadv_op or a launch", run_all(&r, ITERATIONS));
	return r;
}

static int closing(long mib)
{
	static struct work w = vectors(mib);
	struct runner r = unsynchronised(&w);

	child.adv = NULL;
	CALL(umadv_close(r.adv));
	expect(!CALL(cudaDeviceSynchronize()), "the device is idle afterwards");
	return 0;
}

static int exiting(long mib)
{
	static struct work w = vectors(mib);

	unsynchronised(&w);
	return 0; /* and exit() */
}

/* --- T6, T8: programs --------------------------------------------------------------------------------------------- */

typedef void (*program_fn)(const struct runner *r);

static std::vector<std::string> library_once(struct work *w, struct umadv *adv, program_fn run)
{
	struct runner r = {w, adv, 0};
	std::vector<std::string> result;

	run_place(&r);
	run_list(&r, w->setup);
	run(&r);
	check_cuda(CALL(cudaDeviceSynchronize()), "cudaDeviceSynchronize");
	result = run_result(&r);
	CALL(run_free(&r));
	return result;
}

/* Checks what must hold of every program, and returns the library's counters. */
static struct umadv_stats library_both(struct work w, program_fn run)
{
	std::vector<std::string> want;
	struct umadv_stats s = {};
	struct umadv *adv;

	ask(w.bytes() * 5 / 4, w.bytes() / 2);
	want = library_once(&w, NULL, run);
	adv = library_open(w.bytes() / 2);
	expect(library_once(&w, adv, run) == want, "the same bits as without the library");
	s.struct_size = sizeof(s);
	must(umadv_stats_get(adv, &s), "umadv_stats_get");
	note("  %llu of %llu iterations hinted, %llu hints, %llu refused; ops waited %llu, late %llu, stuck %llu",
	     (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations,
	     (unsigned long long)s.hints_issued, (unsigned long long)s.hints_refused,
	     (unsigned long long)s.gates_waited, (unsigned long long)s.gates_late, (unsigned long long)s.stuck);
	expect(!s.stuck, "no wait was ended by its time limit");
	expect(warnings <= 0, "no warning");
	expect(!s.errors, "no error of the library's own calls");
	child.adv = NULL;
	CALL(umadv_close(adv));
	return s;
}

/* Memory that a first stream still reads is freed; the stream that writes it then was not seen before. */
static void reusing(const struct runner *r)
{
	stream_t first = stream_of(cudaStreamNonBlocking), second;
	long n = elements(r->w);
	struct work mine = *r->w;
	struct runner with = {&mine, r->adv, first};
	int x = mine.add("x", (uint64_t)n * sizeof(float), UMADV_ACT);
	int y = mine.add("y", (uint64_t)n * sizeof(float), UMADV_ACT);

	for (int t : {x, y}) {
		if (!r->adv)
			check_cuda(cudaMallocManaged(&mine.tensors[t].at, mine.tensors[t].bytes), "cudaMallocManaged");
		else if (t == x)
			must(umadv_alloc(r->adv, &mine.tensors[t].at, mine.tensors[t].bytes, "x", UMADV_ACT), "x");
	}
	check_cuda(cudaDeviceSynchronize(), "set-up");
	op_on(&with, first, {"fill", {{x, W}}, 0, [=](const struct work &w, stream_t s) {
				     each(s, n, (struct fill_body){w.at<float>(x), 1, 77});
			     }});
	for (int i = 0; i < 4; i++)
		for (int v = 0; v < VECTORS / 2; v++)
			op_on(&with, first, vector_op(v, x, n));
	if (r->adv) {
		must(CALL(umadv_free(r->adv, mine.tensors[x].at)), "umadv_free");
		must(CALL(umadv_alloc(r->adv, &mine.tensors[y].at, mine.tensors[y].bytes, "y", UMADV_ACT)), "y");
	}
	second = stream_of(cudaStreamNonBlocking);
	op_on(&with, second, {"fill", {{y, W}}, 0, [=](const struct work &w, stream_t s) {
				      each(s, n, (struct fill_body){w.at<float>(y), 1, 99});
			      }});
	op_on(&with, second, vector_op(VECTORS - 1, y, n));
	check_cuda(CALL(cudaDeviceSynchronize()), "cudaDeviceSynchronize");
	if (r->adv)
		must(CALL(umadv_free(r->adv, mine.tensors[y].at)), "umadv_free");
	else
		for (int t : {x, y})
			check_cuda(cudaFree(mine.tensors[t].at), "cudaFree");
}

static int reuse(long mib)
{
	library_both(vectors(mib), reusing);
	return 0;
}

struct half {
	const struct runner *r;
	int first;
	pthread_barrier_t *turn;
};

static void *half_main(void *arg)
{
	struct half *h = (struct half *)arg;
	long n = elements(h->r->w);

	(void)cudaSetDevice(0);
	for (int k = 0; k < ITERATIONS; k++) {
		pthread_barrier_wait(h->turn);
		if (!h->first)
			iteration(h->r);
		pthread_barrier_wait(h->turn);
		for (int v = 0; v < VECTORS / 2; v++)
			op_on(h->r, cudaStreamPerThread,
			      vector_op(h->first + v, h->first + (v + 1) % (VECTORS / 2), n));
	}
	check_cuda(CALL(cudaStreamSynchronize(cudaStreamPerThread)), "cudaStreamSynchronize");
	return NULL;
}

/* One handle, and a stream for each thread. */
static void thread_streams(const struct runner *r)
{
	pthread_barrier_t turn;
	struct half half[2] = {{r, 0, &turn}, {r, VECTORS / 2, &turn}};
	pthread_t other;

	check_cuda(cudaDeviceSynchronize(), "set-up");
	pthread_barrier_init(&turn, NULL, 2);
	if (pthread_create(&other, NULL, half_main, &half[1]))
		exit(CHILD_FAILED);
	half_main(&half[0]);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&turn);
}

static int per_thread(long mib)
{
	library_both(vectors(mib), thread_streams);
	return 0;
}

/* The default stream once, then blocking streams. */
static void default_stream(const struct runner *r)
{
	stream_t s[2] = {stream_of(cudaStreamDefault), stream_of(cudaStreamDefault)};
	long n = elements(r->w);

	for (int k = 0; k < ITERATIONS; k++) {
		iteration(r);
		for (int v = 0; v < VECTORS; v++) /* each half is a ring of its own, and a stream's */
			op_on(r, s[v * 2 / VECTORS],
			      vector_op(v, v / (VECTORS / 2) * (VECTORS / 2) + (v + 1) % (VECTORS / 2), n));
		op_on(r, 0, vector_op(0, VECTORS - 1, n));
	}
	for (stream_t stream : s)
		check_cuda(CALL(cudaStreamSynchronize(stream)), "cudaStreamSynchronize");
}

static int blocking(long mib)
{
	library_both(vectors(mib), default_stream);
	return 0;
}

static int forgets; /* the program says so before it destroys a stream */

/* Each iteration has a stream of its own, which is destroyed after it, with work outstanding where the library is not
 * told. */
static void destroyed_streams(const struct runner *r)
{
	cudaEvent_t end;
	long n = elements(r->w);

	check_cuda(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreate");
	check_cuda(cudaDeviceSynchronize(), "set-up");
	for (int k = 0; k < 3 * ITERATIONS; k++) {
		stream_t s = stream_of(cudaStreamNonBlocking);

		if (k)
			check_cuda(cudaStreamWaitEvent(s, end, 0), "cudaStreamWaitEvent");
		iteration(r);
		for (int v = 0; v < VECTORS; v++)
			op_on(r, s, vector_op(v, (v + 1) % VECTORS, n));
		check_cuda(cudaEventRecord(end, s), "cudaEventRecord");
		if (r->adv && forgets)
			must(CALL(umadv_forget_stream(r->adv, s)), "umadv_forget_stream");
		check_cuda(CALL(cudaStreamDestroy(s)), "cudaStreamDestroy");
	}
	check_cuda(CALL(cudaDeviceSynchronize()), "cudaDeviceSynchronize");
	check_cuda(cudaEventDestroy(end), "cudaEventDestroy");
}

static int destroyed(long mib)
{
	struct umadv_stats s;

	forgets = 1;
	s = library_both(vectors(mib), destroyed_streams);
	expect(s.hinted_iterations > ITERATIONS, "hints do not end with the first streams (%llu of %d iterations)",
	       (unsigned long long)s.hinted_iterations, 3 * ITERATIONS);
	return 0;
}

/* The library may say so once. It may record events on any stream while it follows a plan, so this one makes none. */
static int destroyed_untold(long mib)
{
	warnings = -1;
	setenv("UMADVISE_STRATEGY", "prefetch-on-use", 1);
	library_both(vectors(mib), destroyed_streams);
	return 0;
}

template <int K> struct nth_body {
	float *x;

	BODY void operator()(long i) const
	{
		x[i] = 0.5f * x[i] + (float)K;
	}
};

template <int K> static struct op nth_op(long n)
{
	return {"nth", {{K, RW}}, (double)n, [=](const struct work &w, stream_t s) {
			each(s, n, nth_body<K>{w.at<float>(K)});
		}};
}

/* Allocations, frees, and first launches of kernels between operations whose memory is on its way. */
static void busy_program(const struct runner *r)
{
	stream_t s = stream_of(cudaStreamNonBlocking);
	long n = elements(r->w);
	void *p;

	check_cuda(cudaDeviceSynchronize(), "set-up");
	for (int k = 0; k < ITERATIONS; k++) {
		iteration(r);
		for (int v = 0; v < VECTORS; v++) {
			op_on(r, s, vector_op(v, (v + 1) % VECTORS, n));
			if (v % 4 != 3)
				continue;
			check_cuda(CALL(cudaMalloc(&p, 1 << 20)), "cudaMalloc");
			check_cuda(CALL(cudaFree(p)), "cudaFree");
			check_cuda(CALL(cudaMallocHost(&p, 4096)), "cudaMallocHost");
			check_cuda(CALL(cudaFreeHost(p)), "cudaFreeHost");
		}
		if (k >= ITERATIONS / 2) /* when iterations are hinted */
			op_on(r, s, k % 3 == 0 ? nth_op<1>(n) : k % 3 == 1 ? nth_op<2>(n) : nth_op<3>(n));
	}
	check_cuda(CALL(cudaStreamSynchronize(s)), "cudaStreamSynchronize");
}

static int busy(long mib)
{
	struct umadv_stats s = library_both(vectors(mib), busy_program);

	expect(s.hinted_iterations, "iterations are hinted");
	return 0;
}

static void plain_program(const struct runner *r)
{
	struct runner on = *r;

	on.stream = stream_of(cudaStreamNonBlocking);
	check_cuda(cudaDeviceSynchronize(), "set-up");
	for (int k = 0; k < ITERATIONS; k++)
		CALL_AS("umadv_op or a launch", run_iteration(&on, k));
	check_cuda(CALL(cudaStreamSynchronize(on.stream)), "cudaStreamSynchronize");
}

static int correct(long mib)
{
	struct umadv_stats s = library_both(vectors(mib), plain_program);

	expect(s.hinted_iterations, "iterations are hinted");
	expect(s.prefetch_bytes && s.evict_bytes, "memory is prefetched and evicted");
	expect(s.gates_waited || s.gates_late, "ops waited for prefetches");
	return 0;
}

/* --- T10: what a call costs --------------------------------------------------------------------------------------- */

static int speed(long mib)
{
	for (int with = 0; with < 2; with++) {
		struct work w = vectors(mib);
		struct runner r = {&w, NULL, 0};
		double begin, launched;

		ask(w.bytes(), w.bytes() / 2);
		r.adv = with ? library_open(w.bytes() / 2) : NULL;
		run_place(&r);
		r.stream = stream_of(cudaStreamNonBlocking);
		run_all(&r, ITERATIONS / 2);
		check_cuda(CALL(cudaStreamSynchronize(r.stream)), "cudaStreamSynchronize");
		begin = now_ms();
		for (int k = 0; k < ITERATIONS; k++)
			CALL_AS("umadv_op or a launch", run_iteration(&r, k));
		launched = now_ms();
		check_cuda(CALL(cudaStreamSynchronize(r.stream)), "cudaStreamSynchronize");
		note("T10 %s: an iteration of %d operations on %ld MiB takes %.3f ms; its launches %.3f ms",
		     with ? "the library, half of it resident" : "managed memory alone, all of it resident",
		     (int)VECTORS, mib, (now_ms() - begin) / ITERATIONS, (launched - begin) / ITERATIONS);
		run_free(&r);
		child.adv = NULL;
		if (with)
			CALL(umadv_close(r.adv));
	}
	return 0;
}

static const struct library_case {
	const char *name, *title;
	int (*run)(long mib);
} library_cases[] = {
	{"T5", "umadv_close with operations outstanding", closing},
	{"T5", "exit() with operations outstanding", exiting},
	{"T6", "memory reused across the first second stream", reuse},
	{"T6", "two threads with a default stream each", per_thread},
	{"T6", "the default stream beside blocking streams", blocking},
	{"T6", "streams that are destroyed", destroyed},
	{"T6", "streams that are destroyed and were not forgotten", destroyed_untold},
	{"T8", "a loop", correct},
	{"T8", "frees and first launches in a loop", busy},
	{"T10", "time of calls", speed},
	{NULL, NULL, NULL},
};

#endif
