/* SPDX-License-Identifier: Apache-2.0
 *
 * rt_memory.c - memory, copies and hints of the runtime
 *
 * Every address identifies its memory, so that a copy's direction argument is ignored.
 */
#include "standin/rt.h"

#define ATTR_DEVICE 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
#define ATTR_TYPE 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: 1 host, 2 device */
#define ATTR_MANAGED 8
#define TYPE_UNIFIED 4 /* CU_MEMORYTYPE_UNIFIED: the address says */

/* As UM_RT. The driver refuses 0 bytes; the runtime gives NULL, except of managed memory. */
#define UM_RT_ALLOC(name, params, fn, args)                                                                            \
	UM_EXPORT int name params;                                                                                     \
	int name params                                                                                                \
	{                                                                                                              \
		int err_ = um_rt_enter();                                                                              \
                                                                                                                       \
		if (err_ || !ptr || bytes)                                                                             \
			return um_rt_done(err_ ? err_ : um_rt.fn args);                                                \
		*ptr = NULL;                                                                                           \
		return UM_CUDA_OK;                                                                                     \
	}

UM_RT_ALLOC(cudaMalloc, (void **ptr, size_t bytes), cuMemAlloc, (ptr, bytes))
UM_RT(cudaMallocManaged, (void **ptr, size_t bytes, unsigned flags), cuMemAllocManaged, (ptr, bytes, flags))
UM_RT(cudaMallocPitch, (void **ptr, size_t *pitch, size_t width, size_t rows), cuMemAllocPitch,
      (ptr, pitch, width, rows, 16))
UM_RT_ALLOC(cudaMallocHost, (void **ptr, size_t bytes), cuMemHostAlloc, (ptr, bytes, 0))
UM_RT_ALLOC(cudaHostAlloc, (void **ptr, size_t bytes, unsigned flags), cuMemHostAlloc, (ptr, bytes, flags))
UM_RT(cudaHostRegister, (void *ptr, size_t bytes, unsigned flags), cuMemHostRegister, (ptr, bytes, flags))
UM_RT(cudaHostUnregister, (void *ptr), cuMemHostUnregister, (ptr))
UM_RT(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags), cuMemHostGetDevicePointer,
      (device, host, flags))
UM_RT_STREAM(cudaMallocAsync, (void **ptr, size_t bytes, void *stream), cuMemAllocAsync, (ptr, bytes, stream))
UM_RT_STREAM(cudaMallocFromPoolAsync, (void **ptr, size_t bytes, void *pool, void *stream), cuMemAllocFromPoolAsync,
	     (ptr, bytes, pool, stream))
UM_RT_STREAM(cudaFreeAsync, (void *ptr, void *stream), cuMemFreeAsync, (ptr, stream))

/* --- pools -------------------------------------------------------------------------------------------------------- */

/* Properties, attributes and access are the driver's. */
UM_RT(cudaDeviceGetMemPool, (void **pool, int device), cuDeviceGetMemPool, (pool, device))
UM_RT(cudaDeviceSetMemPool, (int device, void *pool), cuDeviceSetMemPool, (device, pool))
UM_RT(cudaMemPoolCreate, (void **pool, const void *props), cuMemPoolCreate, (pool, props))
UM_RT(cudaMemPoolDestroy, (void *pool), cuMemPoolDestroy, (pool))
UM_RT(cudaMemPoolGetAccess, (int *flags, void *pool, void *location), cuMemPoolGetAccess, (flags, pool, location))
UM_RT(cudaMemPoolGetAttribute, (void *pool, int attribute, void *value), cuMemPoolGetAttribute,
      (pool, attribute, value))
UM_RT(cudaMemPoolSetAccess, (void *pool, const void *access, size_t n), cuMemPoolSetAccess, (pool, access, n))
UM_RT(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value), cuMemPoolSetAttribute,
      (pool, attribute, value))
UM_RT(cudaMemPoolTrimTo, (void *pool, size_t bytes), cuMemPoolTrimTo, (pool, bytes))
#if UM_RT_MAJOR >= 13
UM_RT(cudaMemGetDefaultMemPool, (void **pool, void *location, int type), cuMemGetDefaultMemPool, (pool, location, type))
UM_RT(cudaMemGetMemPool, (void **pool, void *location, int type), cuMemGetMemPool, (pool, location, type))
UM_RT(cudaMemSetMemPool, (void *location, int type, void *pool), cuMemSetMemPool, (location, type, pool))
#endif

/* --- the rest ----------------------------------------------------------------------------------------------------- */

