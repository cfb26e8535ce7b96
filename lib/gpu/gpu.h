/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu.h - the table of device functions, and the capabilities of a device
 *
 * in    calls named and shaped as in the CUDA runtime (13 form), or the driver API for functions that only it has
 * out   CUDA error codes (0 is success; 600 not ready; 801 not supported)
 * owns  nothing: an implementation (sim, null, device) embeds struct um_gpu first in its own struct
 *
 * An entry may be NULL if the device lacks the call; caps describes the consequence. Unless stated otherwise a call may
 * come from any thread. Times of events are device times.
 *
 * Streams and events are the device's own handles. Stream 0 is the program's default stream; the library creates its
 * own (non-blocking) ones.
 */
#ifndef UM_GPU_GPU_H
#define UM_GPU_GPU_H

#include <stddef.h>
#include <stdint.h>

struct um_gpu;
struct um_gpu_simulation;
typedef void *um_stream; /* cudaStream_t */
typedef void *um_event_handle; /* cudaEvent_t */

/* As struct cudaMemLocation: type first. */
struct um_location {
	int type; /* enum um_location_type */
	int id; /* device ordinal, or NUMA node */
};

enum um_location_type { UM_LOC_DEVICE = 1, UM_LOC_HOST = 2, UM_LOC_HOST_NUMA = 3 };

static inline struct um_location um_on_device(int id)
{
	return (struct um_location){UM_LOC_DEVICE, id};
}

static inline struct um_location um_on_host(void)
{
	return (struct um_location){UM_LOC_HOST, 0};
}

/* cudaMemoryAdvise */
enum um_advice {
	UM_ADV_SET_READ_MOSTLY = 1,
	UM_ADV_UNSET_READ_MOSTLY,
	UM_ADV_SET_PREFERRED,
	UM_ADV_UNSET_PREFERRED,
	UM_ADV_SET_ACCESSED_BY,
	UM_ADV_UNSET_ACCESSED_BY
};

/* cudaError_t */
enum um_cuda_error {
	UM_CUDA_OK = 0,
	UM_CUDA_INVALID_VALUE = 1,
	UM_CUDA_NO_MEMORY = 2,
	UM_CUDA_INVALID_DEVICE = 101,
	UM_CUDA_INVALID_HANDLE = 400, /* of a destroyed stream */
	UM_CUDA_NOT_READY = 600,
	UM_CUDA_ILLEGAL_ADDRESS = 700,
	UM_CUDA_LAUNCH_TIMEOUT = 702, /* simulated: a deadlock of streams */
	UM_CUDA_CONTEXT_IS_DESTROYED = 709,
	UM_CUDA_ALREADY_REGISTERED = 712,
	UM_CUDA_NOT_REGISTERED = 713,
	UM_CUDA_LAUNCH_FAILURE = 719, /* simulated: a fault without available memory; sticky */
	UM_CUDA_NOT_SUPPORTED = 801,
	UM_CUDA_CAPTURING = 900, /* the stream captures: no call was made */
	UM_CUDA_CAPTURE_IMPLICIT = 906, /* the NULL stream, while another one captures */
	UM_CUDA_LOST = -1 /* not CUDA's: after a sticky error, a fork, or while the process exits, no call is made */
};

#define UM_EVENT_BLOCKING_SYNC 1u /* cudaEventBlockingSync: a waiting thread sleeps */
#define UM_EVENT_DISABLE_TIMING 2u /* cudaEventDisableTiming */
#define UM_STREAM_NON_BLOCKING 1u /* cudaStreamNonBlocking */

struct um_gpu_caps {
	int device; /* ordinal */
	int concurrent_managed; /* attribute 89; 0: only allocation works */
	int no_faults; /* managed memory is physical as soon as it is allocated */
	int integrated; /* attribute 18: the GPU's memory is the host's */
	int pageable; /* attribute 88 */
	int ats; /* attribute 100: hardware coherence */
	int discard; /* discard calls present and working */
	int prefetch_batch;
	int virtual_time; /* time is simulated: the device runs the workers, deterministically */
	uint64_t capacity; /* bytes of device memory that managed data may use */
	char name[64];
	char uuid[33]; /* hexadecimal; empty: not known, or the device is simulated */
	char why[160]; /* one reason why hints are not supported, else empty */
};

/* A worker is a helper thread of the library: step() makes at most one blocking device call and returns what to do
 * next. In real time the library runs it in a thread of its own; in virtual time the device runs it at the right
 * simulated time (worker_start is then not NULL), and calls from step() take the worker's own simulated time. */
enum um_step_kind {
	UM_STEP_AGAIN,
	UM_STEP_IDLE, /* idle until poked */
	UM_STEP_POLL, /* nothing to do now, but poll: the clock, or numbers that streams write */
	UM_STEP_WAIT,
	UM_STEP_STOP
};

struct um_step {
	enum um_step_kind kind;
	um_event_handle event; /* UM_STEP_WAIT: step again when this event is complete */
};

struct um_worker {
	struct um_step (*step)(void *arg);
	void *arg;
	const char *name;
	void *impl; /* private to the runner */
};

/* One range that a kernel touches. Ranges outside managed memory are ignored. */
struct um_touch {
	const void *ptr;
	uint64_t bytes;
	uint64_t touched; /* scattered bytes actually touched; 0 or >= bytes: all */
	uint32_t access; /* enum um_access */
};

