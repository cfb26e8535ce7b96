/* SPDX-License-Identifier: Apache-2.0
 *
 * rt_device.c - device functions of the runtime: devices and their properties
 */
#include "standin/rt.h"

#include <stddef.h>

/* cudaDeviceProp: members up to the last filled one, then padding to its real size. */
struct prop {
	char name[256], uuid[16], luid[8];
	unsigned luid_mask;
	size_t total_memory, shared_per_block;
	int registers_per_block, warp;
	size_t pitch;
	int threads_per_block, block[3], grid[3];
#if UM_RT_MAJOR == 12
	int clock_khz;
#endif
	size_t constant;
	int major, minor;
	size_t texture_alignment, texture_pitch_alignment;
#if UM_RT_MAJOR == 12
	int overlap;
#endif
	int processors;
#if UM_RT_MAJOR == 12
	int timeout;
#endif
	int integrated, map_host;
#if UM_RT_MAJOR == 12
	int compute_mode;
#endif
	int texture[UM_RT_MAJOR == 12 ? 39 : 38];
	size_t surface_alignment;
	int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, engines, unified;
#if UM_RT_MAJOR == 12
	int memory_khz;
#endif
	int bus_width, l2, l2_persisting, threads_per_processor, priorities, global_l1, local_l1;
	size_t shared_per_processor;
	int registers_per_processor, managed, multi_board, board, host_atomics;
#if UM_RT_MAJOR == 12
	int double_ratio;
#endif
	int pageable, concurrent_managed, preemption, host_pointer, cooperative;
#if UM_RT_MAJOR == 12
	int cooperative_multi;
#endif
	size_t shared_optin;
	int host_page_tables, direct_host, blocks_per_processor, policy_window;
	size_t shared_reserved;
	int host_register, sparse, read_only, timeline, pools, rdma, rdma_flush, rdma_order, pool_handles;
	int deferred, ipc;
	int rest[65];
};

static const struct {
	int attribute;
	unsigned offset;
	int wide; /* a size_t */
} members[] = {
#define INT(attribute, member)                                                                                         \
	{                                                                                                              \
		attribute, offsetof(struct prop, member), 0                                                            \
	}
#define SIZE(attribute, member)                                                                                        \
	{                                                                                                              \
		attribute, offsetof(struct prop, member), 1                                                            \
	}
	SIZE(8, shared_per_block),
	INT(12, registers_per_block),
	INT(10, warp),
	SIZE(11, pitch),
	INT(1, threads_per_block),
	INT(2, block[0]),
	INT(3, block[1]),
	INT(4, block[2]),
	INT(5, grid[0]),
	INT(6, grid[1]),
	INT(7, grid[2]),
#if UM_RT_MAJOR == 12
	INT(13, clock_khz),
	INT(15, overlap),
	INT(17, timeout),
	INT(20, compute_mode),
	INT(36, memory_khz),
	INT(87, double_ratio),
#endif
	SIZE(9, constant),
	INT(75, major),
	INT(76, minor),
	SIZE(14, texture_alignment),
	SIZE(51, texture_pitch_alignment),
	INT(16, processors),
	INT(18, integrated),
	INT(19, map_host),
	INT(31, concurrent_kernels),
	INT(32, ecc),
	INT(33, pci_bus),
	INT(34, pci_device),
	INT(50, pci_domain),
	INT(40, engines),
	INT(41, unified),
	INT(37, bus_width),
	INT(38, l2),
	INT(39, threads_per_processor),
	INT(78, priorities),
	INT(79, global_l1),
	INT(80, local_l1),
	SIZE(81, shared_per_processor),
	INT(82, registers_per_processor),
	INT(83, managed),
	INT(84, multi_board),
	INT(86, host_atomics),
	INT(88, pageable),
	INT(89, concurrent_managed),
	INT(90, preemption),
	INT(91, host_pointer),
	INT(95, cooperative),
	SIZE(97, shared_optin),
	INT(100, host_page_tables),
	INT(101, direct_host),
	INT(106, blocks_per_processor),
	SIZE(111, shared_reserved),
	INT(99, host_register),
	INT(115, pools),
};

static int properties(struct prop *p, int device)
{
	int err = um_rt_enter();

	if (err || !p)
		return um_rt_done(err ? err : UM_CUDA_INVALID_VALUE);
	memset(p, 0, sizeof *p);
	err = um_rt.cuDeviceGetName(p->name, sizeof p->name, device);
	if (!err)
		err = um_rt.cuDeviceGetUuid(p->uuid, device);
	if (!err)
		err = um_rt.cuDeviceTotalMem(&p->total_memory, device);
	for (size_t i = 0; i < sizeof members / sizeof members[0] && !err; i++) {
		int value = 0;
		size_t wide;

		err = um_rt.cuDeviceGetAttribute(&value, members[i].attribute, device);
		wide = (size_t)value;
		if (members[i].wide)
			memcpy((char *)p + members[i].offset, &wide, sizeof wide);
		else
			memcpy((char *)p + members[i].offset, &value, sizeof value);
	}
	return um_rt_done(err);
}

