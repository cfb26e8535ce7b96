/* SPDX-License-Identifier: Apache-2.0
 *
 * device_app.c - what tests/device/device_standin.sh runs over the stand-in driver, in several builds
 *
 *     device_app info                what was opened
 *     device_app table               every entry once: its name and what it returned
 *     device_app same sim|device     the same work on the simulator in process or on the device: clock and sums
 *     device_app capture             a capture on one stream while everything goes on elsewhere
 *     device_app fork                a child calls everything
 *     device_app exit                the process ends under a helper's calls
 *
 * UM_TEST_VIA=runtime|driver asks for one way; UM_TEST_LOAD is a shared runtime that the program has
 * loaded, UM_TEST_PENDING=1 leaves an error of the program's in it.
 */
#include "gpu/device.h"
#include "gpu/device_calls.h"
#include "runtime/link_speed.h"
#include "sim/sim.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef STATIC_RUNTIME
/* As <cuda_runtime_api.h> declares them, but for enums. */
int cudaPeekAtLastError(void);
int cudaRuntimeGetVersion(int *version);
#endif

#define BLOCK ((size_t)2 << 20)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry touch(.param .u64 touch_param_0)\n{\n\tret;\n}\n";

static struct um_gpu *open_device(void)
{
	const char *via = getenv("UM_TEST_VIA");
	struct um_device_options o = {.ordinal = -1};
	struct um_gpu *gpu = NULL;
	char why[200];

	if (via)
		o.via = strcmp(via, "runtime") ? UM_VIA_DRIVER : UM_VIA_RUNTIME;
	if (um_device_open(&gpu, &o, why, sizeof why)) {
		printf("not opened: %s\n", why);
		exit(3);
	}
	return gpu;
}

/* What the program itself sees of its runtime. */
static int (*peek)(void);
static int (*own_version)(int *version);

static void have_runtime(void)
{
	const char *path = getenv("UM_TEST_LOAD");
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL, *fn;
	int (*set_device)(int device);

#ifdef STATIC_RUNTIME
	peek = cudaPeekAtLastError;
	own_version = cudaRuntimeGetVersion;
#endif
	if (path && !lib) {
		printf("%s\n", dlerror());
		exit(4);
	}
	if (!lib)
		return;
	fn = dlsym(lib, "cudaPeekAtLastError");
	memcpy(&peek, &fn, sizeof fn);
	fn = dlsym(lib, "cudaRuntimeGetVersion");
	memcpy(&own_version, &fn, sizeof fn);
	fn = dlsym(lib, "cudaSetDevice");
	memcpy(&set_device, &fn, sizeof fn);
	if (getenv("UM_TEST_PENDING") && !set_device(99))
		exit(5);
}

static int last_error(void)
{
	return peek ? peek() : 0;
}

static int info(void)
{
	struct um_gpu *gpu = open_device();
	struct um_device_info i;
	int version = 0;

	if (own_version)
		own_version(&version);
	um_device_info(gpu, &i);
	printf("via %s driver %d runtime %d own %d standin %d\n", i.via == UM_VIA_RUNTIME ? "runtime" : "driver",
	       i.driver_version, i.runtime_version, version, i.standin);
	printf("concurrent %d discard %d batch %d virtual %d workers %d\n", gpu->caps.concurrent_managed,
	       gpu->caps.discard, gpu->caps.prefetch_batch, gpu->caps.virtual_time, gpu->api->worker_start != NULL);
	printf("name %s\nwhy %s\n", gpu->caps.name, gpu->caps.why);
	gpu->api->close(gpu);
	return 0;
}

/* --- every entry -------------------------------------------------------------------------------------------------- */

static int codes_differ; /* from UM_CUDA_LOST */

static void say(const char *name, int err)
{
	printf("%s %d\n", name, err);
}

static void each_lost(const char *name, int err)
{
	if (err != UM_CUDA_LOST) {
		printf("%s gave %d\n", name, err);
		codes_differ = 1;
	}
}

static int captures; /* another stream does */

static void kernels(struct um_gpu *gpu, um_stream s, void *p, void (*each)(const char *name, int err))
{
	void *module = NULL, *function = NULL, *args[1] = {&p};
	char from[8] = "copied", to[8];

	each("module_load", um_device_module_load(gpu, ptx, &module));
	each("function", um_device_function(gpu, module, "touch", &function));
	each("launch", um_device_launch(gpu, function, 1, 32, s, args));
	each("copy", um_device_copy(gpu, to, from, sizeof from, s));
	each("module_unload", um_device_module_unload(gpu, module));
}