UM_EXPORT int cudaFree(void *ptr);
int cudaFree(void *ptr)
{
	int err = um_rt_enter();

	return um_rt_done(err || !ptr ? err : um_rt.cuMemFree(ptr));
}

UM_EXPORT int cudaFreeHost(void *ptr);
int cudaFreeHost(void *ptr)
{
	int err = um_rt_enter();

	return um_rt_done(err || !ptr ? err : um_rt.cuMemFreeHost(ptr));
}

struct attributes { /* cudaPointerAttributes, without the reserved members of CUDA 13 */
	int type; /* 0 unregistered, 1 host, 2 device, 3 managed */
	int device;
	void *device_ptr, *host_ptr;
};

UM_EXPORT int cudaPointerGetAttributes(struct attributes *a, const void *ptr);
int cudaPointerGetAttributes(struct attributes *a, const void *ptr)
{
	unsigned type = 0, managed = 0;
	int err = um_rt_enter();

	if (err || !a)
		return um_rt_done(err ? err : UM_CUDA_INVALID_VALUE);
	*a = (struct attributes){0, -2, NULL, (void *)(uintptr_t)ptr};
	if (um_rt.cuPointerGetAttribute(&type, ATTR_TYPE, ptr))
		return UM_CUDA_OK; /* memory unknown to CUDA */
	um_rt.cuPointerGetAttribute(&managed, ATTR_MANAGED, ptr);
	a->type = managed ? 3 : (int)type;
	um_rt.cuPointerGetAttribute(&a->device, ATTR_DEVICE, ptr);
	a->device_ptr = (void *)(uintptr_t)ptr;
	a->host_ptr = managed || type == 1 ? a->device_ptr : NULL;
	return UM_CUDA_OK;
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

/* Addresses tell the devices. */
UM_EXPORT int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
	int err = um_rt_enter();

	(void)to_device;
	(void)from_device;
	return um_rt_done(err || !bytes ? err : um_rt.cuMemcpyPeer(to, NULL, from, NULL, bytes));
}

UM_EXPORT int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
				  void *stream);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream)
{
	int err = um_rt_enter();

	(void)to_device;
	(void)from_device;
	return um_rt_done(err || !bytes ? err : um_rt.cuMemcpyAsync(to, from, bytes, stream));
}

#define COPY_PARAMS (void *to, const void *from, size_t bytes, int kind)
UM_EXPORT int cudaMemcpy COPY_PARAMS;
int cudaMemcpy COPY_PARAMS
{
	int err = um_rt_enter();

	(void)kind;
	return um_rt_done(err || !bytes ? err : um_rt.cuMemcpy(to, from, bytes));
}

UM_EXPORT int cudaMemcpy_ptds COPY_PARAMS;
int cudaMemcpy_ptds COPY_PARAMS
{
	return cudaMemcpy(to, from, bytes, kind);
}

static int copy_async(void *to, const void *from, size_t bytes, void *stream)
{
	int err = um_rt_enter();

	return um_rt_done(err || !bytes ? err : um_rt.cuMemcpyAsync(to, from, bytes, stream));
}

#define COPY_ASYNC_PARAMS (void *to, const void *from, size_t bytes, int kind, void *stream)
UM_EXPORT int cudaMemcpyAsync COPY_ASYNC_PARAMS;
int cudaMemcpyAsync COPY_ASYNC_PARAMS
{
	(void)kind;
	return copy_async(to, from, bytes, stream);
}

UM_EXPORT int cudaMemcpyAsync_ptsz COPY_ASYNC_PARAMS;
int cudaMemcpyAsync_ptsz COPY_ASYNC_PARAMS
{
	(void)kind;
	return copy_async(to, from, bytes, stream ? stream : (void *)2);
}

static struct um_rt_copy2d rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
				     size_t rows)
{
	return (struct um_rt_copy2d){.from_type = TYPE_UNIFIED,
				     .from_device = (uintptr_t)from,
				     .from_pitch = from_pitch,
				     .to_type = TYPE_UNIFIED,
				     .to_device = (uintptr_t)to,
				     .to_pitch = to_pitch,
				     .width = width,
				     .height = rows};
}

UM_EXPORT int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows,
			   int kind);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows, int kind)
{
	struct um_rt_copy2d c = rectangle(to, to_pitch, from, from_pitch, width, rows);
	int err = um_rt_enter();

	(void)kind;
	return um_rt_done(err ? err : um_rt.cuMemcpy2D ? um_rt.cuMemcpy2D(&c) : um_rt_absent("cuMemcpy2D"));
}

