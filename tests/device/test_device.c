/* SPDX-License-Identifier: Apache-2.0
 *
 * The table filled from CUDA, over libraries that misbehave as told (tests/device/fake_cuda.c). Each case is a process.
 */
#include "fake_cuda.h"
#include "gpu/device.h"
#include "gpu/device_calls.h"
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a case ------------------------------------------------------------------------------------------------------- */

static struct fake *fake;
static struct fake_thread *(*thread)(void);
static char why[200];
static int failed;

#define CHECK(cond) check(!!(cond), #cond, __LINE__)
static int check(int good, const char *what, int line)
{
	if (good)
		return 1;
	printf("#   line %d: %s; last call %s, why: %s\n", line, what, fake ? fake->last : "-", why);
	failed = 1;
	return 0;
}

static const char *folder(void)
{
	const char *top = getenv("top_builddir");

	return top ? top : ".";
}

static void *load(const char *name)
{
	char path[4096];
	void *lib;

	snprintf(path, sizeof path, "%s/tests/device/fake/%s", folder(), name);
	lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!lib)
		printf("# %s\n", dlerror());
	CHECK(lib);
	return lib;
}

/* A whole driver of 13.0 with one whole device; the case changes what it needs. */
static void driver(void)
{
	void *lib = load("libcuda.so.1"), *fn;
	struct fake *(*state)(void);

	fn = dlsym(lib, "fake_state");
	memcpy(&state, &fn, sizeof fn);
	fn = dlsym(lib, "fake_thread");
	memcpy(&thread, &fn, sizeof fn);
	fake = state();
	for (int i = 0; i < FAKE_DEVICES; i++) {
		fake->attributes[i][UM_AT_MANAGED_MEMORY] = 1;
		fake->attributes[i][UM_AT_CONCURRENT_MANAGED_ACCESS] = 1;
		fake->attributes[i][UM_AT_MULTIPROCESSOR_COUNT] = 80;
	}
}

static struct um_gpu *open_via(enum um_device_via via, int ordinal)
{
	struct um_device_options o = {.via = via, .ordinal = ordinal};
	struct um_gpu *gpu = NULL;
	int err = um_device_open(&gpu, &o, why, sizeof why);

	CHECK(err == 0);
	if (err)
		exit(1);
	return gpu;
}

static struct um_gpu *open_any(void)
{
	return open_via(UM_VIA_ANY, -1);
}

static void refused(enum um_device_via via, int ordinal, const char *text)
{
	struct um_device_options o = {.via = via, .ordinal = ordinal};
	struct um_gpu *gpu = NULL;

	CHECK(um_device_open(&gpu, &o, why, sizeof why) == -ENODEV);
	CHECK(gpu == NULL);
	if (!CHECK(strstr(why, text)))
		printf("#   wanted: %s\n", text);
	if (!fake)
		return;
	for (int i = 0; i < FAKE_DEVICES; i++)
		CHECK(fake->retained[i] == 0);
	CHECK(fake->violations == 0);
}

static void close_it(struct um_gpu *gpu)
{
	gpu->api->close(gpu);
	for (int i = 0; i < FAKE_DEVICES; i++)
		CHECK(fake->retained[i] == 0);
	CHECK(fake->violations == 0);
}

/* Was it called since the log was emptied? */
static int called(const char *name)
{
	char word[80];

	snprintf(word, sizeof word, " %s", name);
	for (const char *at = fake->log; (at = strstr(at, word)); at++)
		if (!at[strlen(word)] || at[strlen(word)] == ' ')
			return 1;
	return 0;
}

static void forget(void)
{
	fake->log[0] = 0;
	fake->type = fake->id = -9;
}

