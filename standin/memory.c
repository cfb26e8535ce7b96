/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c - cuMemAlloc and the like: allocations, pools, pinned memory
 *
 * An asynchronous allocation is made at once and freed in stream order; a pool is a kind of memory and a count. All
 * addresses are host addresses, the same on both sides, so that pointers need no translation.
 */
#include "standin/work.h"

#define PITCH 512u

static uint64_t addr_of(const void *ptr)
{
	return (uint64_t)(uintptr_t)ptr;
}

/* Refuses allocations during captures that forbid them. */
static int begin(const char *name)
{
	int err = um_standin_enter(name);

	if (err)
		return err;
	um_standin_lock();
	err = um_capture_unsafe();
	um_standin_unlock();
	return err;
}

/* --- device and managed memory ----------------------------------------------------------------------------------- */

static int device_alloc(uint64_t *out, size_t bytes)
{
	struct um_gpu *gpu = um_standin()->gpu;
	void *p;
	int err = !out || !bytes ? UM_CUDA_INVALID_VALUE : gpu->api->cudaMalloc(gpu, &p, bytes);

	if (!err)
		*out = addr_of(p);
	return err;
}

static int managed_alloc(uint64_t *out, size_t bytes, unsigned flags)
{
	struct um_gpu *gpu = um_standin()->gpu;
	void *p;
	int err;

	if (!out || !bytes || (flags != 1 && flags != 2))
		return UM_CUDA_INVALID_VALUE;
	err = gpu->api->cudaMallocManaged(gpu, &p, bytes, flags);
	if (!err)
		*out = addr_of(p);
	return err;
}

UM_CALL(cuMemAlloc_v2, uint64_t *out, size_t bytes)
{
	int err = begin(__func__);

	return err ? err : device_alloc(out, bytes);
}

UM_CALL(cuMemAllocPitch_v2, uint64_t *out, size_t *pitch, size_t width, size_t rows, unsigned element)
{
	int err = begin(__func__);
	size_t row = (width + PITCH - 1) / PITCH * PITCH;

	if (!err && (!pitch || !width || !rows || row < width || rows > SIZE_MAX / row))
		err = UM_CUDA_INVALID_VALUE;
	if (!err && element != 4 && element != 8 && element != 16)
		err = UM_CUDA_INVALID_VALUE;
	err = err ? err : device_alloc(out, row * rows);
	if (!err)
		*pitch = row;
	return err;
}

UM_CALL(cuMemAllocManaged, uint64_t *out, size_t bytes, unsigned flags)
{
	int err = begin(__func__);

	return err ? err : managed_alloc(out, bytes, flags);
}

UM_CALL(cuMemFree_v2, uint64_t at)
{
	int err = begin(__func__);

	return err ? err : um_standin()->gpu->api->cudaFree(um_standin()->gpu, (void *)(uintptr_t)at);
}

UM_CALL(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes)
{
	int err = um_standin_enter(__func__);

	if (err || !free_bytes || !total_bytes)
		return err ? err : UM_CUDA_INVALID_VALUE;
	return um_standin()->gpu->api->cudaMemGetInfo(um_standin()->gpu, free_bytes, total_bytes);
}

UM_CALL(cuMemGetAddressRange_v2, uint64_t *base, size_t *bytes, uint64_t at)
{
	int err = um_standin_enter(__func__);
	struct um_sim_memory m;

	if (err)
		return err;
	if (um_sim_memory(um_standin()->gpu, (void *)(uintptr_t)at, &m))
		return UM_CU_NOT_FOUND;
	if (base)
		*base = m.addr;
	if (bytes)
		*bytes = m.bytes;
	return UM_CUDA_OK;
}

/* --- pinned memory ------------------------------------------------------------------------------------------------ */

#define HOST_FLAGS 7u /* portable, device map, write-combined */
#define REGISTER_FLAGS 15u /* portable, device map, IO memory, read-only */

static int host_alloc(void **out, size_t bytes)
{
	if (!out || !bytes)
		return UM_CUDA_INVALID_VALUE;
	return um_standin()->gpu->api->cudaHostAlloc(um_standin()->gpu, out, bytes, 0);
}

UM_CALL(cuMemAllocHost_v2, void **out, size_t bytes)
{
	int err = begin(__func__);

	return err ? err : host_alloc(out, bytes);
}

UM_CALL(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
	int err = begin(__func__);

	return err ? err : flags & ~HOST_FLAGS ? UM_CUDA_INVALID_VALUE : host_alloc(out, bytes);
}

