/* SPDX-License-Identifier: Apache-2.0
 *
 * hint.c - prefetch, advice and discard in the forms of both versions, and attributes of ranges and pointers
 */
#include "standin/work.h"

#define LOCATION_NUMA_CURRENT 4
#define OLD_CPU (-1)
#define OLD_NONE (-2)

static void *ptr(uint64_t device)
{
	return (void *)(uintptr_t)device;
}

static struct um_location old_location(int device)
{
	return device == OLD_CPU ? um_on_host() : um_on_device(device);
}

/* All nodes of the host are one place. */
static int plain(struct um_location *to)
{
	if (to->type == UM_LOC_HOST_NUMA && (to->id < 0 || to->id >= um_standin_nodes()))
		return UM_CUDA_INVALID_VALUE;
	if (to->type == LOCATION_NUMA_CURRENT)
		to->type = UM_LOC_HOST_NUMA;
	return UM_CUDA_OK;
}

static int prefetch(uint64_t at, size_t bytes, struct um_location to, unsigned flags, void *stream)
{
	struct um_gpu *gpu = um_standin()->gpu;
	um_stream sim;
	int err = um_stream_uncaptured(stream, &sim);

	err = err ? err : plain(&to);
	return err ? err : gpu->api->cudaMemPrefetchAsync(gpu, ptr(at), bytes, to, flags, sim);
}

UM_CALL(cuMemPrefetchAsync, uint64_t at, size_t bytes, int device, void *stream)
{
	int err = um_standin_enter(__func__);

	return err ? err : prefetch(at, bytes, old_location(device), 0, stream);
}
UM_FORWARD(cuMemPrefetchAsync_ptsz, (uint64_t at, size_t bytes, int device, void *s),
	   cuMemPrefetchAsync(at, bytes, device, um_ptsz(s)))

UM_CALL(cuMemPrefetchAsync_v2, uint64_t at, size_t bytes, struct um_location to, unsigned flags, void *stream)
{
	int err = um_standin_enter(__func__);

	return err ? err : prefetch(at, bytes, to, flags, stream);
}
UM_FORWARD(cuMemPrefetchAsync_v2_ptsz, (uint64_t at, size_t bytes, struct um_location to, unsigned flags, void *s),
	   cuMemPrefetchAsync_v2(at, bytes, to, flags, um_ptsz(s)))

static int advise(uint64_t at, size_t bytes, int advice, struct um_location where)
{
	struct um_gpu *gpu = um_standin()->gpu;
	int err;

	um_standin_lock();
	err = um_capture_unsafe();
	um_standin_unlock();
	err = err ? err : plain(&where);
	return err ? err : gpu->api->cudaMemAdvise(gpu, ptr(at), bytes, advice, where);
}

UM_CALL(cuMemAdvise, uint64_t at, size_t bytes, int advice, int device)
{
	int err = um_standin_enter(__func__);

	return err ? err : advise(at, bytes, advice, old_location(device));
}

