/* SPDX-License-Identifier: Apache-2.0
 *
 * hooks.h - the driver's functions that the preloaded library replaces, and those that it calls
 *
 * Lists (X macros), so that the replacements, the table that finds them and the pointers to the driver's own functions
 * cannot differ. A row of a hook: exported symbol, name and version for cuGetProcAddress, 1 for the form of per-thread
 * default streams, parameters. Addresses of the device are 64-bit numbers, handles are pointers.
 */
#ifndef UM_INJECT_HOOKS_H
#define UM_INJECT_HOOKS_H

#include "gpu/gpu.h"

#include <stddef.h>
#include <stdint.h>

/* A form for the legacy default stream and one for per-thread default streams. */
#define UM_HOOK_PTSZ(X, symbol, base, since, params)                                                                   \
	X(symbol, base, since, 0, params)                                                                              \
	X(symbol##_ptsz, base, since, 1, params)
#define UM_HOOK_PTDS(X, symbol, base, since, params)                                                                   \
	X(symbol, base, since, 0, params)                                                                              \
	X(symbol##_ptds, base, since, 1, params)

struct um_node_params; /* graph_nodes.h */

#define UM_HOOKS_RESOLVE(X)                                                                                            \
	X(cuGetProcAddress, cuGetProcAddress, 11030, 0, (const char *name, void **fn, int version, uint64_t flags))    \
	UM_HOOK_PTSZ(X, cuGetProcAddress_v2, cuGetProcAddress, 12000,                                                  \
		     (const char *name, void **fn, int version, uint64_t flags, int *status))

#define UM_HOOKS_MEMORY(X)                                                                                             \
	X(cuMemAlloc_v2, cuMemAlloc, 3020, 0, (uint64_t * out, size_t bytes))                                          \
	X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, 0,                                                                \
	  (uint64_t * out, size_t * pitch, size_t width, size_t rows, unsigned element))                               \
	X(cuMemAllocManaged, cuMemAllocManaged, 6000, 0, (uint64_t * out, size_t bytes, unsigned flags))               \
	X(cuMemFree_v2, cuMemFree, 3020, 0, (uint64_t at))                                                             \
	UM_HOOK_PTSZ(X, cuMemAllocAsync, cuMemAllocAsync, 11020, (uint64_t * out, size_t bytes, void *stream))         \
	UM_HOOK_PTSZ(X, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020,                                       \
		     (uint64_t * out, size_t bytes, void *pool, void *stream))                                         \
	UM_HOOK_PTSZ(X, cuMemFreeAsync, cuMemFreeAsync, 11020, (uint64_t at, void *stream))                            \
	X(cuMemPoolCreate, cuMemPoolCreate, 11020, 0, (void **pool, const void *properties))                           \
	X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, 0, (void *pool))                                                  \
	X(cuMemCreate, cuMemCreate, 10020, 0,                                                                          \
	  (uint64_t * handle, size_t bytes, const void *properties, unsigned long long flags))                         \
	X(cuMemRelease, cuMemRelease, 10020, 0, (uint64_t handle))

#define UM_HOOKS_QUERY(X)                                                                                              \
	X(cuMemGetInfo_v2, cuMemGetInfo, 3020, 0, (size_t * free_bytes, size_t * total))                               \
	X(cuMemGetAddressRange_v2, cuMemGetAddressRange, 3020, 0, (uint64_t * base, size_t * bytes, uint64_t at))      \
	X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, 0, (void *out, int attribute, uint64_t at))              \
	X(cuPointerGetAttributes, cuPointerGetAttributes, 7000, 0,                                                     \
	  (unsigned n, int *attributes, void **out, uint64_t at))                                                      \
	X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, 0, (void *handle, uint64_t at))

#define UM_LAUNCH_PARAMS                                                                                               \
	(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                 \
	 unsigned shared, void *stream, void **params, void **extra)
#define UM_COOPERATIVE_PARAMS                                                                                          \
	(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                 \
	 unsigned shared, void *stream, void **params)

struct um_launch_size {
	unsigned grid[3], block[3];
};

