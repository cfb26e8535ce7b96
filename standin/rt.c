/* SPDX-License-Identifier: Apache-2.0
 *
 * rt.c - the stand-in CUDA runtime: finds the driver, contexts, errors
 *
 * The driver is loaded at its first use, because nvcc's start-up code registers before main.
 */
#include "standin/rt.h"

#include "gpu/standin_table.h"
#include "standin/absent.h"
#include "standin/errors.h"
#include "standin/rt_absent.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct um_rt um_rt;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int open_error;
#define DEVICES_MAX 64
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static void *contexts[DEVICES_MAX]; /* primary ones, retained until exit */
static _Thread_local int last_error;

static int driver_find(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *p;
	int version = 0;

	p = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
	if (!p)
		return UM_RT_INSUFFICIENT_DRIVER;
	memcpy(&um_rt.find, &p, sizeof p);
	um_rt.find(UM_STANDIN_NAME, &p, UM_RT_VERSION, 0, NULL);
	if (!p) {
		fprintf(stderr, "umadvise: this libcudart is for the stand-in driver only, and a real one was found\n");
		return UM_RT_INSUFFICIENT_DRIVER;
	}
#define FIND(name, version, params)                                                                                    \
	p = NULL;                                                                                                      \
	um_rt.find(#name, &p, version, 0, NULL);                                                                       \
	memcpy(&um_rt.name, &p, sizeof p);
	UM_RT_DRIVER(FIND)
	if (!um_rt.cuInit || !um_rt.cuDriverGetVersion || !um_rt.cuDevicePrimaryCtxRetain || !um_rt.cuCtxSetCurrent ||
	    !um_rt.cuCtxGetCurrent || um_rt.cuDriverGetVersion(&version) || version / 1000 < UM_RT_MAJOR)
		return UM_RT_INSUFFICIENT_DRIVER;
	return UM_CUDA_OK;
}

static void start(void)
{
	open_error = driver_find();
	if (!open_error)
		open_error = um_rt.cuInit(0);
}

/* Makes the device's primary context current. */
int um_rt_set_device(int device)
{
	int err = UM_CUDA_OK;
	void *context;

	if (device < 0 || device >= DEVICES_MAX)
		return UM_CUDA_INVALID_DEVICE;
	pthread_mutex_lock(&contexts_lock);
	if (!contexts[device])
		err = um_rt.cuDevicePrimaryCtxRetain(&contexts[device], device);
	context = contexts[device];
	pthread_mutex_unlock(&contexts_lock);
	return err ? err : um_rt.cuCtxSetCurrent(context);
}

int um_rt_enter(void)
{
	void *now = NULL;

	pthread_once(&once, start);
	if (open_error)
		return open_error;
	um_rt.cuCtxGetCurrent(&now);
	return now ? UM_CUDA_OK : um_rt_set_device(0);
}

int um_rt_done(int err)
{
	if (err && err != UM_CUDA_NOT_READY)
		last_error = err;
	return err;
}

int um_rt_absent(const char *name)
{
	um_absent_tell(name);
	return UM_CUDA_NOT_SUPPORTED;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

UM_EXPORT int cudaGetLastError(void);
int cudaGetLastError(void)
{
	int err = last_error;

	last_error = 0;
	return err;
}

UM_EXPORT int cudaPeekAtLastError(void);
int cudaPeekAtLastError(void)
{
	return last_error;
}

UM_EXPORT const char *cudaGetErrorName(int error);
const char *cudaGetErrorName(int error)
{
	const struct um_error_text *t = um_error_text(error);

	return t ? t->runtime : "unrecognized error code";
}

UM_EXPORT const char *cudaGetErrorString(int error);
const char *cudaGetErrorString(int error)
{
	const struct um_error_text *t = um_error_text(error);

	return t ? t->text : "unrecognized error code";
}

/* --- versions, entry points --------------------------------------------------------------------------------------- */

UM_EXPORT int cudaRuntimeGetVersion(int *version);
int cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return um_rt_done(UM_CUDA_INVALID_VALUE);
	*version = UM_RT_VERSION;
	return UM_CUDA_OK;
}

UM_EXPORT int cudaDriverGetVersion(int *version);
int cudaDriverGetVersion(int *version)
{
	if (!version)
		return um_rt_done(UM_CUDA_INVALID_VALUE);
	*version = 0;
	pthread_once(&once, start);
	return um_rt.cuDriverGetVersion ? um_rt.cuDriverGetVersion(version) : UM_CUDA_OK;
}

static int entry_point(const char *name, void **fn, unsigned version, unsigned long long flags, int *status)
{
	int err = um_rt_enter();

	return um_rt_done(err ? err : um_rt.find(name, fn, (int)version, flags, status));
}

UM_EXPORT int cudaGetDriverEntryPoint(const char *name, void **fn, unsigned long long flags, int *status);
int cudaGetDriverEntryPoint(const char *name, void **fn, unsigned long long flags, int *status)
{
	return entry_point(name, fn, UM_RT_VERSION, flags, status);
}

UM_EXPORT int cudaGetDriverEntryPoint_ptsz(const char *name, void **fn, unsigned long long flags, int *status);
int cudaGetDriverEntryPoint_ptsz(const char *name, void **fn, unsigned long long flags, int *status)
{
	return entry_point(name, fn, UM_RT_VERSION, flags ? flags : 2, status);
}

UM_EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **fn, unsigned version, unsigned long long flags,
					       int *status);
int cudaGetDriverEntryPointByVersion(const char *name, void **fn, unsigned version, unsigned long long flags,
				     int *status)
{
	return entry_point(name, fn, version, flags, status);
}

/* --- what is not there -------------------------------------------------------------------------------------------- */

#define ABSENT(name)                                                                                                   \
	UM_EXPORT int name(void);                                                                                      \
	int name(void)                                                                                                 \
	{                                                                                                              \
		return um_rt_done(um_rt_absent(#name));                                                                \
	}
UM_RT_ABSENT(ABSENT)
UM_RT_ABSENT_HERE(ABSENT)
