/* SPDX-License-Identifier: Apache-2.0
 *
 * run_hook_driver.c - a libcuda.so.1 that does nothing, for run_hook.sh: its calls cost next to nothing, so that what
 * is counted is the library's. Time does not pass, copies do not copy, every event is complete.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DRIVER __attribute__((visibility("default")))
#define MEMORY ((size_t)RUN_HOOK_MIB << 20)

DRIVER int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status);
DRIVER int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			  unsigned shared, void *stream, void **params, void **extra);
DRIVER int cuMemAlloc_v2(uint64_t *out, size_t bytes);
DRIVER int cuMemAllocManaged(uint64_t *out, size_t bytes, unsigned flags);
DRIVER int cuMemFree_v2(uint64_t at);
DRIVER int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra)
{
	(void)function;
	(void)gx;
	(void)gy;
	(void)gz;
	(void)bx;
	(void)by;
	(void)bz;
	(void)shared;
	(void)stream;
	(void)params;
	(void)extra;
	return 0;
}

/* Returns addresses that no memory backs, aligned to 2 MiB. */
int cuMemAllocManaged(uint64_t *out, size_t bytes, unsigned flags)
{
	static uint64_t next = (uint64_t)1 << 45;

	(void)flags;
	*out = next;
	next += (bytes + (2 << 20) - 1) >> 21 << 21;
	return 0;
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
	return cuMemAllocManaged(out, bytes, 1);
}

int cuMemFree_v2(uint64_t at)
{
	(void)at;
	return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	*free_bytes = *total = MEMORY;
	return 0;
}

/* --- what is only asked for --------------------------------------------------------------------------------------- */

static int nothing(void)
{
	return 0;
}

static int one(int *out)
{
	*out = 1;
	return 0;
}

static int version(int *out)
{
	*out = 13000;
	return 0;
}

static int zero(int *out)
{
	*out = 0;
	return 0;
}

static int attribute(int *out, int which, int device)
{
	(void)device;
	*out = which == 83 || which == 89; /* managed, concurrently */
	return 0;
}

static int handle(void **out)
{
	static uintptr_t next = 4096;

	*out = (void *)(next += 64);
	return 0;
}

static int context(void **out)
{
	*out = (void *)64;
	return 0;
}

static int retain(void **out, int device)
{
	(void)device;
	return context(out);
}

static int state(int device, unsigned *flags, int *active)
{
	(void)device;
	*flags = 0;
	*active = 1;
	return 0;
}

static int pinned(void **out, size_t bytes, unsigned flags)
{
	(void)flags;
	*out = calloc(1, bytes);
	return *out ? 0 : 2;
}

static int capturing(void *stream, int *status)
{
	(void)stream;
	*status = 0;
	return 0;
}

static int stream_id(void *stream, unsigned long long *id)
{
	*id = (uintptr_t)stream;
	return 0;
}

static int elapsed(float *ms, void *start, void *end)
{
	(void)start;
	(void)end;
	*ms = 1;
	return 0;
}

static int device_name(char *out, int size, int device)
{
	(void)device;
	if (size > 4)
		strcpy(out, "none");
	return 0;
}

/* Six pointers. */
static int param_info(void *function, size_t i, size_t *offset, size_t *bytes)
{
	(void)function;
	if (i >= 6)
		return 1;
	*offset = 8 * i;
	*bytes = 8;
	return 0;
}

static int function_name(const char **out, void *function)
{
	static const char names[][9] = {"kernel a", "kernel b", "kernel c", "kernel d",
					"kernel e", "kernel f", "kernel g", "kernel h"};

	*out = names[(uintptr_t)function / 4096 % 8];
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **fn, int wanted, uint64_t flags, int *status)
{
	static const struct {
		const char *name;
		void *fn;
	} known[] = {{"cuDriverGetVersion", (void *)version},
		     {"cuDeviceGetCount", (void *)one},
		     {"cuDeviceGet", (void *)zero},
		     {"cuDeviceGetName", (void *)device_name},
		     {"cuDeviceGetAttribute", (void *)attribute},
		     {"cuDevicePrimaryCtxRetain", (void *)retain},
		     {"cuDevicePrimaryCtxGetState", (void *)state},
		     {"cuCtxGetCurrent", (void *)context},
		     {"cuCtxPopCurrent", (void *)context},
		     {"cuCtxGetDevice", (void *)zero},
		     {"cuMemAlloc", (void *)cuMemAlloc_v2},
		     {"cuMemAllocManaged", (void *)cuMemAllocManaged},
		     {"cuMemFree", (void *)cuMemFree_v2},
		     {"cuMemGetInfo", (void *)cuMemGetInfo_v2},
		     {"cuMemHostAlloc", (void *)pinned},
		     {"cuStreamCreate", (void *)handle},
		     {"cuStreamGetId", (void *)stream_id},
		     {"cuStreamIsCapturing", (void *)capturing},
		     {"cuEventCreate", (void *)handle},
		     {"cuEventElapsedTime", (void *)elapsed},
		     {"cuFuncGetParamInfo", (void *)param_info},
		     {"cuFuncGetName", (void *)function_name},
		     {"cuLaunchKernel", (void *)cuLaunchKernel}};

	(void)wanted;
	(void)flags;
	*status = 0;
	*fn = strncmp(name, "cu", 2) == 0 ? (void *)nothing : NULL;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, name))
			*fn = known[i].fn;
	return 0;
}