struct um_launch_config { /* CUlaunchConfig */
	struct um_launch_size size;
	unsigned shared;
	void *stream, *attributes;
	unsigned n_attributes;
};

#define UM_HOOKS_LAUNCH(X)                                                                                             \
	UM_HOOK_PTSZ(X, cuLaunchKernel, cuLaunchKernel, 4000, UM_LAUNCH_PARAMS)                                        \
	UM_HOOK_PTSZ(X, cuLaunchKernelEx, cuLaunchKernelEx, 11060,                                                     \
		     (const struct um_launch_config *config, void *function, void **params, void **extra))             \
	UM_HOOK_PTSZ(X, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, UM_COOPERATIVE_PARAMS)

#define UM_HOOKS_CONTEXT(X)                                                                                            \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, 0, (int device))                                     \
	X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, 0, (int device))                                 \
	X(cuCtxDestroy_v2, cuCtxDestroy, 4000, 0, (void *context))                                                     \
	X(cuCtxSynchronize, cuCtxSynchronize, 2000, 0, (void))                                                         \
	X(cuCtxSynchronize_v2, cuCtxSynchronize, 13000, 0, (void *context))

#define UM_HOOKS_MODULE(X)                                                                                             \
	X(cuModuleLoad, cuModuleLoad, 2000, 0, (void **module, const char *path))                                      \
	X(cuModuleLoadData, cuModuleLoadData, 2000, 0, (void **module, const void *image))                             \
	X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, 0,                                                             \
	  (void **module, const void *image, unsigned n, int *options, void **values))                                 \
	X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, 0, (void **module, const void *image))                   \
	X(cuModuleUnload, cuModuleUnload, 2000, 0, (void *module))                                                     \
	X(cuLibraryLoadData, cuLibraryLoadData, 12000, 0,                                                              \
	  (void **library, const void *image, int *jit, void **jit_values, unsigned n_jit, int *options,               \
	   void **values, unsigned n))                                                                                 \
	X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, 0,                                                      \
	  (void **library, const char *path, int *jit, void **jit_values, unsigned n_jit, int *options, void **values, \
	   unsigned n))                                                                                                \
	X(cuLibraryUnload, cuLibraryUnload, 12000, 0, (void *library))

#define UM_HOOKS_STREAM(X)                                                                                             \
	X(cuStreamCreate, cuStreamCreate, 2000, 0, (void **stream, unsigned flags))                                    \
	X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, 0,                                             \
	  (void **stream, unsigned flags, int priority))                                                               \
	X(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050, 0,                                                    \
	  (void **stream, void *context, unsigned flags, int priority))                                                \
	X(cuStreamDestroy_v2, cuStreamDestroy, 4000, 0, (void *stream))                                                \
	UM_HOOK_PTSZ(X, cuStreamBeginCapture, cuStreamBeginCapture, 10000, (void *stream))                             \
	UM_HOOK_PTSZ(X, cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, (void *stream, int mode))                \
	UM_HOOK_PTSZ(X, cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030,                               \
		     (void *stream, void *graph, const void *after, const void *edges, size_t n, int mode))            \
	UM_HOOK_PTSZ(X, cuStreamEndCapture, cuStreamEndCapture, 10000, (void *stream, void **graph))

#define UM_HOOKS_GRAPH(X)                                                                                              \
	X(cuGraphInstantiate, cuGraphInstantiate, 10000, 0,                                                            \
	  (void **exec, void *graph, void **node, char *log, size_t size))                                             \
	X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, 0,                                                         \
	  (void **exec, void *graph, void **node, char *log, size_t size))                                             \
	X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, 0,                                          \
	  (void **exec, void *graph, unsigned long long flags))                                                        \
	UM_HOOK_PTSZ(X, cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000,                             \
		     (void **exec, void *graph, void *params))                                                         \
	X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, 0, (void *exec, void *graph, void **node, int *result))         \
	X(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, 0, (void *exec, void *graph, void *result))                  \
	X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, 0,                                    \
	  (void *exec, void *node, const void *params))                                                                \
	X(cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams, 12000, 0,                                 \
	  (void *exec, void *node, const void *params))                                                                \
	X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020, 0,                                    \
	  (void *exec, void *node, const void *params, void *context))                                                 \
	X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020, 0,                                    \
	  (void *exec, void *node, const void *params, void *context))                                                 \
	X(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, 0,                            \
	  (void *exec, void *node, void *graph))                                                                       \
	X(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, 0,                                                \
	  (void *exec, void *node, struct um_node_params *params))                                                     \
	X(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, 0, (void *exec, void *node, unsigned on))               \
	X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, 0, (void *exec))                                              \
	UM_HOOK_PTSZ(X, cuGraphLaunch, cuGraphLaunch, 10000, (void *exec, void *stream))

