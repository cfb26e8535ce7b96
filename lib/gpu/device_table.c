/* SPDX-License-Identifier: Apache-2.0
 *
 * device_table.c - the table of device functions for CUDA
 *
 * Each entry is one visit. Calls that could be captured check the stream first; calls that CUDA considers unsafe during
 * a capture (they may wait or allocate) relax the thread's capture mode.
 */
#include "gpu/device_state.h"
#include "gpu/kernel_evict.h"

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int malloc_managed(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->malloc_managed(ptr, bytes, flags));
}

static int malloc_device(struct um_gpu *gpu, void **ptr, size_t bytes)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->malloc_device(ptr, bytes));
}

static int memory_free(struct um_gpu *gpu, void *ptr)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, ptr ? v.calls->memory_free(ptr) : UM_CUDA_OK);
}

static int memory_info(struct um_gpu *gpu, size_t *free_bytes, size_t *total_bytes)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->memory_info(free_bytes, total_bytes));
}

static int host_alloc(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->host_alloc(ptr, bytes, flags));
}

static int host_free(struct um_gpu *gpu, void *ptr)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, ptr ? v.calls->host_free(ptr) : UM_CUDA_OK);
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

/* A location in the old form: an ordinal, or -1 for the host, which has no NUMA nodes there. */
static int old_place(struct um_location at)
{
	return at.type == UM_LOC_DEVICE ? at.id : -1;
}

/* The host is the node that was chosen. */
static struct um_location place_of(const struct um_visit *v, struct um_location at)
{
	return at.type == UM_LOC_HOST ? v->device->info.host : at;
}

static int prefetch(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
		    um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_UNSAFE);

	if (err)
		return err;
	err = v.calls->prefetch ? v.calls->prefetch(ptr, bytes, place_of(&v, to), flags, stream)
				: v.calls->prefetch_old(ptr, bytes, old_place(to), stream);
	return um_visit_end(&v, err);
}

int um_device_evict(struct um_gpu *gpu, const void *ptr, size_t bytes)
{
	struct um_device *d = um_device_of(gpu);

	return um_device_gone(d) ? UM_CUDA_LOST : um_kernel_evict(d->uvm, ptr, bytes, um_device_node(d));
}

static int advise(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	if (err)
		return err;
	if (advice == UM_ADV_SET_PREFERRED) /* other advice about the host must not name a node */
		where = place_of(&v, where);
	err = v.calls->advise ? v.calls->advise(ptr, bytes, advice, where)
			      : v.calls->advise_old(ptr, bytes, advice, old_place(where));
	return um_visit_end(&v, err);
}

static int prefetch_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
			  size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_UNSAFE);

	if (err)
		return err;
	return um_visit_end(&v, v.calls->prefetch_batch(ptrs, sizes, count, locs, loc_idxs, n_locs, flags, stream));
}

static int discard_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, unsigned long long flags,
			 um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->discard_batch(ptrs, sizes, count, flags, stream));
}

static int renew_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
		       size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_UNSAFE);

	if (err)
		return err;
	return um_visit_end(&v, v.calls->renew_batch(ptrs, sizes, count, locs, loc_idxs, n_locs, flags, stream));
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static int stream_create(struct um_gpu *gpu, um_stream *stream, unsigned flags)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->stream_create(stream, flags));
}

static int stream_destroy(struct um_gpu *gpu, um_stream stream)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->stream_destroy(stream));
}

static int stream_sync(struct um_gpu *gpu, um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->stream_sync(stream));
}

/* CUDA refuses it while a stream captures, and invalidates the capture, whatever the thread's mode. The query of the
 * legacy stream finds captures of blocking streams; the caller has to know of others. */
static int device_sync(struct um_gpu *gpu)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, NULL, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->device_sync());
}

static int stream_wait(struct um_gpu *gpu, um_stream stream, um_event_handle event, unsigned flags)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.calls->stream_wait(stream, event, flags));
}

static int stream_capturing(struct um_gpu *gpu, um_stream stream, int *status)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.calls->stream_capturing(stream, status));
}

static int stream_id(struct um_gpu *gpu, um_stream stream, unsigned long long *id)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.device->cu.stream_id(stream, id));
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static int event_create(struct um_gpu *gpu, um_event_handle *event, unsigned flags)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.calls->event_create(event, flags));
}

static int event_destroy(struct um_gpu *gpu, um_event_handle event)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.calls->event_destroy(event));
}

