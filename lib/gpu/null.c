/* SPDX-License-Identifier: Apache-2.0
 *
 * null.c - a device that completes everything at once
 *
 * Nothing waits: streams are numbers, events are complete when they are created.
 */
#include "gpu/null.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN (2ull << 20)

struct null {
	struct um_gpu gpu; /* first */
	unsigned fail_nth;
	atomic_uint_fast64_t hint_calls, streams;
	atomic_uint_fast64_t allocs, frees, prefetches, prefetch_bytes, evicts, evict_bytes, discards, discard_bytes,
		advices, events, waits;
};

/* In the page before the allocated memory. */
struct head {
	void *span;
	size_t bytes;
};

static struct null *null_of(struct um_gpu *gpu)
{
	return (struct null *)gpu;
}

static int memory_get(struct um_gpu *gpu, void **ptr, size_t bytes)
{
	struct head h;
	uintptr_t at;

	if (!ptr || !bytes || bytes > SIZE_MAX - 2 * ALIGN)
		return ptr && bytes ? UM_CUDA_NO_MEMORY : UM_CUDA_INVALID_VALUE;
	h.bytes = bytes + 2 * ALIGN;
	h.span = mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h.span == MAP_FAILED)
		return UM_CUDA_NO_MEMORY;
	at = ((uintptr_t)h.span + sizeof h + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
	memcpy((void *)(at - sizeof h), &h, sizeof h);
	*ptr = (void *)at;
	null_of(gpu)->allocs++;
	return UM_CUDA_OK;
}

static int null_malloc_managed(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	(void)flags;
	return memory_get(gpu, ptr, bytes);
}

static int null_malloc(struct um_gpu *gpu, void **ptr, size_t bytes)
{
	return memory_get(gpu, ptr, bytes);
}

static int null_free(struct um_gpu *gpu, void *ptr)
{
	struct head h;

	if (!ptr)
		return UM_CUDA_OK;
	memcpy(&h, (char *)ptr - sizeof h, sizeof h);
	munmap(h.span, h.bytes);
	null_of(gpu)->frees++;
	return UM_CUDA_OK;
}

static int null_mem_info(struct um_gpu *gpu, size_t *free_bytes, size_t *total_bytes)
{
	*free_bytes = *total_bytes = gpu->caps.capacity;
	return UM_CUDA_OK;
}

/* Must this hint call fail? */
static int hint(struct null *n)
{
	uint64_t k = ++n->hint_calls;

	return n->fail_nth && k % n->fail_nth == 0 ? UM_CUDA_INVALID_VALUE : UM_CUDA_OK;
}

static void count_prefetch(struct null *n, struct um_location to, size_t bytes)
{
	if (to.type == UM_LOC_DEVICE) {
		n->prefetches++;
		n->prefetch_bytes += bytes;
	} else {
		n->evicts++;
		n->evict_bytes += bytes;
	}
}

static int null_prefetch(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
			 um_stream stream)
{
	int err = hint(null_of(gpu));

	(void)ptr;
	(void)flags;
	(void)stream;
	if (!err)
		count_prefetch(null_of(gpu), to, bytes);
	return err;
}

static int null_advise(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where)
{
	int err = hint(null_of(gpu));

	(void)ptr;
	(void)bytes;
	(void)advice;
	(void)where;
	if (!err)
		null_of(gpu)->advices++;
	return err;
}

static int null_prefetch_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
			       size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	size_t at = 0;
	int err = hint(null_of(gpu));

	(void)ptrs;
	(void)flags;
	(void)stream;
	for (size_t i = 0; i < count && !err; i++) {
		if (at + 1 < n_locs && loc_idxs[at + 1] == i)
			at++;
		count_prefetch(null_of(gpu), locs[at], sizes[i]);
	}
	return err;
}

static int null_discard_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, unsigned long long flags,
			      um_stream stream)
{
	int err = hint(null_of(gpu));

	(void)ptrs;
	(void)flags;
	(void)stream;
	for (size_t i = 0; i < count && !err; i++) {
		null_of(gpu)->discards++;
		null_of(gpu)->discard_bytes += sizes[i];
	}
	return err;
}

static int null_renew_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
			    size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	int err = null_discard_batch(gpu, ptrs, sizes, count, flags, stream);
	size_t at = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (at + 1 < n_locs && loc_idxs[at + 1] == i)
			at++;
		count_prefetch(null_of(gpu), locs[at], sizes[i]);
	}
	return err;
}

static int null_stream_create(struct um_gpu *gpu, um_stream *stream, unsigned flags)
{
	(void)flags;
	*stream = (um_stream)(uintptr_t)(16 + null_of(gpu)->streams++); /* handles 0 to 2 have a meaning */
	return UM_CUDA_OK;
}