UM_CALL(cuMemAdvise_v2, uint64_t at, size_t bytes, int advice, struct um_location where)
{
	int err = um_standin_enter(__func__);

	return err ? err : advise(at, bytes, advice, where);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

/* Refuses the legacy default stream in all spellings. */
static int batch_stream(void *stream, um_stream *sim)
{
	if (!stream || stream == UM_LEGACY_STREAM)
		return UM_CUDA_INVALID_VALUE;
	return um_stream_uncaptured(stream, sim);
}

UM_CALL(cuMemPrefetchBatchAsync, uint64_t *at, size_t *bytes, size_t n, struct um_location *to, size_t *to_index,
	size_t n_to, unsigned long long flags, void *stream)
{
	int err = um_standin_enter(__func__);
	struct um_gpu *gpu;
	um_stream sim;

	err = err ? err : batch_stream(stream, &sim);
	if (err)
		return err;
	gpu = um_standin()->gpu;
	return gpu->api->cudaMemPrefetchBatchAsync(gpu, (void **)at, bytes, n, to, to_index, n_to, flags, sim);
}
UM_FORWARD(cuMemPrefetchBatchAsync_ptsz,
	   (uint64_t * at, size_t *bytes, size_t n, struct um_location *to, size_t *to_index, size_t n_to,
	    unsigned long long flags, void *s),
	   cuMemPrefetchBatchAsync(at, bytes, n, to, to_index, n_to, flags, um_ptsz(s)))

UM_CALL(cuMemDiscardBatchAsync, uint64_t *at, size_t *bytes, size_t n, unsigned long long flags, void *stream)
{
	int err = um_standin_enter(__func__);
	struct um_gpu *gpu;
	um_stream sim;

	err = err ? err : batch_stream(stream, &sim);
	if (err)
		return err;
	gpu = um_standin()->gpu;
	return gpu->api->cudaMemDiscardBatchAsync(gpu, (void **)at, bytes, n, flags, sim);
}
UM_FORWARD(cuMemDiscardBatchAsync_ptsz, (uint64_t * at, size_t *bytes, size_t n, unsigned long long flags, void *s),
	   cuMemDiscardBatchAsync(at, bytes, n, flags, um_ptsz(s)))

UM_CALL(cuMemDiscardAndPrefetchBatchAsync, uint64_t *at, size_t *bytes, size_t n, struct um_location *to,
	size_t *to_index, size_t n_to, unsigned long long flags, void *stream)
{
	int err = um_standin_enter(__func__);
	struct um_gpu *gpu;
	um_stream sim;

	err = err ? err : batch_stream(stream, &sim);
	if (err)
		return err;
	gpu = um_standin()->gpu;
	return gpu->api->cudaMemDiscardAndPrefetchBatchAsync(gpu, (void **)at, bytes, n, to, to_index, n_to, flags,
							     sim);
}
UM_FORWARD(cuMemDiscardAndPrefetchBatchAsync_ptsz,
	   (uint64_t * at, size_t *bytes, size_t n, struct um_location *to, size_t *to_index, size_t n_to,
	    unsigned long long flags, void *s),
	   cuMemDiscardAndPrefetchBatchAsync(at, bytes, n, to, to_index, n_to, flags, um_ptsz(s)))

/* Has an effect only on devices without unified addressing of all memory. */
UM_CALL(cuStreamAttachMemAsync, void *stream, uint64_t at, size_t bytes, unsigned flags)
{
	int err = um_standin_enter(__func__);
	um_stream sim;

	(void)at;
	(void)bytes;
	if (!err && flags != 1 && flags != 2 && flags != 4)
		err = UM_CUDA_INVALID_VALUE;
	return err ? err : um_stream_uncaptured(stream, &sim);
}
UM_FORWARD(cuStreamAttachMemAsync_ptsz, (void *s, uint64_t at, size_t bytes, unsigned flags),
	   cuStreamAttachMemAsync(um_ptsz(s), at, bytes, flags))

/* --- what a range was told --------------------------------------------------------------------------------------- */

/* CUmem_range_attribute */
enum range_attribute {
	READ_MOSTLY = 1,
	PREFERRED,
	ACCESSED_BY,
	LAST_PREFETCH,
	PREFERRED_TYPE,
	PREFERRED_ID,
	LAST_PREFETCH_TYPE,
	LAST_PREFETCH_ID
};

/* Converts a device of the old attributes to a location's type. */
static int type_of(int place)
{
	return place == OLD_CPU ? UM_LOC_HOST : place == OLD_NONE ? 0 : UM_LOC_DEVICE;
}

static int device_of(int place)
{
	return place >= 0 ? place : 0;
}

static int accessed_by(const struct um_sim_range_attributes *attributes, void *data, size_t bytes)
{
	int *out = data;
	size_t n = 0;

	if (bytes % sizeof *out)
		return UM_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < bytes / sizeof *out; i++)
		out[i] = OLD_NONE;
	for (int d = 0; d < UM_SIM_DEVICES_MAX; d++)
		if (attributes->accessed_gpu >> d & 1 && n < bytes / sizeof *out)
			out[n++] = d;
	if (attributes->accessed_cpu && n < bytes / sizeof *out)
		out[n++] = OLD_CPU;
	return UM_CUDA_OK;
}

