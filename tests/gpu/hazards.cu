/* SPDX-License-Identifier: Apache-2.0
 *
 * hazards.cu - what can hang on a GPU, each case in a process of its own with a time limit
 *
 *     hazards [--only T1,T5,...] [--patience MS] [--limit S] [--size MIB]
 *
 * T1 to T4 find facts about the driver: a gate, which the host opens in the end, keeps a stream from going on, and what
 * goes on beside it is printed. T5 to T8 run the library. T11, which runs only if it is named, passes handles of
 * destroyed streams to the driver. A case that does not end prints its calls, stacks and the
 * library's counters (hazard_child.h), and the program stops there.
 */
#include "ask.h"
#include "hazard_child.h"
#include "hazard_library.h"
#include "tap.h"

#include <atomic>
#include <dlfcn.h>
#include <functional>

enum { OURS = 16, DISCARDS = 4, MIB = 1 << 20, LAUNCHES = 5000 };

static long patience_ms = 300; /* after that a call counts as waiting */
static long size_mib = 32;

/* --- a device with a gate ----------------------------------------------------------------------------------------- */

static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static uint32_t *words; /* pinned; the first opens the gate */
static cudaStream_t gated;
static char *managed;
typedef int (*value_fn)(um_stream stream, uint64_t at, uint32_t value, unsigned flags);
static value_fn write_value, wait_value; /* the driver's */

static cudaStream_t new_stream(void)
{
	cudaStream_t s;

	check_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
	return s;
}

/* 0, or the status with which the case ends. */
static int device_open(uint64_t bytes)
{
	struct um_device_options options = {UM_VIA_ANY, -1, 1, 0};
	char why[200] = "";
	void *driver, *p;

	ask(bytes, bytes / 2);
	if (um_device_open(&gpu, &options, why, sizeof(why)))
		return CHILD_SKIPPED;
	api = gpu->api;
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	write_value = driver ? (value_fn)dlsym(driver, "cuStreamWriteValue32_v2") : NULL;
	wait_value = driver ? (value_fn)dlsym(driver, "cuStreamWaitValue32_v2") : NULL;
	if (!write_value || !wait_value || !gpu->caps.concurrent_managed) {
		note("  no stream memory operations, or no concurrent managed access");
		return CHILD_SKIPPED;
	}
	if (api->cudaHostAlloc(gpu, &p, 4096, 0))
		return CHILD_FAILED;
	words = (uint32_t *)p;
	memset(words, 0, 4096);
	check_cuda(cudaMallocManaged((void **)&managed, bytes), "cudaMallocManaged");
	memset(managed, 1, bytes);
	gated = new_stream();
	return 0;
}

static void gate_close(void)
{
	words[0] = 0;
	expect(!CALL(wait_value(gated, (uintptr_t)&words[0], 1, 0)), "the gate is closed");
}

static void gate_open(void)
{
	__atomic_store_n(&words[0], 1, __ATOMIC_RELEASE);
}

/* Waits until `done` or the patience is over. */
static int await(const std::function<bool()> &done)
{
	double end = now_ms() + (double)patience_ms;

	while (!done() && now_ms() < end)
		nap_ms(1);
	return done();
}

__global__ void nothing_kernel(uint32_t *at)
{
	if (at)
		*at = 1;
}

/* Not launched before its case. */
__global__ void fresh_kernel(uint32_t *at)
{
	if (at)
		*at = 2;
}

static const char nop_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry nop() { ret; }\n";

static int prefetch(int block, struct um_location to, cudaStream_t s)
{
	return api->cudaMemPrefetchAsync(gpu, managed + (uint64_t)block * 2 * MIB, 2 * MIB, to, 0, s);
}

static int discard(int block, cudaStream_t s)
{
	void *at = managed + (uint64_t)block * 2 * MIB;
	size_t bytes = 2 * MIB;

	if (!api->cudaMemDiscardBatchAsync)
		return 0;
	return api->cudaMemDiscardBatchAsync(gpu, &at, &bytes, 1, 0, s);
}

/* --- T1: hardware queues ------------------------------------------------------------------------------------------ */

