/* SPDX-License-Identifier: Apache-2.0
 *
 * managed.c - managed memory from a driver that takes no hints
 *
 * A program that calls the library for its memory must not get host memory where kernels run: they would end with
 * error 700. A driver before 12.0 has no cuGetProcAddress_v2, so the functions are taken by their exported names.
 */
#include "gpu/managed.h"

#include "gpu/device_calls.h"
#include "gpu/libraries.h"
#include "gpu/null.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define FUNCTIONS(X)                                                                                                   \
	X(init, "cuInit", (unsigned))                                                                                  \
	X(current, "cuCtxGetCurrent", (void **))                                                                       \
	X(push, "cuCtxPushCurrent_v2", (void *))                                                                       \
	X(pop, "cuCtxPopCurrent_v2", (void **))                                                                        \
	X(device_of, "cuCtxGetDevice", (int *))                                                                        \
	X(device, "cuDeviceGet", (int *, int))                                                                         \
	X(attribute, "cuDeviceGetAttribute", (int *, int, int))                                                        \
	X(retain, "cuDevicePrimaryCtxRetain", (void **, int))                                                          \
	X(malloc_managed, "cuMemAllocManaged", (void **, size_t, unsigned))                                            \
	X(memory_free, "cuMemFree_v2", (void *))

#define FIELD(field, name, args) int(*field) args;
#define LOOK_UP(field, name, args) {&driver.field, name},

/* Of the process: the driver is never unloaded, and the context is retained until the process ends. */
static struct {
	FUNCTIONS(FIELD)
	void *context;
	int err; /* of opening it */
} driver;

static struct um_gpu_api api; /* the null device's, with memory of the driver. Constant once the driver is open */

static int is_complete(void *lib)
{
	const struct {
		void *at;
		const char *name;
	} rows[] = {FUNCTIONS(LOOK_UP)};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *fn = dlsym(lib, rows[i].name);

		if (!fn)
			return 0;
		memcpy(rows[i].at, &fn, sizeof fn);
	}
	return 1;
}

/* The program's current context, or the primary one of its first device. */
static int find_context(void)
{
	int device = 0, managed = 0;

	if (driver.init(0))
		return -ENODEV;
	if (driver.current(&driver.context))
		driver.context = NULL;
	if (driver.context) {
		if (driver.device_of(&device))
			return -ENODEV;
	} else if (driver.device(&device, 0) || driver.retain(&driver.context, device)) {
		return -ENODEV;
	}
	return driver.attribute(&managed, UM_AT_MANAGED_MEMORY, device) || !managed ? -ENODEV : 0;
}

static int malloc_managed(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	void *ours;
	int err = driver.push(driver.context);

	(void)gpu;
	if (err)
		return err;
	err = driver.malloc_managed(ptr, bytes, flags);
	driver.pop(&ours);
	return err;
}

static int memory_free(struct um_gpu *gpu, void *ptr)
{
	void *ours;
	int err = ptr ? driver.push(driver.context) : 0;

	(void)gpu;
	if (err || !ptr)
		return err;
	err = driver.memory_free(ptr);
	driver.pop(&ours);
	return err;
}

static void open_driver(void)
{
	void *lib = dlopen(UM_LIBRARY_DRIVER, RTLD_NOW);
	struct um_gpu *null;

	driver.err = lib && is_complete(lib) ? find_context() : -ENODEV;
	if (!driver.err)
		driver.err = um_null_open(&null, UINT64_MAX / 2, 0);
	if (driver.err)
		return;
	api = *null->api;
	api.cudaMallocManaged = malloc_managed;
	api.cudaFree = memory_free;
	null->api->close(null);
}

int um_managed_open(struct um_gpu **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct um_gpu *gpu;
	int err;

	pthread_once(&once, open_driver);
	if (driver.err)
		return driver.err;
	err = um_null_open(&gpu, UINT64_MAX / 2, 0);
	if (err)
		return err;
	gpu->api = &api;
	*out = gpu;
	return 0;
}
