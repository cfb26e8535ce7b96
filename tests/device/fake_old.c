/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_old.c - libcuda.so.1 of CUDA 11, for test_managed: no cuGetProcAddress_v2
 */
#include <stdlib.h>
#include <string.h>

/* Found by name, never declared. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define API __attribute__((visibility("default")))
#define MANAGED_MEMORY 83

API int fake_live, fake_outside; /* allocations; calls without the context */
API int fake_managed = 1; /* does the device have managed memory? */
API int fake_fails; /* the error of the next allocations */

static int primary;
static _Thread_local void *stack[4];
static _Thread_local int depth;

API int cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

API int cuCtxGetCurrent(void **context)
{
	*context = depth ? stack[depth - 1] : NULL;
	return 0;
}

API int cuCtxPushCurrent_v2(void *context)
{
	if (depth == 4)
		return 2;
	stack[depth++] = context;
	return 0;
}

API int cuCtxPopCurrent_v2(void **context)
{
	*context = depth ? stack[depth - 1] : NULL;
	return depth-- ? 0 : 201;
}

API int cuCtxGetDevice(int *device)
{
	*device = 0;
	return depth ? 0 : 201;
}

API int cuDeviceGet(int *device, int ordinal)
{
	*device = 0;
	return ordinal ? 101 : 0;
}

API int cuDeviceGetAttribute(int *value, int which, int device)
{
	*value = which == MANAGED_MEMORY && fake_managed;
	return device ? 101 : 0;
}

API int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &primary;
	return device ? 101 : 0;
}

API int cuMemAllocManaged(void **ptr, size_t bytes, unsigned flags)
{
	fake_outside += !depth || stack[depth - 1] != &primary;
	if (fake_fails)
		return fake_fails;
	*ptr = flags == 1 ? aligned_alloc(2 << 20, bytes) : NULL;
	fake_live += *ptr != NULL;
	return *ptr ? 0 : 1;
}

API int cuMemFree_v2(void *ptr)
{
	fake_outside += !depth || stack[depth - 1] != &primary;
	fake_live--;
	free(ptr);
	return 0;
}