static int queue_map(long connections)
{
	int least = 0, most = 0, writes = 0, events = 0, discards = 0, urgent = 0, err;
	cudaStream_t ours[OURS + 1];
	cudaEvent_t event[OURS + DISCARDS];

	if (connections)
		setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(connections).c_str(), 1);
	err = device_open(8 * MIB);
	if (err)
		return err;
	check_cuda(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
	for (int i = 0; i < OURS; i++)
		ours[i] = new_stream();
	check_cuda(cudaStreamCreateWithPriority(&ours[OURS], cudaStreamNonBlocking, most), "a stream of high priority");
	for (int i = 0; i < OURS + DISCARDS; i++)
		check_cuda(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming), "cudaEventCreate");
	gate_close();
	for (int i = 0; i <= OURS; i++)
		expect(!CALL(write_value(ours[i], (uintptr_t)&words[1 + i], 1, 0)), "a write is accepted");
	for (int i = 0; i < OURS; i++)
		expect(!CALL(cudaEventRecord(event[i], ours[i])), "a record is accepted");
	for (int i = 0; i < DISCARDS; i++) {
		expect(!CALL(discard(i, ours[i])), "a discard is accepted");
		expect(!CALL(cudaEventRecord(event[OURS + i], ours[i])), "a record is accepted");
	}
	await([&] {
		writes = events = discards = 0;
		for (int i = 0; i < OURS; i++)
			writes += __atomic_load_n(&words[1 + i], __ATOMIC_ACQUIRE) == 1;
		for (int i = 0; i < OURS; i++)
			events += cudaEventQuery(event[i]) == cudaSuccess;
		for (int i = 0; i < DISCARDS; i++)
			discards += cudaEventQuery(event[OURS + i]) == cudaSuccess;
		urgent = __atomic_load_n(&words[1 + OURS], __ATOMIC_ACQUIRE) == 1;
		return writes + events == 2 * OURS && discards == DISCARDS && urgent;
	});
	note("T1 connections %ld: beside a gate %d of %d writes, %d of %d events, %d of %d discards go on; "
	     "high priority (%d) %s", connections, writes, OURS, events, OURS, discards, DISCARDS, most,
	     urgent ? "goes on" : "waits");
	gate_open();
	expect(!CALL(cudaDeviceSynchronize()), "everything ends after the gate was opened");
	for (int i = 0; i <= OURS; i++)
		expect(words[1 + i] == 1, "write %d was done in the end", i);
	return 0;
}

/* --- T2, T3: which calls wait for which --------------------------------------------------------------------------- */

struct attempt {
	const char *name;
	std::function<int()> call;
	std::atomic<int> done;
	int err;
	pthread_t thread;
};

static void *attempt_main(void *arg)
{
	struct attempt *a = (struct attempt *)arg;

	(void)cudaSetDevice(0);
	a->err = CALL_AS(a->name, a->call());
	a->done = 1;
	return NULL;
}

static void attempt_start(struct attempt *a)
{
	if (pthread_create(&a->thread, NULL, attempt_main, a))
		exit(CHILD_FAILED);
}

static void attempt_end(struct attempt *a)
{
	CALL_AS(a->name, pthread_join(a->thread, NULL));
	expect(!a->err, "%s: error %d", a->name, a->err);
}

/* What the library's workers do, each on a thread and a stream of its own. */
struct workers {
	struct attempt a[6];
	cudaStream_t stream[6];
	cudaEvent_t event;
};

static void workers_make(struct workers *w)
{
	static const char *const names[6] = {"prefetch", "prefetch to host", "discard",
					     "event record", "value write", "launch"};
	cudaStream_t *s = w->stream;

	check_cuda(cudaEventCreateWithFlags(&w->event, cudaEventDisableTiming), "cudaEventCreate");
	for (int i = 0; i < 6; i++) {
		s[i] = new_stream();
		w->a[i].name = names[i];
		w->a[i].done = 0;
	}
	w->a[0].call = [s] { return prefetch(0, um_on_device(0), s[0]); };
	w->a[1].call = [s] { return prefetch(1, um_on_host(), s[1]); };
	w->a[2].call = [s] { return discard(2, s[2]); };
	w->a[3].call = [w] { return (int)cudaEventRecord(w->event, w->stream[3]); };
	w->a[4].call = [s] { return write_value(s[4], (uintptr_t)&words[1], 1, 0); };
	w->a[5].call = [s] {
		nothing_kernel<<<1, 1, 0, s[5]>>>(NULL);
		return (int)cudaGetLastError();
	};
	nothing_kernel<<<1, 1, 0, s[5]>>>(NULL); /* is loaded */
	check_cuda(cudaDeviceSynchronize(), "set-up");
}