struct um_copy_2d { /* CUDA_MEMCPY2D */
	size_t from_x, from_y;
	int from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array;
	size_t from_pitch, to_x, to_y;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	size_t to_pitch, width, height;
};

struct um_copy_3d { /* CUDA_MEMCPY3D */
	size_t from_x, from_y, from_z, from_lod;
	int from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array, *reserved0;
	size_t from_pitch, from_height, to_x, to_y, to_z, to_lod;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array, *reserved1;
	size_t to_pitch, to_height, width, height, depth;
};

#define UM_HOOK_COPY(X, name, suffix, since, to, from)                                                                 \
	UM_HOOK_PTDS(X, name##suffix, name, since, (to, from, size_t n))                                               \
	UM_HOOK_PTSZ(X, name##Async##suffix, name##Async, since, (to, from, size_t n, void *stream))
#define UM_HOOK_SET(X, bits, type)                                                                                     \
	UM_HOOK_PTDS(X, cuMemsetD##bits##_v2, cuMemsetD##bits, 3020, (uint64_t at, type value, size_t n))              \
	UM_HOOK_PTSZ(X, cuMemsetD##bits##Async, cuMemsetD##bits##Async, 3020,                                          \
		     (uint64_t at, type value, size_t n, void *stream))                                                \
	UM_HOOK_PTDS(X, cuMemsetD2D##bits##_v2, cuMemsetD2D##bits, 3020,                                               \
		     (uint64_t at, size_t pitch, type value, size_t width, size_t rows))                               \
	UM_HOOK_PTSZ(X, cuMemsetD2D##bits##Async, cuMemsetD2D##bits##Async, 3020,                                      \
		     (uint64_t at, size_t pitch, type value, size_t width, size_t rows, void *stream))

#define UM_HOOKS_COPY(X)                                                                                               \
	UM_HOOK_COPY(X, cuMemcpy, , 4000, uint64_t to, uint64_t from)                                                  \
	UM_HOOK_COPY(X, cuMemcpyHtoD, _v2, 3020, uint64_t to, const void *from)                                        \
	UM_HOOK_COPY(X, cuMemcpyDtoH, _v2, 3020, void *to, uint64_t from)                                              \
	UM_HOOK_COPY(X, cuMemcpyDtoD, _v2, 3020, uint64_t to, uint64_t from)                                           \
	UM_HOOK_PTDS(X, cuMemcpyPeer, cuMemcpyPeer, 4000,                                                              \
		     (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n))                     \
	UM_HOOK_PTSZ(X, cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000,                                                    \
		     (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n, void *stream))       \
	UM_HOOK_PTDS(X, cuMemcpy2D_v2, cuMemcpy2D, 3020, (const struct um_copy_2d *copy))                              \
	UM_HOOK_PTDS(X, cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned, 3020, (const struct um_copy_2d *copy))            \
	UM_HOOK_PTSZ(X, cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020, (const struct um_copy_2d *copy, void *stream))      \
	UM_HOOK_PTDS(X, cuMemcpy3D_v2, cuMemcpy3D, 3020, (const struct um_copy_3d *copy))                              \
	UM_HOOK_PTSZ(X, cuMemcpy3DAsync_v2, cuMemcpy3DAsync, 3020, (const struct um_copy_3d *copy, void *stream))      \
	UM_HOOK_SET(X, 8, unsigned char)                                                                               \
	UM_HOOK_SET(X, 16, unsigned short)                                                                             \
	UM_HOOK_SET(X, 32, unsigned)

/* The older form has the number of a device, or -1 for the host. */
#define UM_HOOKS_HINT(X)                                                                                               \
	UM_HOOK_PTSZ(X, cuMemPrefetchAsync, cuMemPrefetchAsync, 8000,                                                  \
		     (uint64_t at, size_t bytes, int device, void *stream))                                            \
	UM_HOOK_PTSZ(X, cuMemPrefetchAsync_v2, cuMemPrefetchAsync, 12020,                                              \
		     (uint64_t at, size_t bytes, struct um_location to, unsigned flags, void *stream))                 \
	UM_HOOK_PTSZ(X, cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, 13000,                                       \
		     (uint64_t * at, size_t * bytes, size_t n, struct um_location * to, size_t * to_index,             \
		      size_t n_to, unsigned long long flags, void *stream))

#define UM_HOOKS(X)                                                                                                    \
	UM_HOOKS_RESOLVE(X)                                                                                            \
	UM_HOOKS_MEMORY(X)                                                                                             \
	UM_HOOKS_QUERY(X)                                                                                              \
	UM_HOOKS_LAUNCH(X)                                                                                             \
	UM_HOOKS_CONTEXT(X)                                                                                            \
	UM_HOOKS_MODULE(X)                                                                                             \
	UM_HOOKS_STREAM(X)                                                                                             \
	UM_HOOKS_GRAPH(X)                                                                                              \
	UM_HOOKS_HINT(X)                                                                                               \
	UM_HOOKS_COPY(X)

/* Called, not replaced: name, version asked for, parameters. Any of them may be missing. */
#define UM_DRIVER_CALLS(X)                                                                                             \
	X(cuDriverGetVersion, 2020, (int *version))                                                                    \
	X(cuCtxGetDevice, 2000, (int *device))                                                                         \
	X(cuDeviceGetCount, 2000, (int *count))                                                                        \
	X(cuCtxGetCurrent, 4000, (void **context))                                                                     \
	X(cuDeviceGetDefaultMemPool, 11020, (void **pool, int device))                                                 \
	X(cuFuncGetParamInfo, 12040, (void *function, size_t i, size_t *offset, size_t *bytes))                        \
	X(cuKernelGetParamInfo, 12040, (void *kernel, size_t i, size_t *offset, size_t *bytes))                        \
	X(cuFuncGetModule, 11000, (void **module, void *function))                                                     \
	X(cuKernelGetLibrary, 12050, (void **library, void *kernel))                                                   \
	X(cuFuncGetName, 12030, (const char **name, void *function))                                                   \
	X(cuKernelGetName, 12030, (const char **name, void *kernel))                                                   \
	X(cuStreamIsCapturing, 10000, (void *stream, int *status))                                                     \
	X(cuStreamQuery, 2000, (void *stream))                                                                         \
	X(cuStreamSynchronize, 2000, (void *stream))                                                                   \
	X(cuStreamWaitEvent, 3020, (void *stream, void *event, unsigned flags))                                        \
	X(cuEventCreate, 2000, (void **event, unsigned flags))                                                         \
	X(cuEventRecord, 2000, (void *event, void *stream))                                                            \
	X(cuEventSynchronize, 2000, (void *event))                                                                     \
	X(cuEventDestroy, 4000, (void *event))                                                                         \
	X(cuGraphGetEdges, 10000, (void *graph, void **from, void **to, size_t *n))                                    \
	X(cuGraphKernelNodeGetAttribute, 11000, (void *node, int attribute, void *value))                              \
	X(cuGraphGetNodes, 10000, (void *graph, void **nodes, size_t *n))                                              \
	X(cuGraphNodeGetType, 10000, (void *node, int *type))                                                          \
	X(cuGraphKernelNodeGetParams, 12000, (void *node, void *params))                                               \
	X(cuGraphMemcpyNodeGetParams, 10000, (void *node, void *params))                                               \
	X(cuGraphMemsetNodeGetParams, 10000, (void *node, void *params))                                               \
	X(cuGraphChildGraphNodeGetGraph, 10000, (void *node, void **graph))

#endif