/* Every entry once, in an order that can be followed; `each` gets what it returned. */
static void every(struct um_gpu *gpu, void (*each)(const char *name, int err))
{
	const struct um_gpu_api *a = gpu->api;
	struct um_location here = um_on_device(0);
	void *p = NULL, *dev = NULL, *host = NULL;
	um_event_handle e = NULL, f = NULL;
	um_stream s = NULL;
	size_t n = 4096, x, y, at = 0;
	float ms;
	int status;

	each("stream_create", a->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING));
	each("malloc_managed", a->cudaMallocManaged(gpu, &p, n, UM_ATTACH_GLOBAL));
	each("malloc", a->cudaMalloc(gpu, &dev, n));
	each("host_alloc", a->cudaHostAlloc(gpu, &host, 64, 0));
	each("memory_info", a->cudaMemGetInfo(gpu, &x, &y));
	each("event_create", a->cudaEventCreateWithFlags(gpu, &e, 0));
	each("event_create", a->cudaEventCreateWithFlags(gpu, &f, UM_EVENT_DISABLE_TIMING));
	each("event_record", a->cudaEventRecord(gpu, e, s));
	each("event_record", a->cudaEventRecord(gpu, f, s));
	each("stream_wait", a->cudaStreamWaitEvent(gpu, s, e, 0));
	each("prefetch", a->cudaMemPrefetchAsync(gpu, p, n, here, 0, s));
	each("advise", a->cudaMemAdvise(gpu, p, n, UM_ADV_SET_READ_MOSTLY, here));
	if (a->cudaMemPrefetchBatchAsync)
		each("prefetch_batch", a->cudaMemPrefetchBatchAsync(gpu, &p, &n, 1, &here, &at, 1, 0, s));
	if (a->cudaMemDiscardBatchAsync)
		each("discard_batch", a->cudaMemDiscardBatchAsync(gpu, &p, &n, 1, 0, s));
	if (a->cudaMemDiscardAndPrefetchBatchAsync)
		each("renew_batch", a->cudaMemDiscardAndPrefetchBatchAsync(gpu, &p, &n, 1, &here, &at, 1, 0, s));
	each("capturing", a->cudaStreamIsCapturing(gpu, s, &status));
	each("event_query", a->cudaEventQuery(gpu, e));
	each("event_sync", a->cudaEventSynchronize(gpu, e));
	each("event_elapsed", a->cudaEventElapsedTime(gpu, &ms, e, f));
	each("stream_sync", a->cudaStreamSynchronize(gpu, s));
	each("device_sync", a->cudaDeviceSynchronize(gpu));
	each("event_destroy", a->cudaEventDestroy(gpu, e));
	each("event_destroy", a->cudaEventDestroy(gpu, f));
	each("free", a->cudaFree(gpu, p));
	each("free", a->cudaFree(gpu, dev));
	each("host_free", a->cudaFreeHost(gpu, host));
	each("stream_destroy", a->cudaStreamDestroy(gpu, s));
}

static void each_works(const char *name, int err)
{
	if (!CHECK(err == 0))
		printf("#   %s gave %d\n", name, err);
}

static void each_lost(const char *name, int err)
{
	if (!CHECK(err == UM_CUDA_LOST))
		printf("#   %s gave %d\n", name, err);
}

/* --- what is not there -------------------------------------------------------------------------------------------- */

static void no_driver(void)
{
	if (dlopen("libcuda.so.1", RTLD_NOW))
		printf("#   there is a driver here\n");
	else
		refused(UM_VIA_ANY, -1, "no CUDA driver on this machine");
}

static void init_errors(void)
{
	driver();
	fake->init_error = 100;
	refused(UM_VIA_ANY, -1, "no CUDA device is visible");
	fake->init_error = 803;
	refused(UM_VIA_ANY, -1, "differ in version");
	fake->init_error = 3;
	refused(UM_VIA_ANY, -1, "forked");
	fake->init_error = 999;
	refused(UM_VIA_ANY, -1, "cuInit failed: CUDA error 999");
	fake->init_error = 0;
	fake->proc_error = 34;
	refused(UM_VIA_ANY, -1, "stub");
}

static void old_driver(void)
{
	driver();
	load("libcudart.so.13");
	fake->version = 12040;
	refused(UM_VIA_ANY, -1, "the driver (CUDA 12.4) is older than this program's CUDA runtime (13.0)");
	refused(UM_VIA_RUNTIME, -1, "older");
	CHECK(thread()->error == 0);
	close_it(open_via(UM_VIA_DRIVER, -1));
}