static int range_attribute(void *data, size_t bytes, int attribute, uint64_t at, size_t n)
{
	struct um_sim_range_attributes attributes;
	int v, err = um_sim_range_attributes(um_standin()->gpu, ptr(at), n, &attributes);

	if (err || !data || !bytes)
		return err ? err : UM_CUDA_INVALID_VALUE;
	switch (attribute) {
	case READ_MOSTLY:
		v = attributes.read_mostly;
		break;
	case ACCESSED_BY:
		return accessed_by(&attributes, data, bytes);
	case PREFERRED:
		v = attributes.preferred;
		break;
	case LAST_PREFETCH:
		v = attributes.prefetched;
		break;
	case PREFERRED_TYPE:
		v = type_of(attributes.preferred);
		break;
	case LAST_PREFETCH_TYPE:
		v = type_of(attributes.prefetched);
		break;
	case PREFERRED_ID:
		v = device_of(attributes.preferred);
		break;
	case LAST_PREFETCH_ID:
		v = device_of(attributes.prefetched);
		break;
	default:
		return UM_CUDA_INVALID_VALUE;
	}
	if (bytes != sizeof v)
		return UM_CUDA_INVALID_VALUE;
	memcpy(data, &v, sizeof v);
	return UM_CUDA_OK;
}

UM_CALL(cuMemRangeGetAttribute, void *data, size_t bytes, int attribute, uint64_t at, size_t n)
{
	int err = um_standin_enter(__func__);

	return err ? err : range_attribute(data, bytes, attribute, at, n);
}

UM_CALL(cuMemRangeGetAttributes, void **data, size_t *bytes, int *attributes, size_t n_attributes, uint64_t at,
	size_t n)
{
	int err = um_standin_enter(__func__);

	if (!err && (!data || !bytes || !attributes || !n_attributes))
		err = UM_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < n_attributes && !err; i++)
		err = range_attribute(data[i], bytes[i], attributes[i], at, n);
	return err;
}

/* --- what a pointer is -------------------------------------------------------------------------------------------- */

/* CUpointer_attribute */
enum pointer_attribute {
	CONTEXT = 1,
	MEMORY_TYPE,
	DEVICE_POINTER,
	HOST_POINTER,
	P2P_TOKENS,
	SYNC_MEMOPS,
	BUFFER_ID,
	IS_MANAGED,
	DEVICE_ORDINAL,
	IS_LEGACY_IPC,
	RANGE_START,
	RANGE_SIZE,
	MAPPED,
	HANDLE_TYPES,
	IS_RDMA,
	ACCESS_FLAGS,
	POOL,
	MAPPING_SIZE,
	MAPPING_BASE,
	BLOCK_ID
};

static void put_word(void *out, uint64_t v)
{
	memcpy(out, &v, sizeof v);
}

static void put_int(void *out, int v)
{
	memcpy(out, &v, sizeof v);
}

int cuCtxGetCurrent(void **context);

/* One attribute of known memory. */
static int pointer_attribute(void *out, int attribute, uint64_t at, const struct um_sim_memory *m)
{
	int host = m->kind == UM_SIM_PINNED || m->kind == UM_SIM_REGISTERED;

	switch (attribute) {
	case CONTEXT:
		return cuCtxGetCurrent(out);
	case MEMORY_TYPE: /* host, device; managed memory counts as device memory and has its own attribute */
		put_int(out, host ? 1 : 2);
		break;
	case DEVICE_POINTER:
		put_word(out, at);
		break;
	case HOST_POINTER:
		if (m->kind == UM_SIM_DEVICE)
			return UM_CUDA_INVALID_VALUE;
		put_word(out, at);
		break;
	case IS_MANAGED:
		put_int(out, m->kind == UM_SIM_MANAGED);
		break;
	case DEVICE_ORDINAL:
		put_int(out, m->device);
		break;
	case SYNC_MEMOPS:
	case IS_LEGACY_IPC:
	case IS_RDMA:
		put_int(out, 0);
		break;
	case MAPPED:
		put_int(out, 1);
		break;
	case ACCESS_FLAGS:
		put_int(out, 3);
		break;
	case RANGE_START:
	case MAPPING_BASE:
		put_word(out, m->addr);
		break;
	case RANGE_SIZE:
	case MAPPING_SIZE:
		put_word(out, m->bytes);
		break;
	case HANDLE_TYPES:
	case POOL:
		put_word(out, 0);
		break;
	case BUFFER_ID:
	case BLOCK_ID:
		put_word(out, m->serial);
		break;
	default:
		return UM_CUDA_INVALID_VALUE;
	}
	return UM_CUDA_OK;
}

