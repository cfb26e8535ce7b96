/* SPDX-License-Identifier: Apache-2.0
 *
 * What can hang on a GPU, one program for each: a loop that exceeds its budget, on a device with hazards
 * (doc/simulator.md), which reports a deadlock with the calls and streams of its cycle. Built a second time with
 * REAL_THREADS: there the library's workers are threads.
 */
#include "runtime/context.h"

#include "flaky_gpu.h"
#include "tap.h"

#include <signal.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define TENSORS 16
#define TENSOR (4 * MIB)
#define BUDGET (TENSORS * TENSOR / 2)
#define ITERATIONS 8
#define PATIENCE_S 60
#ifdef REAL_THREADS
#define TIMEOUT_MS 5000
#define LONG_TIMEOUT ",timeout=40000" /* longer than a stream waits for the host: that is no deadlock */
#else
#define TIMEOUT_MS 0
#define LONG_TIMEOUT
#endif

static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static struct umadv *adv;
static void *tensor[TENSORS];
static um_stream stream;
static char reported[2000];
static const char *title;

static void on_hang(void *user, const char *text)
{
	(void)user;
	if (!reported[0])
		snprintf(reported, sizeof reported, "%s", text);
}

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	(void)line;
}

static void hangs(int signal)
{
	(void)signal;
	printf("Bail out! %s: no end after %d s; %s\n", title, PATIENCE_S, reported);
	fflush(stdout);
	_exit(99);
}

static void open_loop(const char *name, const char *hazards)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {
		.profile = v100, .capacity = BUDGET, .backed = 1, .timeout_ms = 3000, .hazards.report = on_hang};
	struct umadv_options o;

	title = name;
	alarm(PATIENCE_S);
	reported[0] = '\0';
	if (um_sim_hazards_parse(hazards, &so.hazards) || flaky_open(&gpu, &so))
		tap_bail("no simulated device");
	api = flaky.sim;
	umadv_options_init(&o);
	o.budget = BUDGET;
	o.log = on_log;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, &tensor[i], TENSOR, "t", UMADV_PARAM))
			tap_bail("no tensor");
	if (api->cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING))
		tap_bail("no stream");
}

static void op(um_stream s, int i, const char *kernel)
{
	struct um_sim_kernel k = {.name = kernel, .announced = 1};

	umadv_op(adv, s, "op", UMADV_USES(UMADV_UPDATE(tensor[i])));
	um_sim_run(gpu, s, &k);
}

/* A loop that does something else after every op. */
static void loop(void (*between)(int iteration, int i))
{
	for (int k = 0; k < ITERATIONS && !reported[0]; k++) {
		umadv_iter(adv, NULL);
		for (int i = 0; i < TENSORS && !reported[0]; i++) {
			op(stream, i, "k");
			if (between)
				between(k, i);
		}
	}
}

static void no_report(void)
{
	if (!ok(!reported[0], "%s: no deadlock", title))
		diag("%s", reported);
}