static void devices(void)
{
	struct um_gpu *gpu;

	driver();
	refused(UM_VIA_ANY, 1, "device 1 does not exist");
	refused(UM_VIA_RUNTIME, -1, "no shared CUDA runtime");
	fake->attributes[0][UM_AT_MANAGED_MEMORY] = 0;
	refused(UM_VIA_ANY, -1, "has no managed memory");
	fake->attributes[0][UM_AT_MANAGED_MEMORY] = 1;
	fake->attributes[0][UM_AT_CONCURRENT_MANAGED_ACCESS] = 0;
	gpu = open_any();
	CHECK(!gpu->caps.concurrent_managed && !gpu->caps.discard);
	CHECK(strstr(gpu->caps.why, "concurrentManagedAccess is 0"));
	close_it(gpu);
	fake->attributes[0][UM_AT_CONCURRENT_MANAGED_ACCESS] = 1;
	fake->devices = 3;
	fake->attributes[2][UM_AT_CONCURRENT_MANAGED_ACCESS] = 0;
	gpu = open_via(UM_VIA_ANY, 1);
	CHECK(gpu->caps.device == 1 && !strcmp(gpu->caps.name, "Fake 1"));
	CHECK(gpu->caps.concurrent_managed && !gpu->caps.discard);
	CHECK(strstr(gpu->caps.why, "device 2"));
	close_it(gpu);
}

static void missing(void)
{
	static const char *needed[] = {
#define NAME_BOTH(field, rt, cu, version, args) #cu,
#define NAME_ONLY(field, cu, version, args) #cu,
		UM_CALLS_BOTH(NAME_BOTH) UM_CALLS_NEW(NAME_BOTH) UM_DRIVER_ONLY(NAME_ONLY)};

	driver();
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		fake->missing = needed[i];
		refused(UM_VIA_ANY, -1, needed[i]);
	}
}

static void optional(void)
{
	static const char *names[] = {UM_CALLS_BATCH(NAME_BOTH) UM_DRIVER_OPTIONAL(NAME_ONLY)};

	driver();
	load("libcudart.so.13");
	for (size_t i = 0; i < 2 * (sizeof names / sizeof *names); i++) {
		struct um_gpu *gpu;

		fake->missing = names[i / 2];
		gpu = open_via(i % 2 ? UM_VIA_DRIVER : UM_VIA_RUNTIME, -1);
		CHECK(gpu->caps.discard == !strstr(fake->missing, "cuMemDiscardBatch"));
		CHECK(gpu->caps.prefetch_batch == (gpu->caps.discard && !strstr(fake->missing, "PrefetchBatchAsync")) ||
		      strstr(fake->missing, "DiscardAnd"));
		CHECK(!gpu->api->cudaMemDiscardAndPrefetchBatchAsync == !!strstr(fake->missing, "DiscardAnd"));
		CHECK(gpu->caps.discard == !gpu->caps.why[0]);
		every(gpu, each_works);
		close_it(gpu);
	}
}

/* --- what is there, but does not work ----------------------------------------------------------------------------- */

static void trials(void)
{
	struct um_gpu *gpu;

	driver();
	fake->fails = "cuMemDiscardBatchAsync";
	fake->code = 801;
	gpu = open_any();
	CHECK(!gpu->caps.discard && strstr(gpu->caps.why, "error 801"));
	close_it(gpu);
}

static void whole(void)
{
	struct um_device_info info;
	struct um_profile profile;
	struct um_tally tally;
	struct um_gpu *gpu;

	driver();
	fake->attributes[0][UM_AT_PAGEABLE_MEMORY_ACCESS] = 1;
	fake->attributes[0][UM_AT_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES] = 1;
	fake->attributes[0][UM_AT_COMPUTE_CAPABILITY_MAJOR] = 9;
	gpu = open_any();
	CHECK(gpu->caps.concurrent_managed && gpu->caps.discard && gpu->caps.prefetch_batch);
	CHECK(gpu->caps.pageable && gpu->caps.ats && !gpu->caps.virtual_time && !gpu->caps.why[0]);
	CHECK(gpu->caps.capacity == 6ull << 30 && !strcmp(gpu->caps.name, "Fake 0"));
	CHECK(!strncmp(gpu->caps.uuid, "a0a1a2a3a4a5a6a7a8a9aaab", 24) && strlen(gpu->caps.uuid) == 32);
	CHECK(!gpu->api->announce && !gpu->api->now && !gpu->api->worker_start && !gpu->api->worker_wait);
	um_device_info(gpu, &info);
	CHECK(info.via == UM_VIA_DRIVER && info.driver_version == 13000 && !info.runtime_version && !info.standin);
	CHECK(info.sms == 80 && info.cc_major == 9 && info.cc_minor == 0);
	CHECK(um_device_standin_profile(gpu, &profile) == -ENODEV && um_device_standin_tally(gpu, &tally) == -ENODEV);
	every(gpu, each_works);
	CHECK(gpu->api->cudaFree(gpu, NULL) == 0 && gpu->api->cudaFreeHost(gpu, NULL) == 0);
	close_it(gpu);
}

