/* SPDX-License-Identifier: Apache-2.0
 *
 * rt.h - a libcudart.so.13 (or .12) for programs under the stand-in driver: shared by the rt_*.c files
 *
 * in    calls of the CUDA runtime API, made by a program that nvcc has linked to the shared runtime
 * out   calls of the driver API, by name and version through cuGetProcAddress, as a runtime makes them
 * owns  registrations of nvcc's start-up code: fat binaries, kernels, variables; the thread's last error
 *
 * NVIDIA's runtime starts on NVIDIA's driver only (export.c), so the stand-in has a runtime of its own, written from
 * the public headers. It refuses every driver but the stand-in. Missing functions return 801 and are named
 * (rt_absent.h).
 *
 *     rt.c         opening, contexts, errors
 *     rt_binary.c  registration, kernels by their host address, launches, symbols
 *     rt_device.c  devices, properties
 *     rt_memory.c  memory, copies, hints
 *     rt_stream.c  streams, events, capture, graphs
 *
 * UM_RT_MAJOR is 13 or 12: the library is built once for each.
 */
#ifndef UM_STANDIN_RT_H
#define UM_STANDIN_RT_H

#include "gpu/gpu.h"

#include <string.h>

#define UM_EXPORT __attribute__((visibility("default")))
#define UM_RT_VERSION (UM_RT_MAJOR == 13 ? 13000 : 12040)

enum um_rt_error {
	UM_RT_INVALID_SYMBOL = 13,
	UM_RT_INSUFFICIENT_DRIVER = 35,
	UM_RT_INVALID_FUNCTION = 98,
	UM_RT_NOT_FOUND = 500
};

struct um_rt_dim3 { /* dim3 */
	unsigned x, y, z;
};

struct um_rt_copy2d { /* CUDA_MEMCPY2D */
	size_t from_x, from_y;
	unsigned from_type;
	const void *from_host;
	uintptr_t from_device;
	void *from_array;
	size_t from_pitch, to_x, to_y;
	unsigned to_type;
	void *to_host;
	uintptr_t to_device;
	void *to_array;
	size_t to_pitch, width, height;
};

struct um_rt_launch { /* CUlaunchConfig */
	unsigned grid[3], block[3], shared;
	void *stream, *attributes;
	unsigned n_attributes;
};

