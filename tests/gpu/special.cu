/* SPDX-License-Identifier: Apache-2.0
 *
 * special.cu - what is not a plain loop: discards, an iteration that differs, streams, threads, capture, errors
 *
 *     special [--size MIB]
 *
 * Every scenario runs twice, on plain managed memory and with the library under half of what it needs; the
 * numbers must be the same to the last bit. What a scenario needs of the library it says through `adv`, which is NULL
 * in the plain run.
 */
#include "ask.h"
#include "run.h"
#include "standin_seen.h"
#include "tap.h"
#include "work_vector.h"

#include <pthread.h>

enum { VECTORS = 16, ITERATIONS = 8 };

typedef void (*scenario_fn)(const struct runner *r);

/* --- tensors that die -------------------------------------------------------------------------------------------- */

/* y1 += f(scratch), where scratch is born, written, read and freed in every iteration, and a second one is kept but
 * declared dead after its last use. */
static void dying(const struct runner *r)
{
	long n = (long)(r->w->tensors[0].bytes / sizeof(float));
	struct work mine = *r->w;
	struct runner with = {&mine, r->adv, r->stream};
	int kept = mine.add("kept", n * sizeof(float), UMADV_ACT);
	int brief = mine.add("brief", n * sizeof(float), UMADV_ACT);
	const char *const names[2] = {"kept", "brief"};
	void **place[2] = {&mine.tensors[kept].at, &mine.tensors[brief].at};

	for (int t = 0; t < 2; t++)
		if (r->adv)
			must(umadv_alloc(r->adv, place[t], n * sizeof(float), names[t], UMADV_ACT), "alloc");
		else
			check_cuda(cudaMallocManaged(place[t], n * sizeof(float)), "alloc");
	for (int k = 0; k < ITERATIONS; k++) {
		if (r->adv)
			must(umadv_iter(r->adv, NULL), "umadv_iter");
		if (r->adv && k)
			must(umadv_alloc(r->adv, place[1], n * sizeof(float), "brief", UMADV_ACT), "alloc");
		for (int v = 0; v + 1 < VECTORS; v++) {
			const int scratch = v % 2 ? kept : brief;
			struct op fill = {"write", {{scratch, W}}, 0, [=](const struct work &w, stream_t s) {
				each(s, n, (struct fill_body){w.at<float>(scratch), 1, (unsigned)(v * 31 + k)});
			}};

			if (v < VECTORS / 2) {
				run_op(&with, fill);
				run_op(&with, vector_op(v, scratch, n));
			}
			run_op(&with, vector_op(v, v + 1, n));
			if (r->adv && v == VECTORS / 2) {
				must(umadv_dead(r->adv, mine.tensors[kept].at), "umadv_dead");
				must(umadv_free(r->adv, mine.tensors[brief].at), "umadv_free");
			}
		}
	}
	check_cuda(cudaDeviceSynchronize(), "dying");
	if (r->adv)
		must(umadv_free(r->adv, mine.tensors[kept].at), "umadv_free");
	else
		for (int t = 0; t < 2; t++)
			check_cuda(cudaFree(*place[t]), "cudaFree");
}

/* --- an iteration that differs ----------------------------------------------------------------------------------- */

static void diverging(const struct runner *r)
{
	long n = (long)(r->w->tensors[0].bytes / sizeof(float));

	for (int k = 0; k < 2 * ITERATIONS; k++) {
		const std::vector<struct op> &ops = r->w->step[0];

		if (r->adv)
			must(umadv_iter(r->adv, NULL), "umadv_iter");
		for (size_t i = 0; i < ops.size(); i++)
			if (k == 5) /* the other way round */
				run_op(r, ops[ops.size() - 1 - i]);
			else if (k == 9 && i == ops.size() / 2) /* one that was never seen */
				run_op(r, vector_op(0, VECTORS - 1, n));
			else if (k == 11 && i > ops.size() / 3) /* cut short */
				break;
			else
				run_op(r, ops[i]);
	}
}

/* --- two streams ------------------------------------------------------------------------------------------------- */

/* Two rings, one a stream, that meet at the end of every iteration: vector 0 adds what the other ring's first has. */
static void two_streams(const struct runner *r)
{
	long n = (long)(r->w->tensors[0].bytes / sizeof(float));
	cudaEvent_t half[2];
	struct runner on[2] = {*r, *r};

	for (int s = 0; s < 2; s++) {
		check_cuda(cudaStreamCreateWithFlags(&on[s].stream, cudaStreamNonBlocking), "stream");
		check_cuda(cudaEventCreateWithFlags(&half[s], cudaEventDisableTiming), "event");
	}
	check_cuda(cudaDeviceSynchronize(), "setup");
	for (int k = 0; k < ITERATIONS; k++) {
		if (r->adv)
			must(umadv_iter(r->adv, NULL), "umadv_iter");
		for (int v = 0; v < VECTORS / 2; v++)
			for (int s = 0; s < 2; s++) {
				int first = s * VECTORS / 2;

				run_op(&on[s], vector_op(first + v, first + (v + 1) % (VECTORS / 2), n));
			}
		check_cuda(cudaEventRecord(half[1], on[1].stream), "record");
		check_cuda(cudaStreamWaitEvent(on[0].stream, half[1], 0), "wait");
		run_op(&on[0], vector_op(0, VECTORS / 2, n));
		check_cuda(cudaEventRecord(half[0], on[0].stream), "record");
		check_cuda(cudaStreamWaitEvent(on[1].stream, half[0], 0), "wait");
	}
	for (int s = 0; s < 2; s++) {
		check_cuda(cudaStreamSynchronize(on[s].stream), "two streams");
		check_cuda(cudaStreamDestroy(on[s].stream), "stream");
		check_cuda(cudaEventDestroy(half[s]), "event");
	}
}