/* --- the forms of a hint ------------------------------------------------------------------------------------------ */

/* `old`: the form that must have been called, on which library's functions. */
static void hints(struct um_gpu *gpu, int old, const char *prefetch, const char *advise)
{
	um_stream s;

	gpu->api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	forget();
	CHECK(gpu->api->cudaMemPrefetchAsync(gpu, why, 8, um_on_device(2), 0, s) == 0 && called(prefetch));
	CHECK(fake->type == (old ? -1 : UM_LOC_DEVICE) && fake->id == 2 && fake->stream == s && fake->flags == 0);
	CHECK(gpu->api->cudaMemPrefetchAsync(gpu, why, 8, um_on_host(), 0, s) == 0);
	CHECK(fake->type == (old ? -1 : UM_LOC_HOST) && fake->id == (old ? -1 : 0) && fake->stream == s);
	forget();
	CHECK(gpu->api->cudaMemAdvise(gpu, why, 8, UM_ADV_SET_PREFERRED, um_on_host()) == 0 && called(advise));
	CHECK(fake->type == (old ? -1 : UM_LOC_HOST) && fake->id == (old ? -1 : 0) &&
	      fake->flags == UM_ADV_SET_PREFERRED);
	CHECK(gpu->api->cudaMemAdvise(gpu, why, 8, UM_ADV_SET_ACCESSED_BY, um_on_device(3)) == 0 && fake->id == 3);
	gpu->api->cudaStreamDestroy(gpu, s);
}

static void forms_of_drivers(void)
{
	static const struct {
		int version, old;
	} cases[] = {{12000, 1}, {12010, 1}, {12020, 0}, {12040, 0}, {13000, 0}};

	driver();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct um_gpu *gpu;

		fake->version = cases[i].version;
		gpu = open_any();
		hints(gpu, cases[i].old, cases[i].old ? "cuMemPrefetchAsync" : "cuMemPrefetchAsync_v2",
		      cases[i].old ? "cuMemAdvise" : "cuMemAdvise_v2");
		CHECK(gpu->caps.discard == (fake->version >= 13000));
		CHECK(gpu->caps.discard || strstr(gpu->caps.why, "they need a driver of CUDA 13.0"));
		every(gpu, each_works);
		close_it(gpu);
	}
}

static void form_of_runtime(const char *library, int version, int old, const char *prefetch, const char *advise)
{
	struct um_device_info info;
	struct um_gpu *gpu;
	int alive;

	driver();
	load(library);
	gpu = open_any();
	um_device_info(gpu, &info);
	CHECK(info.via == UM_VIA_RUNTIME && info.runtime_version == version && info.driver_version == 13000);
	hints(gpu, old, prefetch, advise);
	forget();
	every(gpu, each_works);
	CHECK(called("cudaMallocManaged") && called("cudaEventRecord") && called("cudaFreeHost"));
	CHECK(!called("cuMemAllocManaged") && !called("cuEventRecord"));
	/* A runtime of 12 has no discards, the driver below has. */
	alive = version >= 13000;
	CHECK(called("cudaMemDiscardBatchAsync") == alive && called("cuMemDiscardBatchAsync") == !alive);
	CHECK(gpu->caps.discard && gpu->caps.prefetch_batch);
	close_it(gpu);
}

static void runtime_13(void)
{
	form_of_runtime("libcudart.so.13", 13000, 0, "cudaMemPrefetchAsync_new", "cudaMemAdvise_new");
}