UM_CALL(cuMemFreeHost, void *at)
{
	int err = begin(__func__);

	if (err || !at)
		return err ? err : UM_CUDA_INVALID_VALUE;
	return um_standin()->gpu->api->cudaFreeHost(um_standin()->gpu, at);
}

UM_CALL(cuMemHostRegister_v2, void *at, size_t bytes, unsigned flags)
{
	int err = begin(__func__);

	if (err || flags & ~REGISTER_FLAGS)
		return err ? err : UM_CUDA_INVALID_VALUE;
	return um_sim_host_register(um_standin()->gpu, at, bytes);
}

UM_CALL(cuMemHostUnregister, void *at)
{
	int err = begin(__func__);

	return err ? err : um_sim_host_unregister(um_standin()->gpu, at);
}

/* Is it pinned? */
static int pinned(const void *at)
{
	struct um_sim_memory m;

	return um_sim_memory(um_standin()->gpu, at, &m) == 0 &&
	       (m.kind == UM_SIM_PINNED || m.kind == UM_SIM_REGISTERED);
}

UM_CALL(cuMemHostGetDevicePointer_v2, uint64_t *out, void *at, unsigned flags)
{
	int err = um_standin_enter(__func__);

	if (err || !out || flags || !pinned(at))
		return err ? err : UM_CUDA_INVALID_VALUE;
	*out = addr_of(at);
	return UM_CUDA_OK;
}

UM_CALL(cuMemHostGetFlags, unsigned *flags, void *at)
{
	int err = um_standin_enter(__func__);

	if (err || !flags || !pinned(at))
		return err ? err : UM_CUDA_INVALID_VALUE;
	*flags = 2; /* mapped: always, with one address on both sides */
	return UM_CUDA_OK;
}

/* --- in stream order ---------------------------------------------------------------------------------------------- */

struct um_arena_pool {
	int managed;
	uint64_t threshold; /* stored for the program without effect: nothing is cached */
	int reuse[4];
	int made; /* by the program */
	int device;
};

static struct um_arena_pool device_pool[UM_SIM_DEVICES_MAX], managed_pool = {.managed = 1};
static struct um_arena_pool *current_managed = &managed_pool;
static struct um_arena_pool *current[UM_SIM_DEVICES_MAX]; /* NULL: its default */

/* A device's, or the one of managed memory, which is at the same time the default. */
static struct um_arena_pool *default_pool(int managed, int device)
{
	if (managed)
		return &managed_pool;
	device_pool[device].device = device;
	return &device_pool[device];
}

static struct um_arena_pool *current_pool(int managed, int device)
{
	return managed ? current_managed : current[device] ? current[device] : default_pool(0, device);
}

#define ALLOC_PINNED 1
#define ALLOC_MANAGED 2

static int stream_ok(void *stream)
{
	int err, ok;

	um_standin_stream(stream, &ok);
	if (!ok)
		return UM_CU_INVALID_HANDLE;
	um_standin_lock();
	err = um_capture_of(um_stream_find(stream)) ? um_standin_unsupported("allocation nodes in graphs") : 0;
	um_standin_unlock();
	return err;
}

static int pool_alloc(uint64_t *out, size_t bytes, const struct um_arena_pool *pool, void *stream)
{
	int err = stream_ok(stream);

	if (err)
		return err;
	if (pool->managed)
		return managed_alloc(out, bytes, 1);
	um_standin_on(um_standin_device(pool->device));
	return device_alloc(out, bytes);
}

UM_CALL(cuMemAllocAsync, uint64_t *out, size_t bytes, void *stream)
{
	int err = um_standin_enter(__func__), ok;

	if (err)
		return err;
	um_standin_stream(stream, &ok); /* its device */
	return pool_alloc(out, bytes, current_pool(0, um_standin()->ordinal), stream);
}
UM_FORWARD(cuMemAllocAsync_ptsz, (uint64_t * out, size_t bytes, void *s), cuMemAllocAsync(out, bytes, um_ptsz(s)))

UM_CALL(cuMemAllocFromPoolAsync, uint64_t *out, size_t bytes, void *pool, void *stream)
{
	int err = um_standin_enter(__func__);

	return err ? err : !pool ? UM_CUDA_INVALID_VALUE : pool_alloc(out, bytes, pool, stream);
}
UM_FORWARD(cuMemAllocFromPoolAsync_ptsz, (uint64_t * out, size_t bytes, void *pool, void *s),
	   cuMemAllocFromPoolAsync(out, bytes, pool, um_ptsz(s)))