/* Starts them, and says of each whether it returns while the gate is closed. */
static void workers_try(struct workers *w, const char *title)
{
	std::string text;

	for (struct attempt &a : w->a)
		attempt_start(&a);
	await([w] {
		int n = 0;

		for (struct attempt &a : w->a)
			n += a.done;
		return n == 6;
	});
	for (struct attempt &a : w->a)
		text += std::string(text.empty() ? "" : ", ") + a.name + (a.done ? " returns" : " waits");
	note("%s: %s", title, text.c_str());
}

static void workers_end(struct workers *w)
{
	for (struct attempt &a : w->a)
		attempt_end(&a);
	expect(!CALL(cudaDeviceSynchronize()), "everything ends after the gate was opened");
	expect(words[1] == 1, "the value was written in the end");
}

static void *to_free, *to_free_host, *got;

static const struct {
	const char *name;
	int (*call)(void);
} locks[] = {
	{"nothing", [] { return 0; }},
	{"cudaFree", [] { return (int)cudaFree(to_free); }},
	{"cudaFreeHost", [] { return (int)cudaFreeHost(to_free_host); }},
	{"cudaMalloc", [] { return (int)cudaMalloc(&got, MIB); }},
	{"cudaMallocManaged", [] { return (int)cudaMallocManaged(&got, MIB); }},
	{"cudaDeviceSynchronize", [] { return (int)cudaDeviceSynchronize(); }},
	{"first launch of a kernel", [] {
		static cudaStream_t s = new_stream();

		fresh_kernel<<<1, 1, 0, s>>>(NULL);
		return (int)cudaGetLastError();
	}},
	{"module load", [] { return um_device_module_load(gpu, nop_ptx, &got); }},
};

static int lock_matrix(long which)
{
	struct workers w;
	struct attempt other = {};
	int err = device_open(8 * MIB);

	if (err)
		return err;
	check_cuda(cudaMalloc(&to_free, MIB), "cudaMalloc");
	check_cuda(cudaMallocHost(&to_free_host, MIB), "cudaMallocHost");
	workers_make(&w);
	other.name = locks[which].name;
	other.call = locks[which].call;
	gate_close();
	attempt_start(&other);
	await([&] { return other.done == 1; });
	workers_try(&w, (std::string("T2 ") + other.name + (other.done ? " returns" : " waits") +
			 " beside a gate; meanwhile").c_str());
	gate_open();
	attempt_end(&other);
	workers_end(&w);
	return 0;
}

static std::atomic<int> launched;

static int launch_many(void)
{
	for (int err = 0; launched < LAUNCHES; launched++) {
		nothing_kernel<<<1, 1, 0, gated>>>(NULL);
		err = (int)cudaGetLastError();
		if (err)
			return err;
	}
	return 0;
}

static int full_queue(long unused)
{
	struct attempt app = {};
	struct workers w;
	int err = device_open(8 * MIB), seen = -1;

	(void)unused;
	if (err)
		return err;
	workers_make(&w);
	app.name = "launch";
	app.call = launch_many;
	gate_close();
	attempt_start(&app);
	while (!app.done && launched != seen) { /* until nothing moves */
		seen = launched;
		nap_ms(patience_ms);
	}
	note("T3 launches behind a gate: %d of %d return", (int)launched, (int)LAUNCHES);
	workers_try(&w, "T3 with a full launch queue");
	gate_open();
	attempt_end(&app);
	workers_end(&w);
	return 0;
}

/* --- T4: prefetches to the host ---------------------------------------------------------------------------------- */

struct caller {
	pthread_t thread;
	int first, n;
	cudaStream_t stream;
};

static void *host_calls(void *arg)
{
	struct caller *c = (struct caller *)arg;

	(void)cudaSetDevice(0);
	for (int i = c->first; i < c->first + c->n; i++)
		expect(!CALL_AS("prefetch to host", prefetch(i, um_on_host(), c->stream)), "a prefetch to the host");
	expect(!CALL(cudaStreamSynchronize(c->stream)), "its stream");
	return NULL;
}

static void all_to_device(int blocks)
{
	for (int i = 0; i < blocks; i++)
		expect(!CALL(prefetch(i, um_on_device(0), gated)), "a prefetch");
	expect(!CALL(cudaStreamSynchronize(gated)), "its stream");
}

static double slowest_launch_us(const std::function<bool()> &done, int *n)
{
	cudaStream_t s = new_stream();
	double most = 0;

	for (*n = 0; !done(); ++*n) {
		double begin = now_ms();

		nothing_kernel<<<1, 1, 0, s>>>(NULL);
		most = std::max(most, (now_ms() - begin) * 1e3);
	}
	return most;
}

