/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.c - libcuda.so.1, or with FAKE_RUNTIME=1200, 1204 or 1300 a libcudart of that version, over it
 */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Found by name, never declared. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define HOST_NUMA 3

struct location {
	int type, id;
};

#define API __attribute__((visibility("default")))

#ifdef FAKE_RUNTIME

#define FN(rt, cu) API int rt
#define RETURN(name, context, value)                                                                                   \
	do {                                                                                                           \
		int err_ = fake_call(name, context);                                                                   \
		err_ = err_ ? err_ : (value);                                                                          \
		if (err_)                                                                                              \
			fake_thread()->error = err_;                                                                   \
		return err_;                                                                                           \
	} while (0)
#define CALL(rt, cu, value) RETURN(#rt, 1, value)

API int cudaRuntimeGetVersion(int *version)
{
	*version = FAKE_RUNTIME * 10;
	return 0;
}

API int cudaGetDevice(int *device)
{
	*device = fake_thread()->device;
	return 0;
}

API int cudaGetLastError(void)
{
	int err = fake_thread()->error;

	fake_thread()->error = 0;
	return err;
}

API int cudaPeekAtLastError(void)
{
	return fake_thread()->error;
}

#else

#define FN(rt, cu) static int cu
#define RETURN(name, context, value)                                                                                   \
	do {                                                                                                           \
		int err_ = fake_call(name, context);                                                                   \
		return err_ ? err_ : (value);                                                                          \
	} while (0)
#define CALL(rt, cu, value) RETURN(#cu, 1, value)

static struct fake fake = {.version = 13000, .devices = 1, .nodes = 1};
static __thread struct fake_thread thread;

API struct fake *fake_state(void)
{
	return &fake;
}

API struct fake_thread *fake_thread(void)
{
	return &thread;
}

static int unsafe(const char *name)
{
	static const char *safe[] = {"Record",	    "WaitEvent",   "IsCapturing",  "LaunchKernel",
				     "MemcpyAsync", "EventCreate", "EventDestroy", "Elapsed"};

	for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
		if (strstr(name, safe[i]))
			return 0;
	return 1;
}

/* Counts; what must be so before any call is looked at; 0 or the code that was told. */
API int fake_call(const char *name, int context)
{
	static char lock;

	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		;
	fake.calls++;
	snprintf(fake.last, sizeof fake.last, "%s", name);
	if (context && strlen(fake.log) + strlen(name) + 2 < sizeof fake.log)
		strcat(strcat(fake.log, " "), name);
	if (context && (!thread.depth || !thread.stack[thread.depth - 1]))
		fake.violations++;
	__atomic_clear(&lock, __ATOMIC_RELEASE);
	if (fake.fails && !strcmp(fake.fails, name))
		return fake.code;
	return context && fake.global_capture && unsafe(name) && thread.mode != 2 ? 900 : 0;
}

#endif

/* Declared by the library under test, so it may differ from CUDA's own types where registers do not. */
static int fresh(void **ptr, size_t bytes)
{
	*ptr = calloc(1, bytes ? bytes : 1);
	return *ptr ? 0 : 2;
}

static int gone(void *ptr)
{
	free(ptr);
	return 0;
}

static int hint(int type, int id, unsigned flags, void *stream)
{
	struct fake *f = fake_state();

	f->type = type;
	f->id = id;
	f->flags = flags;
	f->stream = stream;
	return type == HOST_NUMA && (id < 0 || id >= f->nodes) ? 1 : 0;
}

static int captures(void *stream, int *status)
{
	*status = fake_state()->capturing && (uintptr_t)stream == fake_state()->capturing;
	return !stream && fake_state()->implicit ? 906 : 0;
}

static int zero(float *ms)
{
	*ms = 0;
	return 0;
}

static int memory(size_t *free_bytes, size_t *total)
{
	*free_bytes = (size_t)6 << 30;
	*total = (size_t)8 << 30;
	return 0;
}

FN(cudaMallocManaged, cuMemAllocManaged)(void **p, size_t n, unsigned flags)
{
	CALL(cudaMallocManaged, cuMemAllocManaged, flags == 1 ? fresh(p, n) : 1);
}

FN(cudaMalloc, cuMemAlloc)(void **p, size_t n)
{
	CALL(cudaMalloc, cuMemAlloc, fresh(p, n));
}