static void every(struct um_gpu *gpu, void (*each)(const char *name, int err))
{
	const struct um_gpu_api *a = gpu->api;
	struct um_location here = um_on_device(gpu->caps.device);
	void *p = NULL, *dev = NULL, *host = NULL;
	um_event_handle e = NULL, f = NULL;
	um_stream s = NULL;
	size_t n = 2 * BLOCK, x, y, at = 0;
	int status;
	float ms;

	each("stream_create", a->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING));
	each("malloc_managed", a->cudaMallocManaged(gpu, &p, n, UM_ATTACH_GLOBAL));
	each("malloc", a->cudaMalloc(gpu, &dev, n));
	each("host_alloc", a->cudaHostAlloc(gpu, &host, 64, 0));
	each("memory_info", a->cudaMemGetInfo(gpu, &x, &y));
	each("event_create", a->cudaEventCreateWithFlags(gpu, &e, 0));
	each("event_create", a->cudaEventCreateWithFlags(gpu, &f, 0));
	each("event_record", a->cudaEventRecord(gpu, e, s));
	each("stream_wait", a->cudaStreamWaitEvent(gpu, s, e, 0));
	each("prefetch", a->cudaMemPrefetchAsync(gpu, p, n, here, 0, s));
	each("advise", a->cudaMemAdvise(gpu, p, n, UM_ADV_SET_PREFERRED, here));
	if (a->cudaMemPrefetchBatchAsync)
		each("prefetch_batch", a->cudaMemPrefetchBatchAsync(gpu, &p, &n, 1, &here, &at, 1, 0, s));
	if (a->cudaMemDiscardBatchAsync)
		each("discard_batch", a->cudaMemDiscardBatchAsync(gpu, &p, &n, 1, 0, s));
	if (a->cudaMemDiscardAndPrefetchBatchAsync)
		each("renew_batch", a->cudaMemDiscardAndPrefetchBatchAsync(gpu, &p, &n, 1, &here, &at, 1, 0, s));
	each("event_record", a->cudaEventRecord(gpu, f, s));
	each("capturing", a->cudaStreamIsCapturing(gpu, s, &status));
	kernels(gpu, s, p, each);
	each("event_sync", a->cudaEventSynchronize(gpu, f));
	each("event_query", a->cudaEventQuery(gpu, f));
	each("event_elapsed", a->cudaEventElapsedTime(gpu, &ms, e, f));
	each("stream_sync", a->cudaStreamSynchronize(gpu, s));
	if (!captures) /* it ends captures of other streams: who calls it knows of them */
		each("device_sync", a->cudaDeviceSynchronize(gpu));
	each("event_destroy", a->cudaEventDestroy(gpu, e));
	each("event_destroy", a->cudaEventDestroy(gpu, f));
	each("free", a->cudaFree(gpu, p));
	each("free", a->cudaFree(gpu, dev));
	each("host_free", a->cudaFreeHost(gpu, host));
	each("stream_destroy", a->cudaStreamDestroy(gpu, s));
}

static int table(void)
{
	int before = last_error();
	struct um_gpu *gpu = open_device();

	printf("pending %s\n", before ? "yes" : "no");

	every(gpu, say);
	printf("last error %s\n", last_error() == before ? "as before" : "touched");
	printf("lost %d\n", um_device_lost(gpu));
	gpu->api->close(gpu);
	return 0;
}

/* --- the same work on both ------------------------------------------------------------------------------------------
 * */

struct lane {
	struct um_gpu *gpu;
	um_stream stream;
	um_event_handle event;
	void *range[3];
	int next, done;
};

/* Sends the ranges home, one after the other, and waits for each. */
static struct um_step step(void *arg)
{
	struct lane *l = arg;
	const struct um_gpu_api *a = l->gpu->api;

