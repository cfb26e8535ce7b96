/* SPDX-License-Identifier: Apache-2.0
 *
 * The device that only counts.
 */
#include "gpu/null.h"
#include "tap.h"

#define MIB (1ull << 20)

int main(void)
{
	struct um_location locs[2] = {um_on_device(0), um_on_host()};
	const struct um_gpu_api *api;
	struct um_null_counts c;
	struct um_gpu *gpu;
	um_event_handle e;
	um_stream s, s2;
	void *p, *q, *v, *ptrs[3];
	size_t sizes[3] = {MIB, 2 * MIB, 4 * MIB}, at[2] = {0, 2}, is_free, total;
	int status = 1;
	float ms = 1;

	is_int(um_null_open(&gpu, 64 * MIB, 0), 0, "the null device opens");
	api = gpu->api;
	ok(gpu->caps.concurrent_managed && gpu->caps.discard, "the null device has all capabilities");
	ok(!gpu->caps.virtual_time && !api->worker_start, "the null device runs in real time, with threads as workers");
	is_int(api->cudaMallocManaged(gpu, &p, 8 * MIB, 1), 0, "managed memory is allocated");
	is_u64((uintptr_t)p % (2 * MIB), 0, "managed memory begins at a block boundary");
	memset(p, 1, 8 * MIB);
	is_int(api->cudaMalloc(gpu, &q, 100), 0, "device memory is allocated");
	is_int(api->cudaMallocManaged(gpu, &v, 0, 1), UM_CUDA_INVALID_VALUE, "an allocation of no bytes is refused");
	is_int(api->cudaMallocManaged(gpu, &v, SIZE_MAX - MIB, 1), UM_CUDA_NO_MEMORY,
	       "an allocation of all addresses is refused");
	is_int(api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING), 0, "a stream is created");
	api->cudaStreamCreateWithFlags(gpu, &s2, UM_STREAM_NON_BLOCKING);
	ok(s != s2 && s, "two streams have different handles");
	for (int i = 0; i < 3; i++)
		ptrs[i] = p;
	is_int(api->cudaMemPrefetchAsync(gpu, p, MIB, locs[0], 0, s), 0, "a prefetch to the device is accepted");
	is_int(api->cudaMemPrefetchAsync(gpu, p, MIB, locs[1], 0, s), 0, "a prefetch to the host is accepted");
	is_int(api->cudaMemPrefetchBatchAsync(gpu, ptrs, sizes, 3, locs, at, 2, 0, s), 0,
	       "a batch in both directions is accepted");
	is_int(api->cudaMemDiscardBatchAsync(gpu, ptrs, sizes, 3, 0, s), 0, "a batch of discards is accepted");
	is_int(api->cudaMemDiscardAndPrefetchBatchAsync(gpu, ptrs, sizes, 1, locs, at, 1, 0, s), 0,
	       "a batch of discards with prefetches is accepted");
	is_int(api->cudaMemAdvise(gpu, p, MIB, UM_ADV_SET_READ_MOSTLY, locs[0]), 0, "advice is accepted");
	is_int(api->cudaEventCreateWithFlags(gpu, &e, 0), 0, "an event is created");
	is_int(api->cudaEventRecord(gpu, e, s), 0, "an event is recorded");
	is_int(api->cudaEventQuery(gpu, e), UM_CUDA_OK, "a recorded event is complete");
	is_int(api->cudaStreamWaitEvent(gpu, s2, e, 0), 0, "a stream waits for an event");
	is_int(api->cudaEventElapsedTime(gpu, &ms, e, e), 0, "no time passes");
	ok(ms == 0, "no time passes between events");
	is_int(api->cudaHostAlloc(gpu, &v, 64, 0), 0, "pinned memory is allocated");
	is_int(api->cudaStreamIsCapturing(gpu, s, &status) + status, 0, "nothing is captured");
	is_int(api->cudaMemGetInfo(gpu, &is_free, &total), 0, "free and total memory are known");
	is_u64(total, 64 * MIB, "is what it was opened with");
	is_int(api->cudaFree(gpu, p) + api->cudaFree(gpu, q) + api->cudaFree(gpu, NULL) + api->cudaFreeHost(gpu, v), 0,
	       "all kinds of memory are freed");
	um_null_counts(gpu, &c);
	is_u64(c.allocs, 2, "allocations are counted");
	is_u64(c.frees, 2, "frees are counted");
	is_u64(c.prefetches, 4, "prefetches are counted");
	is_u64(c.prefetch_bytes, 5 * MIB, "bytes of prefetches are counted");
	is_u64(c.evicts, 2, "evictions are counted");
	is_u64(c.evict_bytes, 5 * MIB, "bytes of evictions are counted");
	is_u64(c.discards, 4, "discards are counted");
	is_u64(c.discard_bytes, 8 * MIB, "bytes of discards are counted");
	is_u64(c.advices, 1, "advice is counted");
	is_u64(c.events, 1, "records of events are counted");
	is_u64(c.waits, 1, "waits for events are counted");
	api->cudaEventDestroy(gpu, e);
	api->close(gpu);

	um_null_open(&gpu, MIB, 3);
	for (int i = 1; i <= 9; i++)
		is_int(gpu->api->cudaMemAdvise(gpu, &i, 4, 1, locs[0]), i % 3 ? UM_CUDA_OK : UM_CUDA_INVALID_VALUE,
		       "every third hint fails: %d", i);
	um_null_counts(gpu, &c);
	is_u64(c.advices, 6, "those are not counted");
	gpu->api->close(gpu);
	return tap_done();
}