/* --- two host threads -------------------------------------------------------------------------------------------- */

struct half {
	struct runner r;
	int first;
	pthread_barrier_t *turn;
};

static void *half_main(void *arg)
{
	struct half *h = (struct half *)arg;
	long n = (long)(h->r.w->tensors[0].bytes / sizeof(float));

	for (int k = 0; k < ITERATIONS; k++) {
		pthread_barrier_wait(h->turn);
		if (!h->first && h->r.adv)
			must(umadv_iter(h->r.adv, NULL), "umadv_iter");
		pthread_barrier_wait(h->turn);
		for (int v = 0; v < VECTORS / 2; v++)
			run_op(&h->r, vector_op(h->first + v, h->first + (v + 1) % (VECTORS / 2), n));
	}
	check_cuda(cudaStreamSynchronize(h->r.stream), "two threads");
	return NULL;
}

/* One context, a thread and a stream for each half; who comes first in an iteration is left to chance. */
static void two_threads(const struct runner *r)
{
	pthread_barrier_t turn;
	struct half half[2];
	pthread_t other;

	check_cuda(cudaDeviceSynchronize(), "setup");
	pthread_barrier_init(&turn, NULL, 2);
	for (int s = 0; s < 2; s++) {
		half[s] = {*r, s * VECTORS / 2, &turn};
		check_cuda(cudaStreamCreateWithFlags(&half[s].r.stream, cudaStreamNonBlocking), "stream");
	}
	if (pthread_create(&other, NULL, half_main, &half[1]))
		exit(1);
	half_main(&half[0]);
	pthread_join(other, NULL);
	for (int s = 0; s < 2; s++)
		check_cuda(cudaStreamDestroy(half[s].r.stream), "stream");
	pthread_barrier_destroy(&turn);
}

/* --- capture ----------------------------------------------------------------------------------------------------- */

static size_t captured_nodes; /* in all graphs of the last run */

/* In the middle of an iteration the program captures some of its operations and launches the graph in their place. */
static void capturing(const struct runner *r)
{
	struct runner on = *r;

	captured_nodes = 0;
	check_cuda(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking), "stream");
	check_cuda(cudaDeviceSynchronize(), "setup");
	for (int k = 0; k < ITERATIONS; k++) {
		const std::vector<struct op> &ops = r->w->step[0];
		cudaGraphExec_t exec;
		cudaGraph_t graph;
		size_t nodes = 0;

		if (r->adv)
			must(umadv_iter(r->adv, NULL), "umadv_iter");
		for (size_t i = 0; i < ops.size() / 2; i++)
			run_op(&on, ops[i]);
		check_cuda(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal), "begin capture");
		for (size_t i = ops.size() / 2; i < ops.size() / 2 + 4; i++)
			run_op(&on, ops[i]);
		check_cuda(cudaStreamEndCapture(on.stream, &graph), "end capture");
		check_cuda(cudaGraphGetNodes(graph, NULL, &nodes), "nodes");
		captured_nodes += nodes;
		check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
		check_cuda(cudaGraphLaunch(exec, on.stream), "launch");
		for (size_t i = ops.size() / 2 + 4; i < ops.size(); i++)
			run_op(&on, ops[i]);
		check_cuda(cudaStreamSynchronize(on.stream), "capture");
		check_cuda(cudaGraphExecDestroy(exec), "graph");
		check_cuda(cudaGraphDestroy(graph), "graph");
	}
	check_cuda(cudaStreamDestroy(on.stream), "stream");
}

/* --- errors ------------------------------------------------------------------------------------------------------ */

static cudaError_t pending; /* what the program's last error was at the end */

/* A tensor that is no managed memory: every hint about it is refused. And an error of the program's own that it has not
 * looked at yet: it must still be there at the end. */