static int event_record(struct um_gpu *gpu, um_event_handle event, um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_PLAIN);

	if (err)
		return err;
	err = v.calls->event_record(event, stream);
	return um_visit_end(&v, um_visit_stream_code(&v, err));
}

static int event_query(struct um_gpu *gpu, um_event_handle event)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->event_query(event));
}

static int event_sync(struct um_gpu *gpu, um_event_handle event)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	return err ? err : um_visit_end(&v, v.calls->event_sync(event));
}

static int event_elapsed(struct um_gpu *gpu, float *ms, um_event_handle start, um_event_handle end)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.calls->event_elapsed(ms, start, end));
}

/* --- where time is simulated -------------------------------------------------------------------------------------- */

static int standin_announce(struct um_gpu *gpu, um_stream stream, const struct um_announcement *next)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.device->standin->announce(stream, next));
}

static uint64_t standin_now(struct um_gpu *gpu)
{
	struct um_visit v;
	uint64_t now;

	if (um_visit_begin(&v, gpu, UM_VISIT_PLAIN))
		return 0;
	now = v.device->standin->now();
	um_visit_end(&v, UM_CUDA_OK);
	return now;
}

static int worker_start(struct um_gpu *gpu, struct um_worker *worker)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.device->standin->worker_start(worker));
}

/* Also when the device is lost: the worker must not be stepped after its owner is gone. */
static void worker_stop(struct um_gpu *gpu, struct um_worker *worker)
{
	if (!um_process_gone())
		um_device_of(gpu)->standin->worker_stop(worker);
}

static void worker_poke(struct um_gpu *gpu, struct um_worker *worker)
{
	struct um_device *d = um_device_of(gpu);

	if (!um_device_gone(d))
		d->standin->worker_poke(worker);
}

static int worker_wait(struct um_gpu *gpu, int (*done)(void *arg), void *arg)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_PLAIN);

	return err ? err : um_visit_end(&v, v.device->standin->worker_wait(done, arg));
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static const struct um_gpu_api whole = {
	.cudaMallocManaged = malloc_managed,
	.cudaFree = memory_free,
	.cudaMalloc = malloc_device,
	.cudaMemGetInfo = memory_info,
	.cudaMemPrefetchAsync = prefetch,
	.cudaMemAdvise = advise,
	.cudaMemPrefetchBatchAsync = prefetch_batch,
	.cudaMemDiscardBatchAsync = discard_batch,
	.cudaMemDiscardAndPrefetchBatchAsync = renew_batch,
	.cudaStreamCreateWithFlags = stream_create,
	.cudaStreamDestroy = stream_destroy,
	.cudaStreamSynchronize = stream_sync,
	.cudaDeviceSynchronize = device_sync,
	.cudaStreamWaitEvent = stream_wait,
	.cudaStreamIsCapturing = stream_capturing,
	.cuStreamGetId = stream_id,
	.cudaHostAlloc = host_alloc,
	.cudaFreeHost = host_free,
	.cudaEventCreateWithFlags = event_create,
	.cudaEventDestroy = event_destroy,
	.cudaEventRecord = event_record,
	.cudaEventQuery = event_query,
	.cudaEventSynchronize = event_sync,
	.cudaEventElapsedTime = event_elapsed,
	.announce = standin_announce,
	.now = standin_now,
	.worker_start = worker_start,
	.worker_stop = worker_stop,
	.worker_poke = worker_poke,
	.worker_wait = worker_wait,
};

void um_device_table(struct um_device *d)
{
	const struct um_calls *calls = d->info.via == UM_VIA_RUNTIME ? &d->runtime : &d->driver;
	struct um_gpu_api *api = &d->api;
	void (*close)(struct um_gpu * gpu) = api->close;

	*api = whole;
	api->close = close;
	if (!calls->prefetch_batch)
		api->cudaMemPrefetchBatchAsync = NULL;
	if (!calls->discard_batch)
		api->cudaMemDiscardBatchAsync = NULL;
	if (!calls->renew_batch)
		api->cudaMemDiscardAndPrefetchBatchAsync = NULL;
	if (!d->cu.stream_id)
		api->cuStreamGetId = NULL;
	if (!d->standin) {
		api->announce = NULL;
		api->now = NULL;
	}
	if (!d->gpu.caps.virtual_time) {
		api->worker_start = NULL;
		api->worker_stop = NULL;
		api->worker_poke = NULL;
		api->worker_wait = NULL;
	}
}