static void runtime_12(void)
{
	form_of_runtime("libcudart.so.12", 12040, 0, "cudaMemPrefetchAsync_new", "cudaMemAdvise_new");
}

static void runtime_12_0(void)
{
	form_of_runtime("12.0/libcudart.so.12", 12000, 1, "cudaMemPrefetchAsync", "cudaMemAdvise");
}

static void not_loaded(void)
{
	struct um_device_info info;
	struct um_gpu *gpu;

	driver();
	gpu = open_any();
	um_device_info(gpu, &info);
	CHECK(info.via == UM_VIA_DRIVER);
	CHECK(!dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) && !dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD));
	close_it(gpu);
}

/* --- what a call leaves behind ------------------------------------------------------------------------------------ */

static void last_error(void)
{
	struct um_gpu *gpu;
	void *p;

	driver();
	load("libcudart.so.13");
	gpu = open_any();
	fake->fails = "cudaMallocManaged";
	fake->code = 2;
	CHECK(gpu->api->cudaMallocManaged(gpu, &p, 8, UM_ATTACH_GLOBAL) == 2 && thread()->error == 0);
	fake->fails = "cudaEventQuery";
	fake->code = UM_CUDA_NOT_READY;
	CHECK(gpu->api->cudaEventQuery(gpu, why) == UM_CUDA_NOT_READY && thread()->error == 0);
	/* An error of the program's stays, whether our call fails or not. */
	thread()->error = 98;
	forget();
	CHECK(gpu->api->cudaEventQuery(gpu, NULL) == 400 && thread()->error == 98);
	CHECK(called("cuEventQuery") && !called("cudaEventQuery"));
	fake->fails = NULL;
	every(gpu, each_works);
	CHECK(thread()->error == 98);
	/* A code of some other context's is not ours. */
	thread()->error = 201;
	CHECK(gpu->api->cudaEventQuery(gpu, why) == 0 && !um_device_lost(gpu) && thread()->error == 201);
	close_it(gpu);
}

static void sticky_by(const char *library, const char *fails)
{
	static const int codes[] = {
#define CODE(name, number) number,
		UM_END_CODES(CODE) UM_END_CODES_13(CODE)};

	driver();
	if (library)
		load(library);
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		struct um_gpu *gpu = open_any();
		int calls;

		fake->fails = fails;
		fake->code = codes[i];
		CHECK(gpu->api->cudaEventQuery(gpu, why) == codes[i] && um_device_lost(gpu) == codes[i]);
		CHECK(thread()->error == (library ? codes[i] : 0)); /* it belongs to the program */
		thread()->error = 0;
		fake->fails = NULL;
		calls = fake->calls;
		every(gpu, each_lost);
		CHECK(um_device_launch(gpu, why, 1, 1, NULL, NULL) == UM_CUDA_LOST);
		gpu->api->close(gpu);
		CHECK(fake->calls == calls);
		fake->retained[0] = 0;
	}
}

static void sticky(void)
{
	sticky_by(NULL, "cuEventQuery");
}

static void sticky_runtime(void)
{
	sticky_by("libcudart.so.13", "cudaEventQuery");
}

static void sticky_pending(void)
{
	struct um_gpu *gpu;
	int calls;

	driver();
	load("libcudart.so.13");
	gpu = open_any();
	thread()->error = 719;
	forget();
	CHECK(gpu->api->cudaEventQuery(gpu, why) == UM_CUDA_LOST && um_device_lost(gpu) == 719);
	CHECK(thread()->error == 719 && !fake->log[0] && thread()->depth == 0);
	calls = fake->calls;
	every(gpu, each_lost);
	CHECK(fake->calls == calls);
	gpu->api->close(gpu);
}

static void passing(void)
{
	static const int codes[] = {1, 2, 101, 400, 600, 801, 900, 901, 909, 999};

	driver();
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		struct um_gpu *gpu = open_any();

		fake->fails = "cuMemPrefetchAsync_v2";
		fake->code = codes[i];
		CHECK(gpu->api->cudaMemPrefetchAsync(gpu, why, 8, um_on_host(), 0, NULL) == codes[i]);
		CHECK(!um_device_lost(gpu));
		fake->fails = NULL;
		every(gpu, each_works);
		close_it(gpu);
	}
}