static int null_stream(struct um_gpu *gpu, um_stream stream)
{
	(void)gpu;
	(void)stream;
	return UM_CUDA_OK;
}

static int null_sync(struct um_gpu *gpu)
{
	(void)gpu;
	return UM_CUDA_OK;
}

static int null_stream_wait(struct um_gpu *gpu, um_stream stream, um_event_handle event, unsigned flags)
{
	(void)stream;
	(void)event;
	(void)flags;
	null_of(gpu)->waits++;
	return UM_CUDA_OK;
}

static int null_capturing(struct um_gpu *gpu, um_stream stream, int *status)
{
	(void)gpu;
	(void)stream;
	*status = 0;
	return UM_CUDA_OK;
}

static int null_stream_id(struct um_gpu *gpu, um_stream stream, unsigned long long *id)
{
	(void)gpu;
	*id = (uintptr_t)stream;
	return UM_CUDA_OK;
}

static int null_host_alloc(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	(void)gpu;
	(void)flags;
	*ptr = calloc(1, bytes);
	return *ptr ? UM_CUDA_OK : UM_CUDA_NO_MEMORY;
}

static int null_host_free(struct um_gpu *gpu, void *ptr)
{
	(void)gpu;
	free(ptr);
	return UM_CUDA_OK;
}

static int null_event_create(struct um_gpu *gpu, um_event_handle *event, unsigned flags)
{
	(void)flags;
	*event = gpu; /* all events are equal */
	return UM_CUDA_OK;
}

static int null_event(struct um_gpu *gpu, um_event_handle event)
{
	(void)gpu;
	(void)event;
	return UM_CUDA_OK;
}

static int null_event_record(struct um_gpu *gpu, um_event_handle event, um_stream stream)
{
	(void)event;
	(void)stream;
	null_of(gpu)->events++;
	return UM_CUDA_OK;
}

static int null_event_elapsed(struct um_gpu *gpu, float *ms, um_event_handle start, um_event_handle end)
{
	(void)gpu;
	(void)start;
	(void)end;
	*ms = 0;
	return UM_CUDA_OK;
}

static void null_close(struct um_gpu *gpu)
{
	free(gpu);
}

static const struct um_gpu_api api = {
	.cudaMallocManaged = null_malloc_managed,
	.cudaFree = null_free,
	.cudaMalloc = null_malloc,
	.cudaMemGetInfo = null_mem_info,
	.cudaMemPrefetchAsync = null_prefetch,
	.cudaMemAdvise = null_advise,
	.cudaMemPrefetchBatchAsync = null_prefetch_batch,
	.cudaMemDiscardBatchAsync = null_discard_batch,
	.cudaMemDiscardAndPrefetchBatchAsync = null_renew_batch,
	.cudaStreamCreateWithFlags = null_stream_create,
	.cudaStreamDestroy = null_stream,
	.cudaStreamSynchronize = null_stream,
	.cudaDeviceSynchronize = null_sync,
	.cudaStreamWaitEvent = null_stream_wait,
	.cudaStreamIsCapturing = null_capturing,
	.cuStreamGetId = null_stream_id,
	.cudaHostAlloc = null_host_alloc,
	.cudaFreeHost = null_host_free,
	.cudaEventCreateWithFlags = null_event_create,
	.cudaEventDestroy = null_event,
	.cudaEventRecord = null_event_record,
	.cudaEventQuery = null_event,
	.cudaEventSynchronize = null_event,
	.cudaEventElapsedTime = null_event_elapsed,
	.close = null_close,
};

int um_null_open(struct um_gpu **out, uint64_t capacity, unsigned fail_nth)
{
	struct null *n = calloc(1, sizeof *n);

	if (!n)
		return -ENOMEM;
	n->fail_nth = fail_nth;
	n->gpu.api = &api;
	n->gpu.caps = (struct um_gpu_caps){
		.concurrent_managed = 1, .discard = 1, .prefetch_batch = 1, .capacity = capacity, .name = "null"};
	*out = &n->gpu;
	return 0;
}

void um_null_counts(struct um_gpu *gpu, struct um_null_counts *out)
{
	struct null *n = null_of(gpu);

	*out = (struct um_null_counts){.allocs = n->allocs,
				       .frees = n->frees,
				       .prefetches = n->prefetches,
				       .prefetch_bytes = n->prefetch_bytes,
				       .evicts = n->evicts,
				       .evict_bytes = n->evict_bytes,
				       .discards = n->discards,
				       .discard_bytes = n->discard_bytes,
				       .advices = n->advices,
				       .events = n->events,
				       .waits = n->waits};
}