/* The loop has ended, and was hinted. */
static void close_loop(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	is_int(api->cudaStreamSynchronize(gpu, stream), UM_CUDA_OK, "%s: the stream's work ends", title);
	umadv_stats_get(adv, &s);
	ok(s.hinted_iterations >= ITERATIONS / 2, "%s: %llu of %llu iterations are hinted", title,
	   (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations);
	is_u64(s.stuck, 0, "%s: no wait was ended by its time limit", title);
	umadv_close(adv);
	no_report();
}

/* --- what blocks while memory is on its way ----------------------------------------------------------------------- */

static void shared_queue(void)
{
	open_loop("streams that share a hardware queue", "queues=1");
	loop(NULL);
	close_loop();
	open_loop("eight hardware queues", "queues=8");
	loop(NULL);
	close_loop();
}

static void launch_queue(void)
{
	open_loop("a full launch queue", "queues=8,depth=8,locks");
	loop(NULL);
	close_loop();
}

static void free_device(int k, int i)
{
	void *p;

	(void)k;
	if (i % 4 == 3 && !api->cudaMalloc(gpu, &p, 4096))
		api->cudaFree(gpu, p);
}

static void free_pinned(int k, int i)
{
	void *p;

	(void)k;
	if (i % 4 == 3 && !api->cudaHostAlloc(gpu, &p, 4096, 0))
		api->cudaFreeHost(gpu, p);
}

static void load_module(int k, int i)
{
	(void)k;
	if (i % 4 == 3)
		um_sim_module(gpu, "cuModuleLoadData");
}

static void launch_first(int k, int i)
{
	static const char *const names[ITERATIONS] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	if (i == TENSORS / 2)
		op(stream, 0, names[k]);
}

static void locks(void)
{
	open_loop("cudaFree in the loop", "locks");
	loop(free_device);
	close_loop();
	open_loop("cudaFreeHost in the loop", "locks");
	loop(free_pinned);
	close_loop();
	open_loop("a module's loading in the loop", "locks");
	loop(load_module);
	close_loop();
	open_loop("first launches in the loop", "locks,lazy");
	loop(launch_first);
	close_loop();
}

/* --- the end of a context ----------------------------------------------------------------------------------------- */

static void closing(void)
{
	open_loop("umadv_close with ops queued", "on,queues=1");
	loop(NULL);
	umadv_close(adv);
	no_report();
	open_loop("umadv_close with ops queued, eight hardware queues", "on");
	loop(NULL);
	umadv_close(adv);
	no_report();
}

/* --- streams of the program --------------------------------------------------------------------------------------- */

/* Each iteration has a stream of its own, now and then with another handle than the one before. */
static void destroyed(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	um_stream other;
	int refused = 0;

	open_loop("streams that are destroyed", "queues=32,reuse");
	for (int k = 0; k < 3 * ITERATIONS && !reported[0]; k++) {
		umadv_iter(adv, NULL);
		for (int i = 0; i < TENSORS; i++)
			op(stream, i, "k");
		refused |= umadv_forget_stream(adv, stream);
		api->cudaStreamDestroy(gpu, stream);
		api->cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING);
		if (k % 3 != 2)
			continue;
		api->cudaStreamCreateWithFlags(gpu, &other, UM_STREAM_NON_BLOCKING);
		api->cudaStreamDestroy(gpu, stream); /* had no ops */
		stream = other;
	}
	is_int(refused, 0, "%s: each is forgotten", title);
	umadv_stats_get(adv, &s);
	ok(s.hinted_iterations > 2 * ITERATIONS, "%s: %llu of %llu iterations are hinted", title,
	   (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations);
	umadv_close(adv);
	no_report();
}

/* A stream that waits for the host keeps no other one from going on. */
static void another_stream_waits(void)
{
	um_stream waits;
	uint32_t *word;

	open_loop("another stream waits for the host", "queues=32" LONG_TIMEOUT);
	api->cudaStreamCreateWithFlags(gpu, &waits, UM_STREAM_NON_BLOCKING);
	api->cudaHostAlloc(gpu, (void **)&word, sizeof *word, 0);
	*word = 0;
	for (int k = 0; k < ITERATIONS; k++) {
		umadv_iter(adv, NULL);
		for (int i = 1; i < TENSORS; i++)
			op(stream, i, "k");
		if (k == ITERATIONS - 1)
			um_sim_wait_value(gpu, waits, word, 1);
		op(waits, 0, "k");
	}
	is_int(api->cudaStreamSynchronize(gpu, stream), UM_CUDA_OK, "%s: the stream's work ends", title);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	is_int(api->cudaStreamSynchronize(gpu, waits), UM_CUDA_OK, "%s: so does the other one's after that", title);
	umadv_close(adv);
	no_report();
}

/* A stream that waits for the host from iteration `since` on, and has used none of the blocks that are evicted, holds
 * up no eviction: under a plan, as one begins, or, where iterations do not repeat, between ops that are predicted. */
static void unrelated_stream_waits(const char *name, int repeats, int since)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	um_stream waits;
	uint32_t *word;

	open_loop(name, "queues=32" LONG_TIMEOUT);
	api->cudaStreamCreateWithFlags(gpu, &waits, UM_STREAM_NON_BLOCKING);
	api->cudaHostAlloc(gpu, (void **)&word, sizeof *word, 0);
	*word = 0;
	umadv_iter(adv, NULL);
	umadv_op(adv, waits, "op", NULL, 0);
	for (int k = 0; k < ITERATIONS; k++) {
		umadv_iter(adv, NULL);
		if (k == since)
			um_sim_wait_value(gpu, waits, word, 1);
		for (int i = 0; i < TENSORS; i++)
			op(stream, repeats ? i : i * (2 * k + 3) % TENSORS, "k");
	}
	is_int(api->cudaStreamSynchronize(gpu, stream), UM_CUDA_OK, "%s: the other stream's work ends", title);
	umadv_stats_get(adv, &s);
	is_u64(s.stuck, 0, "%s: no wait was ended by its time limit", title);
	ok(s.hints_issued > 0, "%s: there are hints", title);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	is_int(api->cudaStreamSynchronize(gpu, waits), UM_CUDA_OK, "%s: the stream's own work ends after that", title);
	umadv_close(adv);
	no_report();
}

/* A kernel that never ends: calls that do not have to wait for it return all the same, an iteration that differs and
 * allocations of memory that was freed among them. */
static void stream_hangs(void)
{
	uint32_t *word;
	void *p;

	open_loop("a kernel that never ends", "queues=32" LONG_TIMEOUT);
	api->cudaHostAlloc(gpu, (void **)&word, sizeof *word, 0);
	*word = 0;
	for (int k = 0; k < ITERATIONS; k++) {
		umadv_iter(adv, NULL);
		if (k == ITERATIONS - 1)
			um_sim_wait_value(gpu, stream, word, 1);
		for (int i = 0; i < TENSORS; i++) {
			op(stream, k == ITERATIONS - 1 ? TENSORS - 1 - i : i, "k");
			if (i % 4 == 3)
				umadv_dead(adv, tensor[k == ITERATIONS - 1 ? TENSORS - 1 - i : i]);
		}
	}
	is_int(umadv_free(adv, tensor[3]), 0, "%s: umadv_free returns", title);
	is_int(umadv_alloc(adv, &p, TENSOR, "t", UMADV_PARAM), 0, "%s: umadv_alloc returns", title);
	ok(um_sim_stream_query(gpu, stream) == UM_CUDA_NOT_READY, "%s: it has not ended", title);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	is_int(api->cudaStreamSynchronize(gpu, stream), UM_CUDA_OK, "%s: it ends in the end", title);
	umadv_close(adv);
	no_report();
}

int main(void)
{
	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	signal(SIGALRM, hangs);
	shared_queue();
	launch_queue();
	locks();
	closing();
	destroyed();
	another_stream_waits();
	unrelated_stream_waits("an unrelated stream waits for the host", 1, ITERATIONS / 2);
	unrelated_stream_waits("an unrelated stream waits as a plan begins", 1, 0);
	unrelated_stream_waits("an unrelated stream waits while nothing repeats", 0, ITERATIONS / 2);
	stream_hangs();
	return tap_done();
}
