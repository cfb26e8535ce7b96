/* SPDX-License-Identifier: Apache-2.0
 *
 * device_calls.h - the CUDA functions that the library calls: names, versions and declarations
 *
 * Lists (X macros), so that the functions that are looked up, declared, and compared with CUDA's own headers by
 * tests/device/device_abi.sh cannot differ. A function of the runtime and its twin in the driver agree in everything
 * but the name: handles, flags and error codes are the same, addresses are passed in the same register.
 *
 * The version of a driver function is the one that introduced this form: cuGetProcAddress returns the latest form that
 * is not newer.
 */
#ifndef UM_GPU_DEVICE_CALLS_H
#define UM_GPU_DEVICE_CALLS_H

#include "gpu/gpu.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* CUdevice_attribute, without its prefix */
#define UM_ATTRIBUTES(X)                                                                                               \
	X(MULTIPROCESSOR_COUNT, 16)                                                                                    \
	X(INTEGRATED, 18)                                                                                              \
	X(COMPUTE_CAPABILITY_MAJOR, 75)                                                                                \
	X(COMPUTE_CAPABILITY_MINOR, 76)                                                                                \
	X(MANAGED_MEMORY, 83)                                                                                          \
	X(PAGEABLE_MEMORY_ACCESS, 88)                                                                                  \
	X(CONCURRENT_MANAGED_ACCESS, 89)                                                                               \
	X(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100)                                                           \
	X(HOST_NUMA_ID, 134)

#define UM_ATTRIBUTE_VALUE(name, number) UM_AT_##name = number,
enum um_attribute { UM_ATTRIBUTES(UM_ATTRIBUTE_VALUE) };

/* CUresult, without its prefix, and the same numbers of cudaError_t: sticky codes, after which the driver, the context
 * or the device is unusable. */
#define UM_END_CODES(X)                                                                                                \
	X(NOT_INITIALIZED, 3)                                                                                          \
	X(DEINITIALIZED, 4)                                                                                            \
	X(INVALID_CONTEXT, 201)                                                                                        \
	X(ECC_UNCORRECTABLE, 214)                                                                                      \
	X(NVLINK_UNCORRECTABLE, 220)                                                                                   \
	X(ILLEGAL_ADDRESS, 700)                                                                                        \
	X(LAUNCH_TIMEOUT, 702)                                                                                         \
	X(CONTEXT_IS_DESTROYED, 709)                                                                                   \
	X(ASSERT, 710)                                                                                                 \
	X(HARDWARE_STACK_ERROR, 714)                                                                                   \
	X(ILLEGAL_INSTRUCTION, 715)                                                                                    \
	X(MISALIGNED_ADDRESS, 716)                                                                                     \
	X(INVALID_ADDRESS_SPACE, 717)                                                                                  \
	X(INVALID_PC, 718)                                                                                             \
	X(LAUNCH_FAILED, 719)                                                                                          \
	X(MPS_CLIENT_TERMINATED, 810)                                                                                  \
	X(EXTERNAL_DEVICE, 911)
/* Added after 12.4. */
#define UM_END_CODES_13(X)                                                                                             \
	X(CONTAINED, 226)                                                                                              \
	X(TENSOR_MEMORY_LEAK, 721)