UM_EXPORT int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
				size_t rows, int kind, void *stream);
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows,
		      int kind, void *stream)
{
	struct um_rt_copy2d c = rectangle(to, to_pitch, from, from_pitch, width, rows);
	int err = um_rt_enter();

	(void)kind;
	return um_rt_done(err			  ? err
			  : um_rt.cuMemcpy2DAsync ? um_rt.cuMemcpy2DAsync(&c, stream)
						  : um_rt_absent("cuMemcpy2DAsync"));
}

UM_RT(cudaMemset, (void *at, int value, size_t n), cuMemsetD8, (at, (unsigned char)value, n))
UM_RT(cudaMemset_ptds, (void *at, int value, size_t n), cuMemsetD8, (at, (unsigned char)value, n))
UM_RT_STREAM(cudaMemsetAsync, (void *at, int value, size_t n, void *stream), cuMemsetD8Async,
	     (at, (unsigned char)value, n, stream))
UM_RT(cudaMemset2D, (void *at, size_t pitch, int value, size_t width, size_t rows), cuMemsetD2D8,
      (at, pitch, (unsigned char)value, width, rows))
UM_RT_STREAM(cudaMemset2DAsync, (void *at, size_t pitch, int value, size_t width, size_t rows, void *stream),
	     cuMemsetD2D8Async, (at, pitch, (unsigned char)value, width, rows, stream))

/* --- hints -------------------------------------------------------------------------------------------------------- */

#if UM_RT_MAJOR == 12
/* A device number of the old forms: -1 is the host. */
static struct um_location place(int device)
{
	return device == -1 ? um_on_host() : um_on_device(device);
}

UM_RT_STREAM(cudaMemPrefetchAsync, (const void *ptr, size_t bytes, int device, void *stream), cuMemPrefetchAsync,
	     (ptr, bytes, place(device), 0, stream))
UM_RT(cudaMemAdvise, (const void *ptr, size_t bytes, int advice, int device), cuMemAdvise,
      (ptr, bytes, advice, place(device)))
UM_RT_STREAM(cudaMemPrefetchAsync_v2,
	     (const void *ptr, size_t bytes, struct um_location to, unsigned flags, void *stream), cuMemPrefetchAsync,
	     (ptr, bytes, to, flags, stream))
UM_RT(cudaMemAdvise_v2, (const void *ptr, size_t bytes, int advice, struct um_location where), cuMemAdvise,
      (ptr, bytes, advice, where))
#else
UM_RT_STREAM(cudaMemPrefetchAsync, (const void *ptr, size_t bytes, struct um_location to, unsigned flags, void *stream),
	     cuMemPrefetchAsync, (ptr, bytes, to, flags, stream))
UM_RT(cudaMemAdvise, (const void *ptr, size_t bytes, int advice, struct um_location where), cuMemAdvise,
      (ptr, bytes, advice, where))
UM_RT_STREAM(cudaMemPrefetchBatchAsync,
	     (void **ptrs, size_t *sizes, size_t n, struct um_location *locs, size_t *loc_idxs, size_t n_locs,
	      unsigned long long flags, void *stream),
	     cuMemPrefetchBatchAsync, (ptrs, sizes, n, locs, loc_idxs, n_locs, flags, stream))
UM_RT_STREAM(cudaMemDiscardBatchAsync, (void **ptrs, size_t *sizes, size_t n, unsigned long long flags, void *stream),
	     cuMemDiscardBatchAsync, (ptrs, sizes, n, flags, stream))
UM_RT_STREAM(cudaMemDiscardAndPrefetchBatchAsync,
	     (void **ptrs, size_t *sizes, size_t n, struct um_location *locs, size_t *loc_idxs, size_t n_locs,
	      unsigned long long flags, void *stream),
	     cuMemDiscardAndPrefetchBatchAsync, (ptrs, sizes, n, locs, loc_idxs, n_locs, flags, stream))
#endif

UM_RT(cudaMemRangeGetAttribute, (void *out, size_t size, int attribute, const void *ptr, size_t bytes),
      cuMemRangeGetAttribute, (out, size, attribute, ptr, bytes))
UM_RT(cudaMemRangeGetAttributes, (void **out, size_t *sizes, int *attributes, size_t n, const void *ptr, size_t bytes),
      cuMemRangeGetAttributes, (out, sizes, attributes, n, ptr, bytes))
UM_RT_STREAM(cudaStreamAttachMemAsync, (void *stream, void *ptr, size_t bytes, unsigned flags), cuStreamAttachMemAsync,
	     (stream, ptr, bytes, flags))