#if UM_RT_MAJOR == 12
UM_EXPORT int cudaGetDeviceProperties_v2(struct prop *p, int device);
int cudaGetDeviceProperties_v2(struct prop *p, int device)
{
	return properties(p, device);
}
#else
UM_EXPORT int cudaGetDeviceProperties(struct prop *p, int device);
int cudaGetDeviceProperties(struct prop *p, int device)
{
	return properties(p, device);
}
#endif

UM_RT(cudaGetDeviceCount, (int *count), cuDeviceGetCount, (count))
UM_RT(cudaDeviceGetAttribute, (int *value, int attribute, int device), cuDeviceGetAttribute, (value, attribute, device))
UM_RT(cudaDeviceGetPCIBusId, (char *id, int size, int device), cuDeviceGetPCIBusId, (id, size, device))
UM_RT(cudaDeviceGetByPCIBusId, (int *device, const char *id), cuDeviceGetByPCIBusId, (device, id))
UM_RT(cudaDeviceCanAccessPeer, (int *can, int device, int peer), cuDeviceCanAccessPeer, (can, device, peer))
UM_RT(cudaDeviceGetLimit, (size_t * value, int limit), cuCtxGetLimit, (value, limit))
UM_RT(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit, (limit, value))
UM_RT(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange, (least, greatest))
UM_RT(cudaDeviceGetDefaultMemPool, (void **pool, int device), cuDeviceGetDefaultMemPool, (pool, device))
UM_RT(cudaDeviceSynchronize, (void), cuCtxSynchronize, ())
UM_RT(cudaDeviceGetP2PAttribute, (int *value, int attribute, int device, int peer), cuDeviceGetP2PAttribute,
      (value, attribute, device, peer))
UM_RT(cudaMemGetInfo, (size_t * free_bytes, size_t *total), cuMemGetInfo, (free_bytes, total))
UM_RT(cudaProfilerStart, (void), cuProfilerStart, ())
UM_RT(cudaProfilerStop, (void), cuProfilerStop, ())

UM_EXPORT int cudaSetDevice(int device);
int cudaSetDevice(int device)
{
	int err = um_rt_enter();

	return um_rt_done(err ? err : um_rt_set_device(device));
}

UM_EXPORT int cudaInitDevice(int device, unsigned device_flags, unsigned flags);
int cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	(void)device_flags;
	return flags > 1 ? um_rt_done(UM_CUDA_INVALID_VALUE) : cudaSetDevice(device);
}

UM_EXPORT int cudaGetDevice(int *device);
int cudaGetDevice(int *device)
{
	int err = um_rt_enter();

	if (!err)
		err = device ? um_rt.cuCtxGetDevice(device) : UM_CUDA_INVALID_VALUE;
	return um_rt_done(err);
}

UM_EXPORT int cudaDeviceReset(void);
int cudaDeviceReset(void)
{
	int device = 0, err = cudaGetDevice(&device);

	return um_rt_done(err ? err : um_rt.cuDevicePrimaryCtxReset(device));
}

static int peer_ok(int peer)
{
	int n = 0, own = 0, err = um_rt_enter();

	err = err ? err : um_rt.cuDeviceGetCount(&n);
	err = err ? err : um_rt.cuCtxGetDevice(&own);
	return err ? err : peer < 0 || peer >= n || peer == own ? UM_CUDA_INVALID_DEVICE : UM_CUDA_OK;
}

UM_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	void *current = NULL;
	int err = peer_ok(peer);

	err = err ? err : um_rt.cuCtxGetCurrent(&current);
	return um_rt_done(err ? err : um_rt.cuCtxEnablePeerAccess(current, flags));
}

UM_EXPORT int cudaDeviceDisablePeerAccess(int peer);
int cudaDeviceDisablePeerAccess(int peer)
{
	void *current = NULL;
	int err = peer_ok(peer);

	err = err ? err : um_rt.cuCtxGetCurrent(&current);
	return um_rt_done(err ? err : um_rt.cuCtxDisablePeerAccess(current));
}

UM_EXPORT int cudaChooseDevice(int *device, const struct prop *wanted);
int cudaChooseDevice(int *device, const struct prop *wanted)
{
	(void)wanted;
	return cudaGetDevice(device);
}

static unsigned device_flags;

/* Flags for waiting host threads have no effect in simulated time. */
UM_EXPORT int cudaSetDeviceFlags(unsigned flags);
int cudaSetDeviceFlags(unsigned flags)
{
	device_flags = flags;
	return UM_CUDA_OK;
}

UM_EXPORT int cudaGetDeviceFlags(unsigned *flags);
int cudaGetDeviceFlags(unsigned *flags)
{
	int err = um_rt_enter();

	if (!err)
		*flags = device_flags;
	return um_rt_done(err);
}

UM_EXPORT int cudaDeviceSetCacheConfig(int config);
int cudaDeviceSetCacheConfig(int config)
{
	(void)config;
	return um_rt_done(um_rt_enter());
}