UM_CALL(cuMemFreeAsync, uint64_t at, void *stream)
{
	int err = um_standin_enter(__func__), ok;
	um_stream sim;

	if (err || !at)
		return err;
	err = stream_ok(stream);
	if (err)
		return err;
	sim = um_standin_stream(stream, &ok);
	return um_sim_free_async(um_standin()->gpu, sim, (void *)(uintptr_t)at);
}
UM_FORWARD(cuMemFreeAsync_ptsz, (uint64_t at, void *s), cuMemFreeAsync(at, um_ptsz(s)))

/* CUmemPoolProps, as far as it is used. */
struct pool_props {
	int alloc_type, handle_types;
	struct um_location location;
};

UM_CALL(cuMemPoolCreate, void **out, const struct pool_props *props)
{
	int err = um_standin_enter(__func__);
	struct um_arena_pool *p;

	if (err)
		return err;
	if (!out || !props || (props->alloc_type != ALLOC_PINNED && props->alloc_type != ALLOC_MANAGED))
		return UM_CUDA_INVALID_VALUE;
	if (props->handle_types || (props->alloc_type == ALLOC_MANAGED && um_standin()->version < 13000))
		return UM_CUDA_NOT_SUPPORTED;
	if (props->alloc_type == ALLOC_PINNED && props->location.type != UM_LOC_DEVICE)
		return um_standin_unsupported("pools of host memory");
	if (props->alloc_type == ALLOC_PINNED && !um_standin_device(props->location.id))
		return UM_CUDA_INVALID_DEVICE;
	p = calloc(1, sizeof *p);
	if (!p)
		return UM_CUDA_NO_MEMORY;
	p->managed = props->alloc_type == ALLOC_MANAGED;
	p->made = 1;
	p->device = p->managed ? 0 : props->location.id;
	*out = p;
	return UM_CUDA_OK;
}

UM_CALL(cuMemPoolDestroy, void *pool)
{
	int err = um_standin_enter(__func__);
	struct um_arena_pool *p = pool;

	if (err || !p || !p->made)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	if (current_managed == p)
		current_managed = &managed_pool;
	for (int d = 0; d < UM_SIM_DEVICES_MAX; d++)
		if (current[d] == p)
			current[d] = NULL;
	um_standin_unlock();
	free(p);
	return UM_CUDA_OK;
}

UM_CALL(cuMemPoolTrimTo, void *pool, size_t bytes)
{
	(void)bytes;
	return pool ? um_standin_enter(__func__) : UM_CUDA_INVALID_VALUE;
}

/* 1 to 3 are switches, 4 is the release threshold, 5 to 8 count bytes, which are 0. */
UM_CALL(cuMemPoolSetAttribute, void *pool, int attribute, void *value)
{
	int err = um_standin_enter(__func__);
	struct um_arena_pool *p = pool;

	if (err || !p || !value || attribute < 1 || attribute > 8)
		return err ? err : UM_CUDA_INVALID_VALUE;
	if (attribute <= 3)
		memcpy(&p->reuse[attribute], value, sizeof p->reuse[0]);
	else if (attribute == 4)
		memcpy(&p->threshold, value, sizeof p->threshold);
	return UM_CUDA_OK;
}

UM_CALL(cuMemPoolGetAttribute, void *pool, int attribute, void *value)
{
	int err = um_standin_enter(__func__);
	struct um_arena_pool *p = pool;

	if (err || !p || !value || attribute < 1 || attribute > 8)
		return err ? err : UM_CUDA_INVALID_VALUE;
	if (attribute <= 3)
		memcpy(value, &p->reuse[attribute], sizeof p->reuse[0]);
	else
		memcpy(value, attribute == 4 ? &p->threshold : &(uint64_t){0}, sizeof p->threshold);
	return UM_CUDA_OK;
}

UM_CALL(cuMemPoolSetAccess, void *pool, const void *access, size_t n)
{
	(void)access;
	(void)n;
	return pool ? um_standin_enter(__func__) : UM_CUDA_INVALID_VALUE;
}

UM_CALL(cuMemPoolGetAccess, int *flags, void *pool, const struct um_location *location)
{
	int err = um_standin_enter(__func__);

	if (err || !flags || !pool || !location)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*flags = 3; /* reading and writing */
	return UM_CUDA_OK;
}

static int pool_of(void **out, int managed, int device, int now)
{
	if (!managed && !um_standin_device(device))
		return UM_CUDA_INVALID_DEVICE;
	if (!out)
		return UM_CUDA_INVALID_VALUE;
	*out = now ? current_pool(managed, device) : default_pool(managed, device);
	return UM_CUDA_OK;
}