/* The driver's functions in use: name, version asked for, parameters. */
#define UM_RT_DRIVER(X)                                                                                                \
	X(cuCtxGetCurrent, 4000, (void **ctx))                                                                         \
	X(cuCtxGetLimit, 3010, (size_t * value, int limit))                                                            \
	X(cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest))                                              \
	X(cuCtxSetCurrent, 4000, (void *ctx))                                                                          \
	X(cuCtxSetLimit, 3010, (int limit, size_t value))                                                              \
	X(cuCtxSynchronize, 2000, (void))                                                                              \
	X(cuCtxDisablePeerAccess, 4000, (void *ctx))                                                                   \
	X(cuCtxEnablePeerAccess, 4000, (void *ctx, unsigned flags))                                                    \
	X(cuCtxGetDevice, 2000, (int *device))                                                                         \
	X(cuDeviceCanAccessPeer, 4000, (int *can, int device, int peer))                                               \
	X(cuDeviceGetP2PAttribute, 8000, (int *value, int attribute, int device, int peer))                            \
	X(cuDeviceGetAttribute, 2000, (int *value, int attribute, int device))                                         \
	X(cuDeviceGetByPCIBusId, 4010, (int *device, const char *id))                                                  \
	X(cuDeviceGetCount, 2000, (int *count))                                                                        \
	X(cuDeviceGetDefaultMemPool, 11020, (void **pool, int device))                                                 \
	X(cuDeviceGetMemPool, 11020, (void **pool, int device))                                                        \
	X(cuDeviceSetMemPool, 11020, (int device, void *pool))                                                         \
	X(cuDeviceGetName, 2000, (char *name, int size, int device))                                                   \
	X(cuDeviceGetPCIBusId, 4010, (char *id, int size, int device))                                                 \
	X(cuDeviceGetUuid, 9020, (char *uuid, int device))                                                             \
	X(cuDevicePrimaryCtxReset, 7000, (int device))                                                                 \
	X(cuDevicePrimaryCtxRetain, 7000, (void **ctx, int device))                                                    \
	X(cuDeviceTotalMem, 3020, (size_t * bytes, int device))                                                        \
	X(cuDriverGetVersion, 2020, (int *version))                                                                    \
	X(cuEventCreate, 2000, (void **event, unsigned flags))                                                         \
	X(cuEventDestroy, 4000, (void *event))                                                                         \
	X(cuEventElapsedTime, 2000, (float *ms, void *start, void *end))                                               \
	X(cuEventQuery, 2000, (void *event))                                                                           \
	X(cuEventRecord, 2000, (void *event, void *stream))                                                            \
	X(cuEventRecordWithFlags, 11010, (void *event, void *stream, unsigned flags))                                  \
	X(cuEventSynchronize, 2000, (void *event))                                                                     \
	X(cuFuncGetAttribute, 2020, (int *value, int attribute, void *function))                                       \
	X(cuFuncGetParamInfo, 12040, (void *function, size_t index, size_t *offset, size_t *bytes))                    \
	X(cuFuncSetAttribute, 9000, (void *function, int attribute, int value))                                        \
	X(cuFuncSetCacheConfig, 3000, (void *function, int config))                                                    \
	X(cuGraphDestroy, 10000, (void *graph))                                                                        \
	X(cuGraphExecDestroy, 10000, (void *exec))                                                                     \
	X(cuGraphExecUpdate, 12000, (void *exec, void *graph, void *result))                                           \
	X(cuGraphGetNodes, 10000, (void *graph, void **nodes, size_t *n))                                              \
	X(cuGraphInstantiateWithFlags, 11040, (void **exec, void *graph, unsigned long long flags))                    \
	X(cuGraphLaunch, 10000, (void *exec, void *stream))                                                            \
	X(cuGraphUpload, 11010, (void *exec, void *stream))                                                            \
	X(cuInit, 2000, (unsigned flags))                                                                              \
	X(cuLaunchCooperativeKernel, 9000,                                                                             \
	  (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,               \
	   unsigned shared, void *stream, void **params))                                                              \
	X(cuLaunchHostFunc, 10000, (void *stream, void (*fn)(void *arg), void *arg))                                   \
	X(cuLaunchKernel, 4000,                                                                                        \
	  (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,               \
	   unsigned shared, void *stream, void **params, void **extra))                                                \
	X(cuLaunchKernelEx, 11060, (const struct um_rt_launch *config, void *function, void **params, void **extra))   \
	X(cuLibraryGetGlobal, 12000, (void **at, size_t *bytes, void *library, const char *name))                      \
	X(cuLibraryGetKernel, 12000, (void **kernel, void *library, const char *name))                                 \
	X(cuLibraryGetManaged, 12000, (void **at, size_t *bytes, void *library, const char *name))                     \
	X(cuLibraryLoadData, 12000,                                                                                    \
	  (void **library, const void *image, int *jit, void **jit_values, unsigned n_jit, int *options,               \
	   void **values, unsigned n))                                                                                 \
	X(cuMemAdvise, 12020, (const void *ptr, size_t bytes, int advice, struct um_location where))                   \
	X(cuMemAlloc, 3020, (void **ptr, size_t bytes))                                                                \
	X(cuMemAllocAsync, 11020, (void **ptr, size_t bytes, void *stream))                                            \
	X(cuMemAllocFromPoolAsync, 11020, (void **ptr, size_t bytes, void *pool, void *stream))                        \
	X(cuMemGetDefaultMemPool, 13000, (void **pool, void *location, int type))                                      \
	X(cuMemGetMemPool, 13000, (void **pool, void *location, int type))                                             \
	X(cuMemPoolCreate, 11020, (void **pool, const void *props))                                                    \
	X(cuMemPoolDestroy, 11020, (void *pool))                                                                       \
	X(cuMemPoolGetAccess, 11020, (int *flags, void *pool, void *location))                                         \
	X(cuMemPoolGetAttribute, 11020, (void *pool, int attribute, void *value))                                      \
	X(cuMemPoolSetAccess, 11020, (void *pool, const void *access, size_t n))                                       \
	X(cuMemPoolSetAttribute, 11020, (void *pool, int attribute, void *value))                                      \
	X(cuMemPoolTrimTo, 11020, (void *pool, size_t bytes))                                                          \
	X(cuMemSetMemPool, 13000, (void *location, int type, void *pool))                                              \
	X(cuMemAllocManaged, 6000, (void **ptr, size_t bytes, unsigned flags))                                         \
	X(cuMemAllocPitch, 3020, (void **ptr, size_t *pitch, size_t width, size_t rows, unsigned element))             \
	X(cuMemDiscardAndPrefetchBatchAsync, 13000,                                                                    \
	  (void **ptrs, size_t *sizes, size_t n, struct um_location *locs, size_t *loc_idxs, size_t n_locs,            \
	   unsigned long long flags, void *stream))                                                                    \
	X(cuMemDiscardBatchAsync, 13000,                                                                               \
	  (void **ptrs, size_t *sizes, size_t n, unsigned long long flags, void *stream))                              \
	X(cuMemFree, 3020, (void *ptr))                                                                                \
	X(cuMemFreeAsync, 11020, (void *ptr, void *stream))                                                            \
	X(cuMemFreeHost, 2000, (void *ptr))                                                                            \
	X(cuMemGetInfo, 3020, (size_t * free_bytes, size_t * total))                                                   \
	X(cuMemHostAlloc, 2020, (void **ptr, size_t bytes, unsigned flags))                                            \
	X(cuMemHostGetDevicePointer, 3020, (void **device, void *host, unsigned flags))                                \
	X(cuMemHostRegister, 4000, (void *ptr, size_t bytes, unsigned flags))                                          \
	X(cuMemHostUnregister, 4000, (void *ptr))                                                                      \
	X(cuMemPrefetchAsync, 12020,                                                                                   \
	  (const void *ptr, size_t bytes, struct um_location to, unsigned flags, void *stream))                        \
	X(cuMemPrefetchBatchAsync, 13000,                                                                              \
	  (void **ptrs, size_t *sizes, size_t n, struct um_location *locs, size_t *loc_idxs, size_t n_locs,            \
	   unsigned long long flags, void *stream))                                                                    \
	X(cuMemRangeGetAttribute, 8000, (void *out, size_t size, int attribute, const void *ptr, size_t bytes))        \
	X(cuMemRangeGetAttributes, 8000,                                                                               \
	  (void **out, size_t *sizes, int *attributes, size_t n, const void *ptr, size_t bytes))                       \
	X(cuMemcpy, 4000, (void *to, const void *from, size_t bytes))                                                  \
	X(cuMemcpy2D, 3020, (const struct um_rt_copy2d *copy))                                                         \
	X(cuMemcpy2DAsync, 3020, (const struct um_rt_copy2d *copy, void *stream))                                      \
	X(cuMemcpyAsync, 4000, (void *to, const void *from, size_t bytes, void *stream))                               \
	X(cuMemcpyPeer, 4000, (void *to, void *to_context, const void *from, void *from_context, size_t bytes))        \
	X(cuMemsetD2D8, 3020, (void *at, size_t pitch, unsigned char value, size_t width, size_t rows))                \
	X(cuMemsetD2D8Async, 3020,                                                                                     \
	  (void *at, size_t pitch, unsigned char value, size_t width, size_t rows, void *stream))                      \
	X(cuMemsetD8, 3020, (void *at, unsigned char value, size_t n))                                                 \
	X(cuMemsetD8Async, 3020, (void *at, unsigned char value, size_t n, void *stream))                              \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,                                                  \
	  (int *blocks, void *function, int threads, size_t shared, unsigned flags))                                   \
	X(cuPointerGetAttribute, 4000, (void *out, int attribute, const void *ptr))                                    \
	X(cuProfilerStart, 4000, (void))                                                                               \
	X(cuProfilerStop, 4000, (void))                                                                                \
	X(cuStreamAddCallback, 5000,                                                                                   \
	  (void *stream, void (*fn)(void *stream, int error, void *arg), void *arg, unsigned flags))                   \
	X(cuStreamAttachMemAsync, 6000, (void *stream, void *ptr, size_t bytes, unsigned flags))                       \
	X(cuStreamBeginCapture, 10010, (void *stream, int mode))                                                       \
	X(cuStreamCreate, 2000, (void **stream, unsigned flags))                                                       \
	X(cuStreamCreateWithPriority, 5050, (void **stream, unsigned flags, int priority))                             \
	X(cuStreamDestroy, 4000, (void *stream))                                                                       \
	X(cuStreamEndCapture, 10000, (void *stream, void **graph))                                                     \
	X(cuStreamGetCaptureInfo, 11030,                                                                               \
	  (void *stream, int *status, unsigned long long *id, void **graph, const void ***after, size_t *n))           \
	X(cuStreamGetFlags, 5050, (void *stream, unsigned *flags))                                                     \
	X(cuStreamGetId, 12000, (void *stream, unsigned long long *id))                                                \
	X(cuStreamGetPriority, 5050, (void *stream, int *priority))                                                    \
	X(cuStreamIsCapturing, 10000, (void *stream, int *status))                                                     \
	X(cuStreamQuery, 2000, (void *stream))                                                                         \
	X(cuStreamSynchronize, 2000, (void *stream))                                                                   \
	X(cuStreamWaitEvent, 3020, (void *stream, void *event, unsigned flags))                                        \
	X(cuThreadExchangeStreamCaptureMode, 10010, (int *mode))