static int host_prefetch(long unused)
{
	int blocks = 16, err = device_open((uint64_t)blocks * 2 * MIB), n = 0;
	struct attempt one = {};
	double begin, most;

	(void)unused;
	if (err)
		return err;
	one.name = "prefetch to host";
	one.call = [] { return prefetch(0, um_on_host(), gated); };
	nothing_kernel<<<1, 1>>>(NULL);
	for (int busy = 0; busy < 2; busy++) {
		all_to_device(blocks);
		if (busy)
			gate_close();
		one.done = 0;
		attempt_start(&one);
		await([&] { return one.done == 1; });
		note("T4 prefetch to the host on %s stream: %s, %s", busy ? "a busy" : "an idle",
		     one.done ? "returns" : "waits", cudaStreamQuery(gated) ? "not done then" : "done then");
		gate_open();
		attempt_end(&one);
		expect(!CALL(cudaStreamSynchronize(gated)), "its stream");
	}
	for (int callers = 1; callers <= 8; callers *= 2) {
		std::vector<struct caller> c((size_t)callers);
		std::atomic<int> ended(0);

		all_to_device(blocks);
		begin = now_ms();
		for (int i = 0; i < callers; i++) {
			c[i] = {0, i * blocks / callers, blocks / callers, new_stream()};
			if (pthread_create(&c[i].thread, NULL, host_calls, &c[i]))
				return CHILD_FAILED;
		}
		most = slowest_launch_us([&] {
			if (ended < callers && !pthread_tryjoin_np(c[(size_t)ended].thread, NULL))
				ended++;
			return ended == callers;
		}, &n);
		note("T4 %d callers: %.0f MiB/s to the host; slowest of %d launches meanwhile %.0f us", callers,
		     blocks * 2 / ((now_ms() - begin) / 1e3), n, most);
	}
	return 0;
}

/* --- T7: discards ------------------------------------------------------------------------------------------------- */

static void expect_bytes(const char *at, int value, const char *what)
{
	int wrong = 0;

	for (int i = 0; i < 2 * MIB; i += 4096)
		wrong += at[i] != value;
	expect(!wrong, "%s: %d of 512 pages are wrong", what, wrong);
}

static int discard_order(long unused)
{
	int err = device_open(8 * MIB);
	cudaStream_t other;
	cudaEvent_t event;

	(void)unused;
	if (err)
		return err;
	if (!gpu->caps.discard) {
		note("  no discard before CUDA 13");
		return CHILD_SKIPPED;
	}
	other = new_stream();
	check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
	all_to_device(4);
	check_cuda(cudaMemsetAsync(managed, 7, 2 * MIB, gated), "cudaMemsetAsync");
	check_cuda(cudaMemcpyAsync(managed + 2 * MIB, managed, 2 * MIB, cudaMemcpyDeviceToDevice, gated), "copy");
	expect(!CALL(discard(0, gated)), "a discard after a read in its stream");
	expect(!CALL(prefetch(0, um_on_device(0), gated)), "its prefetch");
	check_cuda(cudaMemsetAsync(managed, 9, 2 * MIB, gated), "cudaMemsetAsync");
	check_cuda(cudaEventRecord(event, gated), "cudaEventRecord");
	check_cuda(cudaStreamWaitEvent(other, event, 0), "cudaStreamWaitEvent");
	check_cuda(cudaMemcpyAsync(managed + 4 * MIB, managed, 2 * MIB, cudaMemcpyDeviceToDevice, other), "copy");
	expect(!CALL(discard(0, other)), "a discard on another stream");
	check_cuda(CALL(cudaDeviceSynchronize()), "cudaDeviceSynchronize");
	expect_bytes(managed + 2 * MIB, 7, "what was read before the discard");
	expect_bytes(managed + 4 * MIB, 9, "what was written after it");
	return 0;
}

/* --- T11: handles of destroyed streams ---------------------------------------------------------------------------- */

typedef int (*stream_fn)(um_stream stream, void *out);
static const char *const asks[] = {"cuStreamGetId", "cuStreamQuery", "cuStreamGetFlags", "cuStreamIsCapturing",
				   "cuStreamSynchronize", "cuEventRecord"};
enum { ASKS = sizeof(asks) / sizeof(asks[0]) };