UM_CALL(cuDeviceGetDefaultMemPool, void **out, int device)
{
	int err = um_standin_enter(__func__);

	return err ? err : pool_of(out, 0, device, 0);
}

UM_CALL(cuDeviceGetMemPool, void **out, int device)
{
	int err = um_standin_enter(__func__);

	return err ? err : pool_of(out, 0, device, 1);
}

UM_CALL(cuDeviceSetMemPool, int device, void *pool)
{
	int err = um_standin_enter(__func__);

	if (err || !um_standin_device(device) || !pool)
		return err ? err : !um_standin_device(device) ? UM_CUDA_INVALID_DEVICE : UM_CUDA_INVALID_VALUE;
	current[device] = pool;
	return UM_CUDA_OK;
}

static int kind_ok(const struct um_location *location, int type)
{
	return location && (type == ALLOC_MANAGED || (type == ALLOC_PINNED && location->type == UM_LOC_DEVICE));
}

UM_CALL(cuMemGetDefaultMemPool, void **out, struct um_location *location, int type)
{
	int err = um_standin_enter(__func__);

	return err			  ? err
	       : !kind_ok(location, type) ? UM_CUDA_INVALID_VALUE
					  : pool_of(out, type == ALLOC_MANAGED, location->id, 0);
}

UM_CALL(cuMemGetMemPool, void **out, struct um_location *location, int type)
{
	int err = um_standin_enter(__func__);

	return err			  ? err
	       : !kind_ok(location, type) ? UM_CUDA_INVALID_VALUE
					  : pool_of(out, type == ALLOC_MANAGED, location->id, 1);
}

UM_CALL(cuMemSetMemPool, struct um_location *location, int type, void *pool)
{
	int err = um_standin_enter(__func__);

	if (err || !kind_ok(location, type) || !pool)
		return err ? err : UM_CUDA_INVALID_VALUE;
	if (type == ALLOC_MANAGED)
		current_managed = pool;
	else if (um_standin_device(location->id))
		current[location->id] = pool;
	else
		err = UM_CUDA_INVALID_DEVICE;
	return err;
}

const struct um_entry um_memory_entries[] = {
	{"cuMemAlloc", 3020, cuMemAlloc_v2, NULL},
	{"cuMemAllocPitch", 3020, cuMemAllocPitch_v2, NULL},
	{"cuMemAllocManaged", 6000, cuMemAllocManaged, NULL},
	{"cuMemFree", 3020, cuMemFree_v2, NULL},
	{"cuMemGetInfo", 3020, cuMemGetInfo_v2, NULL},
	{"cuMemGetAddressRange", 3020, cuMemGetAddressRange_v2, NULL},
	{"cuMemAllocHost", 3020, cuMemAllocHost_v2, NULL},
	{"cuMemHostAlloc", 2020, cuMemHostAlloc, NULL},
	{"cuMemFreeHost", 2000, cuMemFreeHost, NULL},
	{"cuMemHostRegister", 4000, cuMemHostRegister_v2, NULL},
	{"cuMemHostUnregister", 4000, cuMemHostUnregister, NULL},
	{"cuMemHostGetDevicePointer", 3020, cuMemHostGetDevicePointer_v2, NULL},
	{"cuMemHostGetFlags", 2030, cuMemHostGetFlags, NULL},
	{"cuMemAllocAsync", 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz},
	{"cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz},
	{"cuMemFreeAsync", 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz},
	{"cuMemPoolCreate", 11020, cuMemPoolCreate, NULL},
	{"cuMemPoolDestroy", 11020, cuMemPoolDestroy, NULL},
	{"cuMemPoolTrimTo", 11020, cuMemPoolTrimTo, NULL},
	{"cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute, NULL},
	{"cuMemPoolGetAttribute", 11020, cuMemPoolGetAttribute, NULL},
	{"cuMemPoolSetAccess", 11020, cuMemPoolSetAccess, NULL},
	{"cuMemPoolGetAccess", 11020, cuMemPoolGetAccess, NULL},
	{"cuDeviceGetDefaultMemPool", 11020, cuDeviceGetDefaultMemPool, NULL},
	{"cuDeviceGetMemPool", 11020, cuDeviceGetMemPool, NULL},
	{"cuDeviceSetMemPool", 11020, cuDeviceSetMemPool, NULL},
	{"cuMemGetDefaultMemPool", 13000, cuMemGetDefaultMemPool, NULL},
	{"cuMemGetMemPool", 13000, cuMemGetMemPool, NULL},
	{"cuMemSetMemPool", 13000, cuMemSetMemPool, NULL},
	{0},
};