static void bad_hints(const struct runner *r)
{
	long n = (long)(r->w->tensors[0].bytes / sizeof(float));
	struct work mine = *r->w;
	struct runner with = {&mine, r->adv, r->stream};
	int bad = mine.add("not managed", n * sizeof(float), UMADV_OTHER);
	void *none;

	check_cuda(cudaMalloc(&mine.tensors[bad].at, n * sizeof(float)), "cudaMalloc");
	if (r->adv)
		must(umadv_adopt(r->adv, mine.tensors[bad].at, n * sizeof(float), "not managed", UMADV_OTHER), "adopt");
	each(r->stream, n, (struct fill_body){mine.at<float>(bad), 1, 3});
	(void)cudaGetLastError();
	(void)!cudaMalloc(&none, (size_t)1 << 60);
	for (int k = 0; k < ITERATIONS; k++) {
		if (r->adv)
			must(umadv_iter(r->adv, NULL), "umadv_iter");
		for (size_t i = 0; i < mine.step[0].size(); i++) {
			struct op add = vector_op((int)i, i % 5 ? (int)(i + 1) % VECTORS : bad, n);

			run_say(&with, add, 0);
			/* Not add.launch(): that would look at the last error. */
			dual_kernel<<<256, 256, 0, r->stream>>>(n, (struct vector_add){
				mine.at<float>((int)i), mine.at<float>(i % 5 ? (int)(i + 1) % VECTORS : bad)});
		}
	}
	pending = cudaGetLastError();
	check_cuda(cudaDeviceSynchronize(), "bad hints");
	if (r->adv)
		must(umadv_disown(r->adv, mine.tensors[bad].at, n * sizeof(float)), "disown");
	check_cuda(cudaFree(mine.tensors[bad].at), "cudaFree");
}

/* --- both ways --------------------------------------------------------------------------------------------------- */

static std::vector<std::string> once(struct work *w, struct umadv *adv, scenario_fn run)
{
	struct runner r = {w, adv, 0};
	std::vector<std::string> result;

	run_place(&r);
	run_list(&r, w->setup);
	run(&r);
	check_cuda(cudaDeviceSynchronize(), "synchronize");
	result = run_result(&r);
	run_free(&r);
	return result;
}

static struct umadv_stats both(const char *name, long mib, scenario_fn run)
{
	struct work w = work_vector(VECTORS, (mib << 20) / VECTORS / (long)sizeof(float));
	uint64_t extra = 2 * w.tensors[0].bytes, budget = w.bytes() / 2;
	std::vector<std::string> want;
	struct umadv_stats s = {};
	struct umadv *adv;

	ask(w.bytes() + extra, budget);
	want = once(&w, NULL, run);
	adv = run_open(UMADV_DEVICE_AUTO, budget, "lookahead", NULL);
	ok(once(&w, adv, run) == want, "%s: the same bits", name);
	s.struct_size = sizeof(s);
	must(umadv_stats_get(adv, &s), "umadv_stats_get");
	diag("%s: %llu of %llu iterations hinted, %llu divergences, %llu hints, %llu refused, discarded %llu MiB", name,
	     (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations,
	     (unsigned long long)s.divergences, (unsigned long long)s.hints_issued,
	     (unsigned long long)s.hints_refused, (unsigned long long)(s.discard_bytes >> 20));
	is_int(cudaPeekAtLastError(), cudaSuccess, "%s: no error was left behind", name);
	umadv_close(adv);
	return s;
}

int main(int argc, char **argv)
{
	long mib = argc > 2 && !strcmp(argv[1], "--size") && atol(argv[2]) > 0 ? atol(argv[2]) : 64;
	struct umadv_caps caps = {};
	struct umadv_stats s;
	struct umadv *adv;
	size_t nodes;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* the scenarios have few iterations */
	ask(mib << 20, mib << 19);
	adv = run_open(UMADV_DEVICE_AUTO, mib << 19, "lookahead", NULL);
	caps.struct_size = sizeof(caps);
	must(umadv_caps_get(adv, &caps), "umadv_caps_get");
	umadv_close(adv);
	diag("%s: %s%s", caps.device, caps.managed ? "managed" : "not managed", caps.discard ? ", discard" : "");

	s = both("tensors that die", mib, dying);
	ok(!caps.discard || !caps.managed || s.discard_bytes, "tensors that die: something was discarded");
	s = both("an iteration that differs", mib, diverging);
	/* On a GPU it depends on the time that hints take whether a plan is followed when the next one differs. */
	ok(!caps.managed || s.divergences >= (standin_table() ? 3 : 1), "an iteration that differs: seen");
	ok(!caps.managed || s.hinted_iterations > 4, "an iteration that differs: hints came back");
	s = both("two streams", mib, two_streams);
	ok(!caps.managed || s.hinted_iterations, "two streams: hints were given");
	both("two threads", mib, two_threads);

	both("capture", mib, capturing);
	nodes = captured_nodes;
	is_u64(nodes, 4 * ITERATIONS, "capture: nothing but the program's own kernels is in the graphs");
	s = both("hints that are refused", mib, bad_hints);
	is_int(pending, cudaErrorMemoryAllocation, "hints that are refused: the program's own error is still there");
	return tap_done();
}