/* `arg`: which call, and whether other streams were created and memory was taken meanwhile. The child may die. */
static int destroyed_handle(long arg)
{
	int err = device_open(8 * MIB), code = 0, same = 0;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fn = driver ? dlsym(driver, asks[arg % ASKS]) : NULL;
	unsigned long long out[4] = {}, id[4] = {};
	cudaStream_t gone[4], more[4];
	cudaEvent_t event;

	if (err)
		return err;
	if (!fn)
		return CHILD_SKIPPED;
	check_cuda(cudaEventCreate(&event), "cudaEventCreate");
	for (int i = 0; i < 4; i++) {
		gone[i] = new_stream();
		nothing_kernel<<<1, 1, 0, gone[i]>>>(NULL);
		if (api->cuStreamGetId)
			api->cuStreamGetId(gpu, gone[i], &id[i]);
	}
	for (int i = 0; i < 4; i++)
		check_cuda(cudaStreamDestroy(gone[i]), "cudaStreamDestroy");
	check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	for (int i = 0; arg >= ASKS && i < 4; i++) {
		more[i] = new_stream();
		for (int k = 0; k < 4; k++)
			same += more[i] == gone[k];
		for (size_t n = 16; n < 8192; n += n / 2)
			memset(malloc(n), 0xff, n);
	}
	for (int i = 0; i < 4; i++)
		code = arg % ASKS == ASKS - 1 ? ((stream_fn)fn)((um_stream)event, gone[i])
					      : ((stream_fn)fn)(gone[i], &out[i]);
	note("  code %d%s; ids %llu %llu, were %llu %llu; %d handles are used again", code,
	     arg < ASKS ? "" : " with other streams after it", out[0], out[3], id[0], id[3], same);
	return 0;
}

static const char *ending(int status)
{
	return status == CHILD_PASSED ? "returns" : status == CHILD_SKIPPED ? "is not there" : "ends the process";
}

/* Not among the cases: shows what is printed when one hangs. */
static int hang(long unused)
{
	int err = device_open(8 * MIB);

	(void)unused;
	if (err)
		return err;
	gate_close();
	CALL(cudaStreamSynchronize(gated));
	return 0;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static const char *only;
static unsigned limit_s = 5;

static int wanted(const char *name)
{
	size_t n = strlen(name);

	for (const char *at = only; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, n) && (!at[n] || at[n] == ','))
			return 1;
	return !only;
}

/* Nothing more is tried on a device on which something hangs. */
static void run_case(const char *name, const char *title, int (*run)(long arg), long arg)
{
	int status;

	if (!wanted(name))
		return;
	status = child_run(limit_s, run, arg);
	if (status == CHILD_SKIPPED || status == CHILD_GUARD) {
		printf("ok %d - %s: %s # SKIP %s\n", ++tap_.run, name, title,
		       status == CHILD_GUARD ? "the guard says no" : "not on this device");
		return;
	}
	ok(status == CHILD_PASSED, "%s: %s", name, title);
	if (status == CHILD_HANGS) {
		printf("Bail out! %s hangs\n", name);
		exit(CHILD_HANGS);
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--only"))
			only = argv[i + 1];
		else if (!strcmp(argv[i], "--patience"))
			patience_ms = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--limit"))
			limit_s = (unsigned)atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--size"))
			size_mib = atol(argv[i + 1]);
	}
	setenv("UMADVISE_DRYRUN_THREADS", "real", 0);
	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* the cases have few iterations */
	tap_setup_();
	for (long n : {1, 8, 32})
		run_case("T1", ("hardware queues, " + std::to_string(n) + " connections").c_str(), queue_map, n);
	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		run_case("T2", (std::string("calls beside ") + locks[i].name).c_str(), lock_matrix, (long)i);
	run_case("T3", "calls beside a full launch queue", full_queue, 0);
	run_case("T4", "prefetches to the host", host_prefetch, 0);
	for (const struct library_case *c = library_cases; c->name; c++)
		run_case(c->name, c->title, c->run, size_mib);
	run_case("T7", "order of discards", discard_order, 0);
	for (long i = 0; only && wanted("T11") && i < 2 * ASKS; i++)
		printf("# T11 %s: %s\n", asks[i % ASKS], ending(child_run(limit_s, destroyed_handle, i)));
	if (only)
		run_case("hang", "a gate that stays closed", hang, 0);
	if (wanted("T9"))
		printf("ok %d - T9: eviction by the driver # SKIP oversubscription is not allowed on a real GPU: "
		       "it stays unproven\n", ++tap_.run);
	return tap_done();
}