#define UM_CAPTURE_RELAXED 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define UM_ATTACH_GLOBAL 1 /* cudaMemAttachGlobal */

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* field, of the runtime, of the driver, version, arguments: in both, in every version */
#define UM_CALLS_BOTH(X)                                                                                               \
	X(malloc_managed, cudaMallocManaged, cuMemAllocManaged, 6000, (void **, size_t, unsigned))                     \
	X(memory_free, cudaFree, cuMemFree, 3020, (void *))                                                            \
	X(malloc_device, cudaMalloc, cuMemAlloc, 3020, (void **, size_t))                                              \
	X(memory_info, cudaMemGetInfo, cuMemGetInfo, 3020, (size_t *, size_t *))                                       \
	X(stream_create, cudaStreamCreateWithFlags, cuStreamCreate, 2000, (um_stream *, unsigned))                     \
	X(stream_destroy, cudaStreamDestroy, cuStreamDestroy, 4000, (um_stream))                                       \
	X(stream_sync, cudaStreamSynchronize, cuStreamSynchronize, 2000, (um_stream))                                  \
	X(device_sync, cudaDeviceSynchronize, cuCtxSynchronize, 2000, (void))                                          \
	X(stream_wait, cudaStreamWaitEvent, cuStreamWaitEvent, 3020, (um_stream, um_event_handle, unsigned))           \
	X(stream_capturing, cudaStreamIsCapturing, cuStreamIsCapturing, 10000, (um_stream, int *))                     \
	X(host_alloc, cudaHostAlloc, cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                \
	X(host_free, cudaFreeHost, cuMemFreeHost, 2000, (void *))                                                      \
	X(event_create, cudaEventCreateWithFlags, cuEventCreate, 2000, (um_event_handle *, unsigned))                  \
	X(event_destroy, cudaEventDestroy, cuEventDestroy, 4000, (um_event_handle))                                    \
	X(event_record, cudaEventRecord, cuEventRecord, 2000, (um_event_handle, um_stream))                            \
	X(event_query, cudaEventQuery, cuEventQuery, 2000, (um_event_handle))                                          \
	X(event_sync, cudaEventSynchronize, cuEventSynchronize, 2000, (um_event_handle))                               \
	X(event_elapsed, cudaEventElapsedTime, cuEventElapsedTime, 2000, (float *, um_event_handle, um_event_handle))

/* Hints in their two forms. In runtime 12 the plain names are the old form and the new one is called *_v2; in runtime
 * 13 the plain names are the new form. */
#define UM_CALLS_NEW(X)                                                                                                \
	X(prefetch, cudaMemPrefetchAsync, cuMemPrefetchAsync, 12020,                                                   \
	  (const void *, size_t, struct um_location, unsigned, um_stream))                                             \
	X(advise, cudaMemAdvise, cuMemAdvise, 12020, (const void *, size_t, int, struct um_location))

#define UM_CALLS_OLD(X)                                                                                                \
	X(prefetch_old, cudaMemPrefetchAsync, cuMemPrefetchAsync, 8000, (const void *, size_t, int, um_stream))        \
	X(advise_old, cudaMemAdvise, cuMemAdvise, 8000, (const void *, size_t, int, int))

#define UM_CALLS_BATCH(X)                                                                                              \
	X(prefetch_batch, cudaMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, 13000,                                   \
	  (void **, size_t *, size_t, struct um_location *, size_t *, size_t, unsigned long long, um_stream))          \
	X(discard_batch, cudaMemDiscardBatchAsync, cuMemDiscardBatchAsync, 13000,                                      \
	  (void **, size_t *, size_t, unsigned long long, um_stream))                                                  \
	X(renew_batch, cudaMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync, 13000,                  \
	  (void **, size_t *, size_t, struct um_location *, size_t *, size_t, unsigned long long, um_stream))

#define UM_CALL_FIELD(field, rt, cu, version, args) int(*field) args;
/* Functions of one library. Either prefetch or prefetch_old is set, likewise advise; the batch calls may be NULL. */
struct um_calls {
	UM_CALLS_BOTH(UM_CALL_FIELD)
	UM_CALLS_NEW(UM_CALL_FIELD)
	UM_CALLS_OLD(UM_CALL_FIELD)
	UM_CALLS_BATCH(UM_CALL_FIELD)
};

/* In the runtime only. */
#define UM_RUNTIME_ONLY(X)                                                                                             \
	X(version, cudaRuntimeGetVersion, (int *))                                                                     \
	X(get_device, cudaGetDevice, (int *))                                                                          \
	X(last_error, cudaGetLastError, (void))                                                                        \
	X(peek_error, cudaPeekAtLastError, (void))

/* In the driver only; contexts, modules and functions are pointers, devices are int. */
#define UM_DRIVER_ONLY(X)                                                                                              \
	X(init, cuInit, 2000, (unsigned))                                                                              \
	X(version, cuDriverGetVersion, 2020, (int *))                                                                  \
	X(device_count, cuDeviceGetCount, 2000, (int *))                                                               \
	X(device_get, cuDeviceGet, 2000, (int *, int))                                                                 \
	X(device_name, cuDeviceGetName, 2000, (char *, int, int))                                                      \
	X(device_attribute, cuDeviceGetAttribute, 2000, (int *, int, int))                                             \
	X(primary_retain, cuDevicePrimaryCtxRetain, 7000, (void **, int))                                              \
	X(primary_release, cuDevicePrimaryCtxRelease, 11000, (int))                                                    \
	X(primary_state, cuDevicePrimaryCtxGetState, 7000, (int, unsigned *, int *))                                   \
	X(ctx_current, cuCtxGetCurrent, 4000, (void **))                                                               \
	X(ctx_push, cuCtxPushCurrent, 4000, (void *))                                                                  \
	X(ctx_pop, cuCtxPopCurrent, 4000, (void **))                                                                   \
	X(ctx_device, cuCtxGetDevice, 2000, (int *))

#define UM_DRIVER_OPTIONAL(X)                                                                                          \
	X(capture_mode, cuThreadExchangeStreamCaptureMode, 10010, (int *))                                             \
	X(uuid, cuDeviceGetUuid, 11040, (void *, int))                                                                 \
	X(stream_id, cuStreamGetId, 12000, (um_stream, unsigned long long *))                                          \
	X(module_load, cuModuleLoadData, 2000, (void **, const void *))                                                \
	X(module_unload, cuModuleUnload, 2000, (void *))                                                               \
	X(module_function, cuModuleGetFunction, 2000, (void **, void *, const char *))                                 \
	X(launch, cuLaunchKernel, 4000,                                                                                \
	  (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, um_stream, void **, void **)) \
	X(copy, cuMemcpyAsync, 4000, (uint64_t, uint64_t, size_t, um_stream))

#define UM_RUNTIME_FIELD(field, name, args) int(*field) args;
struct um_runtime_calls {
	UM_RUNTIME_ONLY(UM_RUNTIME_FIELD)
};

#define UM_DRIVER_FIELD(field, name, version, args) int(*field) args;
struct um_driver_calls {
	UM_DRIVER_ONLY(UM_DRIVER_FIELD)
	UM_DRIVER_OPTIONAL(UM_DRIVER_FIELD)
};

/* The one function that is looked up by name in the library. */
#define UM_PROC_ADDRESS "cuGetProcAddress_v2"
typedef int (*um_proc_address)(const char *name, void **fn, int version, uint64_t flags, int *status);

#endif