UM_CALL(cuPointerGetAttribute, void *out, int attribute, uint64_t at)
{
	int err = um_standin_enter(__func__);
	struct um_sim_memory m;

	if (!err && (!out || um_sim_memory(um_standin()->gpu, ptr(at), &m)))
		err = UM_CUDA_INVALID_VALUE;
	return err ? err : pointer_attribute(out, attribute, at, &m);
}

/* Returns zeros for unknown pointers and for missing attributes. */
static void pointer_none(void *out, int attribute)
{
	switch (attribute) {
	case MEMORY_TYPE:
	case SYNC_MEMOPS:
	case IS_MANAGED:
	case IS_LEGACY_IPC:
	case MAPPED:
	case IS_RDMA:
	case ACCESS_FLAGS:
		put_int(out, 0);
		break;
	case DEVICE_ORDINAL:
		put_int(out, OLD_NONE);
		break;
	default:
		put_word(out, 0);
		break;
	}
}

UM_CALL(cuPointerGetAttributes, unsigned n, int *attributes, void **out, uint64_t at)
{
	int err = um_standin_enter(__func__), known;
	struct um_sim_memory m;

	if (!err && (!n || !attributes || !out))
		err = UM_CUDA_INVALID_VALUE;
	if (err)
		return err;
	known = um_sim_memory(um_standin()->gpu, ptr(at), &m) == 0;
	for (unsigned i = 0; i < n; i++)
		if (!known || pointer_attribute(out[i], attributes[i], at, &m))
			pointer_none(out[i], attributes[i]);
	return UM_CUDA_OK;
}

UM_CALL(cuPointerSetAttribute, const void *value, int attribute, uint64_t at)
{
	int err = um_standin_enter(__func__);
	struct um_sim_memory m;

	if (!err && (!value || attribute != SYNC_MEMOPS || um_sim_memory(um_standin()->gpu, ptr(at), &m)))
		err = UM_CUDA_INVALID_VALUE;
	return err;
}

const struct um_entry um_hint_entries[] = {
	{"cuMemPrefetchAsync", 8000, cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz},
	{"cuMemPrefetchAsync", 12020, cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz},
	{"cuMemAdvise", 8000, cuMemAdvise, NULL},
	{"cuMemAdvise", 12020, cuMemAdvise_v2, NULL},
	{"cuMemPrefetchBatchAsync", 13000, cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz},
	{"cuMemDiscardBatchAsync", 13000, cuMemDiscardBatchAsync, cuMemDiscardBatchAsync_ptsz},
	{"cuMemDiscardAndPrefetchBatchAsync", 13000, cuMemDiscardAndPrefetchBatchAsync,
	 cuMemDiscardAndPrefetchBatchAsync_ptsz},
	{"cuStreamAttachMemAsync", 6000, cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz},
	{"cuMemRangeGetAttribute", 8000, cuMemRangeGetAttribute, NULL},
	{"cuMemRangeGetAttributes", 8000, cuMemRangeGetAttributes, NULL},
	{"cuPointerGetAttribute", 4000, cuPointerGetAttribute, NULL},
	{"cuPointerGetAttributes", 7000, cuPointerGetAttributes, NULL},
	{"cuPointerSetAttribute", 6000, cuPointerSetAttribute, NULL},
	{0},
};