FN(cudaFree, cuMemFree)(void *p)
{
	CALL(cudaFree, cuMemFree, gone(p));
}

FN(cudaMemGetInfo, cuMemGetInfo)(size_t *free_bytes, size_t *total)
{
	CALL(cudaMemGetInfo, cuMemGetInfo, memory(free_bytes, total));
}

FN(cudaStreamCreateWithFlags, cuStreamCreate)(void **stream, unsigned flags)
{
	CALL(cudaStreamCreateWithFlags, cuStreamCreate, flags == 1 ? fresh(stream, 8) : 1);
}

FN(cudaStreamDestroy, cuStreamDestroy)(void *stream)
{
	CALL(cudaStreamDestroy, cuStreamDestroy, gone(stream));
}

FN(cudaStreamSynchronize, cuStreamSynchronize)(void *stream)
{
	(void)stream;
	CALL(cudaStreamSynchronize, cuStreamSynchronize, 0);
}

FN(cudaDeviceSynchronize, cuCtxSynchronize)(void)
{
	CALL(cudaDeviceSynchronize, cuCtxSynchronize, 0);
}

FN(cudaStreamWaitEvent, cuStreamWaitEvent)(void *stream, void *event, unsigned flags)
{
	CALL(cudaStreamWaitEvent, cuStreamWaitEvent, hint(0, event != NULL, flags, stream));
}

FN(cudaStreamIsCapturing, cuStreamIsCapturing)(void *stream, int *status)
{
	CALL(cudaStreamIsCapturing, cuStreamIsCapturing, captures(stream, status));
}

FN(cudaHostAlloc, cuMemHostAlloc)(void **p, size_t n, unsigned flags)
{
	CALL(cudaHostAlloc, cuMemHostAlloc, flags ? 1 : fresh(p, n));
}

FN(cudaFreeHost, cuMemFreeHost)(void *p)
{
	CALL(cudaFreeHost, cuMemFreeHost, gone(p));
}

FN(cudaEventCreateWithFlags, cuEventCreate)(void **event, unsigned flags)
{
	CALL(cudaEventCreateWithFlags, cuEventCreate, flags & ~2u ? 1 : fresh(event, 8));
}

FN(cudaEventDestroy, cuEventDestroy)(void *event)
{
	CALL(cudaEventDestroy, cuEventDestroy, gone(event));
}

FN(cudaEventRecord, cuEventRecord)(void *event, void *stream)
{
	CALL(cudaEventRecord, cuEventRecord, hint(0, event != NULL, 0, stream));
}

FN(cudaEventQuery, cuEventQuery)(void *event)
{
	CALL(cudaEventQuery, cuEventQuery, event ? 0 : 400);
}

FN(cudaEventSynchronize, cuEventSynchronize)(void *event)
{
	CALL(cudaEventSynchronize, cuEventSynchronize, event ? 0 : 400);
}

FN(cudaEventElapsedTime, cuEventElapsedTime)(float *ms, void *start, void *end)
{
	CALL(cudaEventElapsedTime, cuEventElapsedTime, start && end ? zero(ms) : 400);
}

/* The old forms: the plain names of runtime 12, and the driver's up to 12.1. */
#if !defined FAKE_RUNTIME || FAKE_RUNTIME < 1300
FN(cudaMemPrefetchAsync, cuMemPrefetchAsync)(const void *p, size_t n, int device, void *stream)
{
	CALL(cudaMemPrefetchAsync, cuMemPrefetchAsync, p && n ? hint(-1, device, 0, stream) : 1);
}

FN(cudaMemAdvise, cuMemAdvise)(const void *p, size_t n, int advice, int device)
{
	CALL(cudaMemAdvise, cuMemAdvise, p && n ? hint(-1, device, (unsigned)advice, NULL) : 1);
}
#endif

#if !defined FAKE_RUNTIME || FAKE_RUNTIME != 1200
#if defined FAKE_RUNTIME && FAKE_RUNTIME >= 1300
#define NEW(rt, cu) FN(rt, cu)
#else
#define NEW(rt, cu) FN(rt##_v2, cu##_v2)
#endif
NEW(cudaMemPrefetchAsync, cuMemPrefetchAsync)
(const void *p, size_t n, struct location to, unsigned flags, void *stream)
{
	CALL(cudaMemPrefetchAsync_new, cuMemPrefetchAsync_v2, p && n ? hint(to.type, to.id, flags, stream) : 1);
}