static void contexts_via(const char *library)
{
	struct um_gpu *gpu;
	int pushes;

	driver();
	fake->devices = 2;
	if (library)
		load(library);
	gpu = open_via(UM_VIA_ANY, 0);
	/* None is current. */
	every(gpu, each_works);
	CHECK(thread()->depth == 0 && fake->pushes > 0);
	/* Another device's is. */
	thread()->stack[thread()->depth++] = FAKE_CONTEXT(1);
	every(gpu, each_works);
	CHECK(thread()->depth == 1 && thread()->stack[0] == FAKE_CONTEXT(1));
	/* Ours is: then nothing is pushed. */
	thread()->stack[0] = FAKE_CONTEXT(0);
	pushes = fake->pushes;
	every(gpu, each_works);
	CHECK(thread()->depth == 1 && fake->pushes == pushes);
	CHECK(um_device_copy(gpu, why, why, 1, NULL) == 0 && fake->pushes == pushes);
	thread()->depth = 0;
	close_it(gpu);
}

static void contexts(void)
{
	contexts_via(NULL);
}

static void contexts_runtime(void)
{
	contexts_via("libcudart.so.13");
}

static void current_device(void)
{
	struct um_gpu *gpu;

	driver();
	load("libcudart.so.13");
	fake->devices = 3;
	thread()->device = 2; /* the runtime was told, no context yet */
	gpu = open_any();
	CHECK(gpu->caps.device == 2 && fake->retained[2] == 1);
	close_it(gpu);
	thread()->stack[thread()->depth++] = FAKE_CONTEXT(1);
	gpu = open_any();
	CHECK(gpu->caps.device == 1 && thread()->depth == 1);
	close_it(gpu);
	gpu = open_via(UM_VIA_ANY, 0);
	CHECK(gpu->caps.device == 0 && thread()->depth == 1);
	close_it(gpu);
}

/* A program with a context of its own has its streams there. */
static void own_context(void)
{
	struct um_gpu *gpu;
	int pushes;

	driver();
	fake->devices = 2;
	thread()->stack[thread()->depth++] = FAKE_OWN_CONTEXT(1);
	gpu = open_any();
	CHECK(gpu->caps.device == 1);
	pushes = fake->pushes;
	every(gpu, each_works);
	CHECK(fake->pushes == pushes && fake->retained[1] == 0);
	close_it(gpu);
	fake->retained[1]++; /* somebody else uses the primary one */
	gpu = open_any();
	pushes = fake->pushes;
	every(gpu, each_works);
	CHECK(fake->pushes == pushes && fake->retained[1] == 1);
	gpu->api->close(gpu);
	CHECK(fake->retained[1] == 1 && !fake->violations);
}

static void context_gone(void)
{
	struct um_gpu *gpu;
	int calls;

	driver();
	gpu = open_any();
	fake->fails = "cuCtxPushCurrent";
	fake->code = 709;
	CHECK(gpu->api->cudaEventQuery(gpu, why) == 709 && um_device_lost(gpu) == 709);
	calls = fake->calls;
	every(gpu, each_lost);
	CHECK(fake->calls == calls);
	gpu->api->close(gpu);
}

/* The driver may report a stream that the program destroyed like a destroyed context. */
static void stream_gone_by(const char *library, const char *fails)
{
	struct um_gpu *gpu;

	driver();
	if (library)
		load(library);
	gpu = open_any();
	fake->fails = fails;
	fake->code = UM_CUDA_CONTEXT_IS_DESTROYED;
	CHECK(gpu->api->cudaEventRecord(gpu, why, (um_stream)0x7000) == UM_CUDA_INVALID_HANDLE);
	CHECK(!um_device_lost(gpu) && !thread()->error);
	fake->fails = NULL;
	every(gpu, each_works);
	close_it(gpu);
}

static void stream_gone(void)
{
	stream_gone_by(NULL, "cuEventRecord");
}

static void stream_gone_runtime(void)
{
	stream_gone_by("libcudart.so.13", "cudaStreamIsCapturing");
}

/* --- capture ------------------------------------------------------------------------------------------------------ */

