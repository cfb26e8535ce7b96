/* SPDX-License-Identifier: Apache-2.0
 *
 * device_probe.c - the capabilities of a device
 *
 * Attributes first; then what no attribute reports reliably is tried once, on scratch memory. The stand-in is not
 * tried: it supports all that it has, and a trial would appear in its log.
 */
#include "gpu/device_state.h"
#include "gpu/host_node.h"
#include "gpu/kernel_evict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH ((size_t)2 << 20) /* a block of its own */

static int attribute(struct um_device *d, enum um_attribute which, int device)
{
	int value = 0;

	return d->cu.device_attribute(&value, which, device) ? 0 : value;
}

/* Batch calls fail while any visible device lacks concurrent managed access. The first such device, or -1. */
static int first_unmanaged(struct um_device *d)
{
	int n = 0, device;

	if (d->cu.device_count(&n))
		return -1;
	for (int i = 0; i < n; i++)
		if (!d->cu.device_get(&device, i) && !attribute(d, UM_AT_CONCURRENT_MANAGED_ACCESS, device))
			return i;
	return -1;
}

/* Tries something on managed memory, in order of a stream. */
static int on_scratch(struct um_device *d, int (*try)(struct um_device *d, void *p, um_stream stream))
{
	struct um_gpu *gpu = &d->gpu;
	um_stream stream;
	void *p;
	int err = d->api.cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING);

	if (err)
		return err;
	err = d->api.cudaMallocManaged(gpu, &p, SCRATCH, UM_ATTACH_GLOBAL);
	if (!err) {
		err = try(d, p, stream);
		if (!err)
			err = d->api.cudaStreamSynchronize(gpu, stream);
		d->api.cudaFree(gpu, p);
	}
	d->api.cudaStreamDestroy(gpu, stream);
	return err;
}

static int try_discard(struct um_device *d, void *p, um_stream stream)
{
	size_t bytes = SCRATCH;

	return d->api.cudaMemDiscardBatchAsync(&d->gpu, &p, &bytes, 1, 0, stream);
}

static void probe_discard(struct um_device *d)
{
	int blocker = first_unmanaged(d), err;

	if (!d->api.cudaMemDiscardBatchAsync) {
		um_device_refuse(d, "no discards: they need a driver of CUDA 13.0, this one is %d.%d",
				 d->info.driver_version / 1000, d->info.driver_version % 1000 / 10);
		return;
	}
	if (blocker >= 0) {
		um_device_refuse(d, "no discards: the visible device %d has no concurrent managed access", blocker);
		return;
	}
	err = d->standin ? UM_CUDA_OK : on_scratch(d, try_discard);
	if (err)
		um_device_refuse(d, "no discards: this driver refuses them with CUDA error %d", err);
	d->gpu.caps.discard = !err;
	d->gpu.caps.prefetch_batch = d->api.cudaMemPrefetchBatchAsync != NULL;
}

static int try_evict(struct um_device *d, void *p, um_stream stream)
{
	(void)stream;
	d->uvm = um_kernel_evict_open(UM_KERNEL_MODULE, p, SCRATCH);
	return UM_CUDA_OK;
}

/* The node that hints to the host name, or -1. The stand-in's host is not this one. */
static int find_node(struct um_device *d, const struct um_device_options *o)
{
	int node;

	if (o->host_node)
		return o->host_node - (o->host_node > 0);
	if (d->cu.device_attribute(&node, UM_AT_HOST_NUMA_ID, d->device))
		return -1;
	return d->standin || um_host_node_matters(o->root ? o->root : "", node) ? node : -1;
}

/* What hints to the host make, by libcuda and past it. */
static int try_node(struct um_device *d, void *p, um_stream stream)
{
	int err = d->api.cudaMemPrefetchAsync(&d->gpu, p, SCRATCH, um_on_host(), 0, stream);

	if (!err)
		err = d->api.cudaMemAdvise(&d->gpu, p, SCRATCH, UM_ADV_SET_PREFERRED, um_on_host());
	if (!err && d->uvm >= 0)
		err = um_kernel_evict(d->uvm, p, SCRATCH, um_device_node(d));
	return err;
}

/* The forms of hints that name a node and the attribute both came with CUDA 12.2. */
static void probe_node(struct um_device *d, const struct um_device_options *o)
{
	const struct um_calls *calls = d->info.via == UM_VIA_RUNTIME ? &d->runtime : &d->driver;
	int node = calls->prefetch ? find_node(d, o) : -1;

	if (node < 0)
		return;
	d->info.host = (struct um_location){UM_LOC_HOST_NUMA, node};
	if (on_scratch(d, try_node)) {
		d->info.node_refused = node + 1;
		d->info.host = um_on_host();
	}
}

static void set_capacity(struct um_device *d)
{
	size_t free_bytes = 0, total = 0;

	if (!d->api.cudaMemGetInfo(&d->gpu, &free_bytes, &total))
		d->gpu.caps.capacity = free_bytes;
}

/* Of a part of a GPU (MIG), its own one. */
static void set_uuid(struct um_device *d)
{
	unsigned char uuid[16];

	if (d->standin || !d->cu.uuid || d->cu.uuid(uuid, d->device))
		return;
	for (int i = 0; i < 16; i++)
		snprintf(d->gpu.caps.uuid + 2 * i, 3, "%02x", uuid[i]);
}

/* The reasons are written from the least to the most important: the last one stays. */
void um_device_probe(struct um_device *d, const struct um_device_options *options)
{
	struct um_gpu_caps *caps = &d->gpu.caps;

	caps->concurrent_managed = attribute(d, UM_AT_CONCURRENT_MANAGED_ACCESS, d->device);
	caps->pageable = attribute(d, UM_AT_PAGEABLE_MEMORY_ACCESS, d->device);
	caps->integrated = attribute(d, UM_AT_INTEGRATED, d->device);
	caps->ats = attribute(d, UM_AT_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, d->device);
	d->info.sms = attribute(d, UM_AT_MULTIPROCESSOR_COUNT, d->device);
	d->info.cc_major = attribute(d, UM_AT_COMPUTE_CAPABILITY_MAJOR, d->device);
	d->info.cc_minor = attribute(d, UM_AT_COMPUTE_CAPABILITY_MINOR, d->device);
	set_capacity(d);
	set_uuid(d);
	caps->no_faults = !caps->concurrent_managed;
	if (caps->no_faults) {
		um_device_refuse(
			d, "no hints: this device migrates managed memory as a whole at every launch, without faults "
			   "(concurrentManagedAccess is 0, as on Windows and WSL)");
		return;
	}
	probe_discard(d);
	if (!options->prefetches_evict && !d->standin)
		on_scratch(d, try_evict);
	if (d->uvm >= 0)
		d->api.evict = um_device_evict;
	probe_node(d, options);
	if (caps->integrated)
		um_device_refuse(d, "no hints: this GPU uses the host's memory, so nothing has to move");
}