NEW(cudaMemAdvise, cuMemAdvise)(const void *p, size_t n, int advice, struct location where)
{
	CALL(cudaMemAdvise_new, cuMemAdvise_v2, p && n ? hint(where.type, where.id, (unsigned)advice, NULL) : 1);
}
#endif

#if !defined FAKE_RUNTIME || FAKE_RUNTIME >= 1300
FN(cudaMemPrefetchBatchAsync, cuMemPrefetchBatchAsync)
(void **p, size_t *n, size_t count, struct location *to, size_t *at, size_t places, unsigned long long flags, void *s)
{
	CALL(cudaMemPrefetchBatchAsync, cuMemPrefetchBatchAsync,
	     p && n && at && count >= places ? hint(to->type, to->id, (unsigned)flags, s) : 1);
}

FN(cudaMemDiscardBatchAsync, cuMemDiscardBatchAsync)
(void **p, size_t *n, size_t count, unsigned long long flags, void *s)
{
	CALL(cudaMemDiscardBatchAsync, cuMemDiscardBatchAsync, p && n && count ? hint(0, 0, (unsigned)flags, s) : 1);
}

FN(cudaMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync)
(void **p, size_t *n, size_t count, struct location *to, size_t *at, size_t places, unsigned long long flags, void *s)
{
	CALL(cudaMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync,
	     p && n && at && count >= places ? hint(to->type, to->id, (unsigned)flags, s) : 1);
}
#endif

/* --- of the driver alone ------------------------------------------------------------------------------------------ */

#ifndef FAKE_RUNTIME

static int cuInit(unsigned flags)
{
	RETURN("cuInit", 0, flags ? 1 : fake.init_error);
}

static int cuDriverGetVersion(int *version)
{
	*version = fake.version;
	RETURN("cuDriverGetVersion", 0, 0);
}

static int cuDeviceGetCount(int *n)
{
	*n = fake.devices;
	RETURN("cuDeviceGetCount", 0, 0);
}

static int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	RETURN("cuDeviceGet", 0, ordinal < fake.devices ? 0 : 101);
}

static int cuDeviceGetName(char *name, int n, int device)
{
	snprintf(name, (size_t)n, "Fake %d", device);
	RETURN("cuDeviceGetName", 0, 0);
}

/* It ends with the process id: tests that run at the same time share no device. */
static int cuDeviceGetUuid(unsigned char *uuid, int device)
{
	uint32_t pid = (uint32_t)getpid();

	for (int i = 0; i < 12; i++)
		uuid[i] = (unsigned char)(0xa0 + device + i);
	memcpy(uuid + 12, &pid, sizeof pid);
	RETURN("cuDeviceGetUuid", 0, 0);
}

static int cuDeviceGetAttribute(int *value, int which, int device)
{
	*value = fake.attributes[device][which];
	RETURN("cuDeviceGetAttribute", 0, 0);
}

static int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = FAKE_CONTEXT(device);
	fake.retained[device]++;
	RETURN("cuDevicePrimaryCtxRetain", 0, 0);
}

static int cuDevicePrimaryCtxRelease(int device)
{
	fake.violations += fake.retained[device]-- <= 0;
	RETURN("cuDevicePrimaryCtxRelease", 0, 0);
}

static int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = fake.retained[device] > 0;
	RETURN("cuDevicePrimaryCtxGetState", 0, 0);
}

static int cuCtxGetCurrent(void **context)
{
	*context = thread.depth ? thread.stack[thread.depth - 1] : NULL;
	RETURN("cuCtxGetCurrent", 0, 0);
}

static int cuCtxPushCurrent(void *context)
{
	__atomic_fetch_add(&fake.pushes, 1, __ATOMIC_RELAXED);
	thread.stack[thread.depth++] = context;
	RETURN("cuCtxPushCurrent", 0, 0);
}

static int cuCtxPopCurrent(void **context)
{
	if (!thread.depth)
		__atomic_fetch_add(&fake.violations, 1, __ATOMIC_RELAXED);
	else
		*context = thread.stack[--thread.depth];
	RETURN("cuCtxPopCurrent", 0, 0);
}