static void quiet(struct um_gpu *gpu, um_stream s)
{
	struct um_location here = um_on_device(0);
	const struct um_gpu_api *a = gpu->api;
	void *p = why, *args[1] = {NULL};
	size_t n = 1, at = 0;

	forget();
	CHECK(a->cudaEventRecord(gpu, p, s) == UM_CUDA_CAPTURING);
	CHECK(a->cudaStreamWaitEvent(gpu, s, p, 0) == UM_CUDA_CAPTURING);
	CHECK(a->cudaMemPrefetchAsync(gpu, p, 1, here, 0, s) == UM_CUDA_CAPTURING);
	CHECK(a->cudaMemPrefetchBatchAsync(gpu, &p, &n, 1, &here, &at, 1, 0, s) == UM_CUDA_CAPTURING);
	CHECK(a->cudaMemDiscardBatchAsync(gpu, &p, &n, 1, 0, s) == UM_CUDA_CAPTURING);
	CHECK(a->cudaMemDiscardAndPrefetchBatchAsync(gpu, &p, &n, 1, &here, &at, 1, 0, s) == UM_CUDA_CAPTURING);
	CHECK(a->cudaStreamSynchronize(gpu, s) == UM_CUDA_CAPTURING);
	CHECK(um_device_launch(gpu, p, 1, 1, s, args) == UM_CUDA_CAPTURING);
	CHECK(um_device_copy(gpu, p, p, 1, s) == UM_CUDA_CAPTURING);
	/* Nothing but the question was asked. */
	for (char *word = strtok(fake->log, " "); word; word = strtok(NULL, " "))
		CHECK(strstr(word, "StreamIsCapturing"));
	CHECK(thread()->error == 0 && thread()->depth == 0 && !um_device_lost(gpu));
}

static void capture_via(const char *library)
{
	struct um_gpu *gpu;
	int status = 0;

	driver();
	if (library)
		load(library);
	gpu = open_any();
	fake->capturing = 0x7000;
	quiet(gpu, (um_stream)0x7000);
	CHECK(gpu->api->cudaStreamIsCapturing(gpu, (um_stream)0x7000, &status) == 0 && status == 1);
	fake->capturing = 0;
	fake->implicit = 1;
	quiet(gpu, NULL);
	CHECK(gpu->api->cudaStreamIsCapturing(gpu, NULL, &status) == UM_CUDA_CAPTURE_IMPLICIT);
	forget();
	CHECK(gpu->api->cudaDeviceSynchronize(gpu) == UM_CUDA_CAPTURING);
	CHECK(!strstr(fake->log, "Synchronize"));
	/* A capture somewhere else forbids to wait or allocate on any thread that does not say that it knows. */
	fake->implicit = 0;
	fake->global_capture = 1;
	every(gpu, each_works);
	CHECK(thread()->mode == 0 && thread()->error == 0);
	fake->global_capture = 0;
	close_it(gpu);
}

static void capture(void)
{
	capture_via(NULL);
}

static void capture_runtime(void)
{
	capture_via("libcudart.so.13");
}

/* --- fork, exit, threads, kernels --------------------------------------------------------------------------------- */

static void forked(void)
{
	struct um_gpu *gpu;
	int status, calls;
	pid_t pid;

	driver();
	gpu = open_any();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		calls = fake->calls;
		every(gpu, each_lost);
		fake->retained[0] = 0; /* the parent's */
		refused(UM_VIA_ANY, 0, "forked");
		gpu->api->close(gpu);
		CHECK(fake->calls == calls);
		fflush(stdout);
		_exit(failed);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	every(gpu, each_works);
	close_it(gpu);
}

static struct um_gpu *at_exit_gpu;
static pthread_t helper_id;

/* Calls until it is told to stop. */
static void *helper(void *gpu)
{
	struct um_gpu *g = gpu;

	while (g->api->cudaEventQuery(g, why) != UM_CUDA_LOST)
		;
	return NULL;
}

static void at_exit(void)
{
	int calls;

	pthread_join(helper_id, NULL);
	calls = fake->calls;
	every(at_exit_gpu, each_lost);
	at_exit_gpu->api->close(at_exit_gpu);
	CHECK(fake->calls == calls);
	fflush(stdout);
	_exit(failed ? 1 : 42);
}