	if (l->done == l->next)
		return (struct um_step){.kind = UM_STEP_IDLE};
	if (a->cudaEventQuery(l->gpu, l->event) == UM_CUDA_NOT_READY)
		return (struct um_step){.kind = UM_STEP_WAIT, .event = l->event};
	a->cudaMemPrefetchAsync(l->gpu, l->range[l->done], 8 * BLOCK, um_on_host(), 0, l->stream);
	l->done++;
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static int all_home(void *arg)
{
	struct lane *l = arg;

	return l->done == 3;
}

/* One launch of `ns` that updates both ranges. */
static void launch(struct um_gpu *gpu, void *function, um_stream s, void *p, void *q, uint64_t ns)
{
	struct um_touch touch[2] = {{p, 8 * BLOCK, 0, 3}, {q, 8 * BLOCK, 0, 1}};
	struct um_announcement next = {touch, 2, ns, UM_PATTERN_LIBRARY};
	void *args[1] = {&p};

	say("announce", gpu->api->announce(gpu, s, &next));
	if (function)
		say("launch", um_device_launch(gpu, function, 1, 32, s, args));
	else
		say("launch", um_sim_run(gpu, s, &(struct um_sim_kernel){.name = "touch", .announced = 1}));
}

static void sums(struct um_gpu *gpu, const struct um_tally *t)
{
	const uint64_t v[] = {gpu->api->now(gpu), t->ns,	t->faults,	   t->batches,
			      t->h2d_bytes,	  t->d2h_bytes, t->evictions,	   t->stall_ns,
			      t->hints,		  t->refused,	t->resident_bytes, t->peak_resident_bytes};
	static const char *const names[] = {"now",	 "ns",	  "faults", "batches", "in",	   "out",
					    "evictions", "stall", "hints",  "refused", "resident", "peak"};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		printf("%s %" PRIu64 "%s", names[i], v[i], i + 1 < sizeof v / sizeof *v ? " " : "\n");
}

static void do_work(struct um_gpu *gpu, void *function)
{
	const struct um_gpu_api *a = gpu->api;
	struct lane l = {.gpu = gpu};
	struct um_worker w = {.step = step, .arg = &l, .name = "lane"};
	um_stream s;
	um_event_handle arrived;
	size_t n = 8 * BLOCK;

	say("stream", a->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING) ||
			      a->cudaStreamCreateWithFlags(gpu, &l.stream, UM_STREAM_NON_BLOCKING) ||
			      a->cudaEventCreateWithFlags(gpu, &l.event, UM_EVENT_DISABLE_TIMING) ||
			      a->cudaEventCreateWithFlags(gpu, &arrived, UM_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 3; i++)
		say("malloc", a->cudaMallocManaged(gpu, &l.range[i], n, UM_ATTACH_GLOBAL));
	say("worker", a->worker_start(gpu, &w));
	for (int i = 0; i < 4; i++) {
		say("prefetch", a->cudaMemPrefetchAsync(gpu, l.range[i % 3], n, um_on_device(0), 0, l.stream));
		say("record", a->cudaEventRecord(gpu, arrived, l.stream));
		say("wait", a->cudaStreamWaitEvent(gpu, s, arrived, 0));
		launch(gpu, function, s, l.range[i % 3], l.range[(i + 1) % 3], 300000);
		if (i == 1)
			say("discard", a->cudaMemDiscardBatchAsync(gpu, &l.range[2], &n, 1, 0, s));
	}
	say("record", a->cudaEventRecord(gpu, l.event, s));
	l.next = 3;
	a->worker_poke(gpu, &w);
	say("worker_wait", a->worker_wait(gpu, all_home, &l));
	a->worker_stop(gpu, &w);
	say("sync", a->cudaStreamSynchronize(gpu, s));
	say("sync", a->cudaStreamSynchronize(gpu, l.stream));
	for (int i = 0; i < 3; i++)
		say("free", a->cudaFree(gpu, l.range[i]));
	say("end", a->cudaEventDestroy(gpu, arrived) || a->cudaEventDestroy(gpu, l.event) ||
			   a->cudaStreamDestroy(gpu, s) || a->cudaStreamDestroy(gpu, l.stream));
}

static void print_line(void *user, const char *line)
{
	fprintf(user, "%s\n", line);
}

static int same(const char *on)
{
	const char *log = getenv("UM_TEST_LOG");
	struct um_sim_options o = {.profile = um_profile_find("v100"), .capacity = 20 * BLOCK, .backed = 1};
	void *module = NULL, *function = NULL;
	struct um_profile p;
	struct um_gpu *gpu;
	struct um_tally t;

	if (!strcmp(on, "sim")) {
		o.log_user = log ? fopen(log, "w") : NULL;
		o.log = o.log_user ? print_line : NULL;
		if (um_sim_open(&gpu, &o))
			return 1;
	} else {
		gpu = open_device();
		if (um_device_module_load(gpu, ptx, &module) || um_device_function(gpu, module, "touch", &function))
			return 1;
		if (um_device_standin_profile(gpu, &p) || strcmp(p.name, o.profile->name))
			return 1;
	}
	printf("capacity %" PRIu64 "\n", gpu->caps.capacity);
	do_work(gpu, function);
	if (function)
		um_device_standin_tally(gpu, &t);
	else
		um_sim_tally(gpu, &t);
	sums(gpu, &t);
	if (module)
		um_device_module_unload(gpu, module);
	gpu->api->close(gpu);
	if (o.log_user)
		fclose(o.log_user);
	return 0;
}

/* --- capture, fork, exit ------------------------------------------------------------------------------------------ */

static void *driver_function(const char *name, int version)
{
	um_proc_address find;
	void *fn = dlsym(dlopen("libcuda.so.1", RTLD_NOW), UM_PROC_ADDRESS);
	int status;

	memcpy(&find, &fn, sizeof find);
	fn = NULL;
	find(name, &fn, version, 0, &status);
	return fn;
}

static int capture(void)
{
	struct um_gpu *gpu = open_device();
	const struct um_gpu_api *a = gpu->api;
	int (*begin)(um_stream, int), (*end)(um_stream, void **), (*destroy)(void *);
	void *fn, *graph = NULL, *args[1] = {&graph};
	um_event_handle e;
	um_stream s;
	int status = -1;

	fn = driver_function("cuStreamBeginCapture", 10010);
	memcpy(&begin, &fn, sizeof fn);
	fn = driver_function("cuStreamEndCapture", 10000);
	memcpy(&end, &fn, sizeof fn);
	fn = driver_function("cuGraphDestroy", 10000);
	memcpy(&destroy, &fn, sizeof fn);
	if (!begin || !end || !destroy)
		return 1;
	a->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	a->cudaEventCreateWithFlags(gpu, &e, 0);
	say("begin", begin(s, 0)); /* global: forbids unsafe calls to every thread */
	say("capturing", a->cudaStreamIsCapturing(gpu, s, &status));
	say("status", status);
	say("record", a->cudaEventRecord(gpu, e, s));
	say("wait", a->cudaStreamWaitEvent(gpu, s, e, 0));
	say("sync", a->cudaStreamSynchronize(gpu, s));
	say("prefetch", a->cudaMemPrefetchAsync(gpu, args, 8, um_on_host(), 0, s));
	captures = 1;
	every(gpu, say);
	say("end", end(s, &graph));
	say("graph", graph != NULL);
	if (graph)
		say("destroy", destroy(graph));
	a->cudaStreamDestroy(gpu, s);
	gpu->api->close(gpu);
	return 0;
}

static int forked(void)
{
	struct um_gpu *gpu = open_device(), *again;
	char why[200];
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		every(gpu, each_lost);
		codes_differ |= um_device_open(&again, NULL, why, sizeof why) == 0;
		gpu->api->close(gpu);
		printf("child: %s\n", codes_differ ? "calls went through" : "all quiet");
		fflush(stdout);
		_exit(codes_differ);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	every(gpu, say);
	gpu->api->close(gpu);
	return 0;
}

#define HELPERS 3
static struct um_gpu *ending_gpu;
static pthread_t helpers[HELPERS];

/* Calls until it is told to stop. */
static void *help(void *arg)
{
	um_event_handle e;

	(void)arg;
	if (ending_gpu->api->cudaEventCreateWithFlags(ending_gpu, &e, 0))
		return NULL;
	while (ending_gpu->api->cudaEventQuery(ending_gpu, e) != UM_CUDA_LOST)
		;
	return NULL;
}

/* Put in before the device was opened, so it runs after all that the opening put in. */
static void late(void)
{
	for (int i = 0; i < HELPERS; i++)
		pthread_join(helpers[i], NULL);
	every(ending_gpu, each_lost);
	ending_gpu->api->close(ending_gpu);
	printf("late: %s\n", codes_differ ? "calls went through" : "all quiet");
}

static int ending(void)
{
	atexit(late);
	ending_gpu = open_device();
	for (int i = 0; i < HELPERS; i++)
		if (pthread_create(&helpers[i], NULL, help, NULL))
			_exit(1);
	return 0;
}

/* The link, timed as for a device without a profile. */
static int link_rate(void)
{
	struct um_gpu *gpu = open_device();
	struct um_profile p = *um_profile_find("v100");
	int timed = um_link_speed(gpu, &p);

	printf("timed %d h2d %.0f\n", timed, p.h2d / 1e9);
	gpu->api->close(gpu);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(120); /* rather an end than a test that hangs */
	have_runtime();
	if (!strcmp(what, "info"))
		return info();
	if (!strcmp(what, "table"))
		return table();
	if (!strcmp(what, "link"))
		return link_rate();
	if (!strcmp(what, "same") && argc > 2)
		return same(argv[2]);
	if (!strcmp(what, "capture"))
		return capture();
	if (!strcmp(what, "fork"))
		return forked();
	if (!strcmp(what, "exit"))
		return ending();
	fprintf(stderr, "device_app: info, table, link, same sim|device, capture, fork or exit\n");
	return 2;
}