static int cuCtxGetDevice(int *device)
{
	uintptr_t at = thread.depth ? (uintptr_t)thread.stack[thread.depth - 1] : 0;

	if (!at)
		return 201;
	*device = (int)((at - 0x1000) / 16 % FAKE_DEVICES);
	RETURN("cuCtxGetDevice", 0, 0);
}

static int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = thread.mode;

	thread.mode = *mode;
	*mode = old;
	RETURN("cuThreadExchangeStreamCaptureMode", 0, 0);
}

static int cuModuleLoadData(void **module, const void *image)
{
	CALL(, cuModuleLoadData, image ? fresh(module, 8) : 1);
}

static int cuModuleUnload(void *module)
{
	CALL(, cuModuleUnload, gone(module));
}

static int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = module;
	CALL(, cuModuleGetFunction, strcmp(name, "none") ? 0 : 500);
}

static int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			  unsigned shared, void *stream, void **args, void **extra)
{
	CALL(, cuLaunchKernel,
	     f && args && !extra && gy * gz * by * bz == 1 && !shared ? hint((int)gx, (int)bx, 0, stream) : 1);
}

static int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *stream)
{
	memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
	CALL(, cuMemcpyAsync, hint(0, 0, 0, stream));
}

/* By base name; of several the last that is not above the version asked for, nor the driver's. */
static const struct {
	const char *name;
	int since;
	void *fn;
} rows[] = {
#define ROW(fn, since) {#fn, since, (void *)fn},
#define ROW_AS(name, fn, since) {#name, since, (void *)fn},
	ROW(cuInit, 2000) ROW(cuDriverGetVersion, 2020) ROW(cuDeviceGetCount, 2000) ROW(cuDeviceGet, 2000) ROW(
		cuDeviceGetName, 2000) ROW(cuDeviceGetAttribute, 2000) ROW(cuDevicePrimaryCtxRetain,
									   7000) ROW(cuDevicePrimaryCtxRelease, 11000)
		ROW(cuDevicePrimaryCtxGetState, 7000) ROW(cuCtxGetCurrent, 4000) ROW(cuCtxPushCurrent, 4000) ROW(
			cuCtxPopCurrent, 4000) ROW(cuCtxGetDevice, 2000) ROW(cuThreadExchangeStreamCaptureMode,
									     10010) ROW(cuMemAllocManaged, 6000)
			ROW(cuMemAlloc, 3020) ROW(cuMemFree, 3020) ROW(cuMemGetInfo, 3020) ROW(
				cuStreamCreate, 2000) ROW(cuStreamDestroy, 4000) ROW(cuStreamSynchronize,
										     2000) ROW(cuCtxSynchronize, 2000)
				ROW(cuStreamWaitEvent, 3020) ROW(cuStreamIsCapturing, 10000) ROW(cuMemHostAlloc, 2020)
					ROW(cuMemFreeHost, 2000) ROW(cuEventCreate, 2000) ROW(cuEventDestroy, 4000) ROW(
						cuEventRecord, 2000) ROW(cuEventQuery,
									 2000) ROW(cuEventSynchronize,
										   2000) ROW(cuEventElapsedTime, 2000)
						ROW(cuModuleLoadData, 2000) ROW(cuModuleUnload, 2000) ROW(
							cuModuleGetFunction, 2000) ROW(cuLaunchKernel, 4000)
							ROW(cuMemcpyAsync, 4000) ROW(cuMemPrefetchAsync, 8000) ROW_AS(
								cuMemPrefetchAsync, cuMemPrefetchAsync_v2,
								12020) ROW(cuMemAdvise, 8000)
								ROW_AS(cuMemAdvise, cuMemAdvise_v2,
								       12020) ROW(cuMemPrefetchBatchAsync, 13000)
									ROW(cuMemDiscardBatchAsync, 13000)
										ROW(cuMemDiscardAndPrefetchBatchAsync,
										    13000) ROW(cuDeviceGetUuid, 9020)};

API int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	(void)flags;
	*fn = NULL;
	*status = 1;
	if (fake.proc_error)
		return fake.proc_error;
	if (fake.missing && !strcmp(fake.missing, name))
		return 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].name, name) && rows[i].since <= version && rows[i].since <= fake.version)
			*fn = rows[i].fn;
	*status = !*fn;
	return 0;
}
#endif