#define UM_RT_MEMBER(name, version, params) int(*name) params;

struct um_rt {
	int (*find)(const char *name, void **fn, int version, unsigned long long flags, int *status);
	UM_RT_DRIVER(UM_RT_MEMBER)
};

extern struct um_rt um_rt; /* entries are NULL where the driver does not have them */

/* First in every call: opens the driver, and makes its context current on a thread that has none. Error code. */
int um_rt_set_device(int device); /* of the thread, after um_rt_enter. CUDA error code */
int um_rt_enter(void);
int um_rt_done(int err); /* last in every call: remembers an error */
int um_rt_absent(const char *name); /* reports a missing function, once; 801 */

/* A runtime function that equals one of the driver's. */
#define UM_RT(name, params, fn, args)                                                                                  \
	UM_EXPORT int name params;                                                                                     \
	int name params                                                                                                \
	{                                                                                                              \
		int err_ = um_rt_enter();                                                                              \
                                                                                                                       \
		return um_rt_done(err_ ? err_ : um_rt.fn ? um_rt.fn args : um_rt_absent(#fn));                         \
	}

/* The same on a stream, with the form for per-thread default streams. */
#define UM_RT_STREAM(name, params, fn, args)                                                                           \
	UM_RT(name, params, fn, args)                                                                                  \
	UM_EXPORT int name##_ptsz params;                                                                              \
	int name##_ptsz params                                                                                         \
	{                                                                                                              \
		int err_ = um_rt_enter();                                                                              \
                                                                                                                       \
		stream = stream ? stream : (void *)2;                                                                  \
		return um_rt_done(err_ ? err_ : um_rt.fn ? um_rt.fn args : um_rt_absent(#fn));                         \
	}

#endif
