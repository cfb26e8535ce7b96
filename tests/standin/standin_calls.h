/* SPDX-License-Identifier: Apache-2.0
 *
 * standin_calls.h - the stand-in driver of the build tree, called as a program would without CUDA's headers
 *
 *     calls_open("13.0");
 *     CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&p, 4096)
 */
#ifndef UM_TESTS_STANDIN_CALLS_H
#define UM_TESTS_STANDIN_CALLS_H

#include "gpu/standin_table.h"
#include "tap.h"

#include <dlfcn.h>

static int (*get_)(const char *name, void **fn, int version, unsigned long long flags, int *status);

static inline void *call_find(const char *name, int version, unsigned long long flags)
{
	void *fn = NULL;

	if (get_(name, &fn, version, flags, NULL))
		return NULL;
	return fn;
}

/* A driver's function by base name and version, with the types of its parameters. */
#define CALL(name, version, ...) ((int (*)(__VA_ARGS__))call_find(#name, version, 0))
#define CALL_PTSZ(name, version, ...) ((int (*)(__VA_ARGS__))call_find(#name, version, 2))

/* A device and a context of it, current here. `version`: of the driver to imitate. */
static inline void *calls_open(const char *version)
{
	void *context = NULL, *lib;

	setenv("UMADVISE_DRYRUN_CUDA", version, 1);
	lib = dlopen("./standin/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		tap_skip_all("the stand-in driver was not built");
	*(void **)&get_ = dlsym(lib, "cuGetProcAddress_v2");
	if (!get_)
		tap_bail("no cuGetProcAddress_v2");
	if (CALL(cuInit, 2000, unsigned)(0) || CALL(cuDevicePrimaryCtxRetain, 7000, void **, int)(&context, 0) ||
	    CALL(cuCtxSetCurrent, 4000, void *)(context))
		tap_bail("no device");
	return context;
}

static inline TAP_UNUSED const struct um_standin_table *calls_table(void)
{
	return call_find(UM_STANDIN_NAME, 13000, 0);
}

#endif