/* Access pattern of a kernel on missing blocks: v visits per block until it is complete, p blocks per fault batch. */
enum um_pattern {
	UM_PATTERN_LIBRARY, /* default: v = 3, p = 3 (matrix products, convolutions) */
	UM_PATTERN_NARROW, /* streaming, one region at a time: v = 6, p = 1 */
	UM_PATTERN_WIDE, /* all regions at once: v = 5, p = 3; what is resident at its begin is never missed */
	UM_PATTERN_ONE_BATCH /* few threads, each on a page of its own: v = 1, p = 8 */
};
#define UM_PATTERNS 3 /* of whole kernels: the first of them */

/* Describes the next launch on a stream; borrowed for the call. */
struct um_announcement {
	const struct um_touch *touch;
	uint32_t n;
	uint64_t ns; /* compute time with everything resident */
	enum um_pattern pattern;
};

struct um_gpu_api {
	/* memory */
	int (*cudaMallocManaged)(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags);
	int (*cudaFree)(struct um_gpu *gpu, void *ptr);
	int (*cudaMalloc)(struct um_gpu *gpu, void **ptr, size_t bytes);
	int (*cudaMemGetInfo)(struct um_gpu *gpu, size_t *free_bytes, size_t *total_bytes);

	/* hints */
	int (*cudaMemPrefetchAsync)(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to,
				    unsigned flags, um_stream stream);
	/* Moves memory to the host, done when it returns, from several threads at once and without keeping other calls
	 * waiting; UM_GPU_EVICTERS threads are as fast as more. NULL: prefetches to the host evict. Returns a CUDA
	 * error code. */
	int (*evict)(struct um_gpu *gpu, const void *ptr, size_t bytes);
	int (*cudaMemAdvise)(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where);
	int (*cudaMemPrefetchBatchAsync)(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count,
					 struct um_location *locs, size_t *loc_idxs, size_t n_locs,
					 unsigned long long flags, um_stream stream);
	int (*cudaMemDiscardBatchAsync)(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count,
					unsigned long long flags, um_stream stream);
	int (*cudaMemDiscardAndPrefetchBatchAsync)(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count,
						   struct um_location *locs, size_t *loc_idxs, size_t n_locs,
						   unsigned long long flags, um_stream stream);

	/* order */
	int (*cudaStreamCreateWithFlags)(struct um_gpu *gpu, um_stream *stream, unsigned flags);
	int (*cudaStreamDestroy)(struct um_gpu *gpu, um_stream stream);
	int (*cudaStreamSynchronize)(struct um_gpu *gpu, um_stream stream);
	int (*cudaDeviceSynchronize)(struct um_gpu *gpu); /* all streams of the context */
	int (*cudaStreamWaitEvent)(struct um_gpu *gpu, um_stream stream, um_event_handle event, unsigned flags);
	int (*cudaStreamIsCapturing)(struct um_gpu *gpu, um_stream stream, int *status); /* 0 not capturing */
	/* A number that no other stream of the process has or had, unlike its handle. NULL: not known. */
	int (*cuStreamGetId)(struct um_gpu *gpu, um_stream stream, unsigned long long *id);
	int (*cudaHostAlloc)(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags); /* pinned */
	int (*cudaFreeHost)(struct um_gpu *gpu, void *ptr);
	int (*cudaEventCreateWithFlags)(struct um_gpu *gpu, um_event_handle *event, unsigned flags);
	int (*cudaEventDestroy)(struct um_gpu *gpu, um_event_handle event);
	int (*cudaEventRecord)(struct um_gpu *gpu, um_event_handle event, um_stream stream);
	int (*cudaEventQuery)(struct um_gpu *gpu, um_event_handle event); /* UM_CUDA_OK or UM_CUDA_NOT_READY */
	int (*cudaEventSynchronize)(struct um_gpu *gpu, um_event_handle event);
	int (*cudaEventElapsedTime)(struct um_gpu *gpu, float *ms, um_event_handle start, um_event_handle end);

	/* In virtual time only, else NULL. A simulated device does not see what a kernel touches; the announcement
	 * holds for the kernels on `stream` up to the next announcement; the first of them takes the time, the others
	 * (an op may be several) touch the same ranges and take no time. NULL: the announcement ends. Returns a CUDA
	 * error code. `now`: the caller's clock, ns. */
	int (*announce)(struct um_gpu *gpu, um_stream stream, const struct um_announcement *next);
	uint64_t (*now)(struct um_gpu *gpu);

	/* helper threads in virtual time; NULL otherwise */
	int (*worker_start)(struct um_gpu *gpu, struct um_worker *worker);
	void (*worker_stop)(struct um_gpu *gpu, struct um_worker *worker);
	void (*worker_poke)(struct um_gpu *gpu, struct um_worker *worker); /* wakes the worker: there may be work */
	/* Advances the caller's time until done(arg) is true; UM_CUDA_NOT_READY if that cannot happen any more. */
	int (*worker_wait)(struct um_gpu *gpu, int (*done)(void *arg), void *arg);

	const struct um_gpu_simulation *simulation; /* simulation.h; NULL: the device is not a simulated one */

	void (*close)(struct um_gpu *gpu); /* closes the device and frees its memory */
};

struct um_gpu {
	const struct um_gpu_api *api;
	struct um_gpu_caps caps;
};

#define UM_GPU_EVICTERS 8 /* threads: 103 us a block on an H100 (bench/results), 4 need 124, one 232 */

/* Do hints help on this device? */
static inline int um_gpu_takes_hints(const struct um_gpu *gpu)
{
	return gpu->caps.concurrent_managed && !gpu->caps.integrated;
}

#endif