/* What the program does after our handler ran, with a helper still at work. */
static void ending(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(120);
		driver();
		atexit(at_exit);
		at_exit_gpu = open_any();
		if (pthread_create(&helper_id, NULL, helper, at_exit_gpu))
			_exit(1);
		exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void *work(void *gpu)
{
	int bad = 0;

	for (int i = 0; i < 50; i++) {
		um_event_handle e;
		struct um_gpu *g = gpu;

		bad += g->api->cudaEventCreateWithFlags(g, &e, 0) || g->api->cudaEventQuery(g, e) ||
		       g->api->cudaEventDestroy(g, e);
		bad += um_device_lost(g) || thread()->depth;
	}
	return bad ? gpu : NULL;
}

static void threads(void)
{
	struct um_gpu *gpu;
	pthread_t id[4];
	void *bad;

	driver();
	load("libcudart.so.13");
	gpu = open_any();
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&id[i], NULL, work, gpu) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(id[i], &bad) == 0 && !bad);
	close_it(gpu);
}

static void kernels(void)
{
	void *module, *function, *args[1] = {&module};
	struct um_gpu *gpu;
	char to[4] = "...";

	driver();
	gpu = open_any();
	CHECK(um_device_module_load(gpu, "ptx", &module) == 0 && um_device_function(gpu, module, "k", &function) == 0);
	CHECK(um_device_function(gpu, module, "none", &function) == 500);
	CHECK(um_device_launch(gpu, function, 7, 32, (um_stream)0x50, args) == 0);
	CHECK(fake->type == 7 && fake->id == 32 && fake->stream == (void *)0x50);
	CHECK(um_device_copy(gpu, to, "abc", 4, NULL) == 0 && !strcmp(to, "abc"));
	CHECK(um_device_module_unload(gpu, module) == 0);
	close_it(gpu);
	fake->missing = "cuLaunchKernel";
	gpu = open_any();
	CHECK(um_device_launch(gpu, function, 7, 32, NULL, args) == UM_CUDA_NOT_SUPPORTED);
	close_it(gpu);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct {
	void (*run)(void);
	const char *name;
} cases[] = {
	{no_driver, "no driver: said"},
	{init_errors, "a driver that does not start: said why"},
	{old_driver, "a driver older than the runtime: said, with both versions"},
	{devices, "devices that are not there or cannot do it: said which"},
	{missing, "a function that is needed and missing is named"},
	{optional, "an optional function that is missing is done without"},
	{trials, "calls that are there but refused are found out"},
	{whole, "a driver and device that have everything"},
	{forms_of_drivers, "hints in the form of the driver's version"},
	{runtime_13, "runtime 13: its functions, the new form under the plain names"},
	{runtime_12, "runtime 12.4: its functions, the new form under its names"},
	{runtime_12_0, "runtime 12.0: its functions, the old form"},
	{not_loaded, "a runtime that the process has not loaded is left alone"},
	{last_error, "the program's last error stays"},
	{sticky, "sticky errors: known, kept, and nothing called after"},
	{sticky_runtime, "sticky errors from the runtime are left to the program"},
	{stream_gone, "a destroyed stream is not the end of the device"},
	{stream_gone_runtime, "nor is it where the runtime is asked whether it captures"},
	{sticky_pending, "a sticky error that the program met first"},
	{passing, "other errors pass"},
	{contexts, "the thread's context stays"},
	{contexts_runtime, "the same with a runtime"},
	{current_device, "the current device is meant, if none is named"},
	{own_context, "a context of the program's own is used"},
	{context_gone, "a context that is gone"},
	{capture, "nothing on a capturing stream, and no harm to other captures"},
	{capture_runtime, "the same with a runtime"},
	{forked, "a forked child calls nothing, the parent goes on"},
	{ending, "while the process ends nothing is called"},
	{threads, "threads"},
	{kernels, "kernels of our own"},
};

static int run(void (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(120); /* rather an end than a test that hangs */
		fn();
		fflush(stdout);
		_exit(failed);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/tests/device/fake/libcuda.so.1", folder());
	if (access(path, R_OK))
		tap_skip_all("no fake CUDA libraries were built");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ok(run(cases[i].run), "%s", cases[i].name);
	return tap_done();
}
