/* SPDX-License-Identifier: Apache-2.0
 *
 * app_stream.h - identity of the program's streams
 *
 * in    stream handles, as the program passes them
 * out   numbers of the streams, and events recorded on a stream from any thread
 * owns  a number for each host thread that uses its per-thread default stream
 *
 * Handle 2 (cudaStreamPerThread) names another stream in each host thread, so its identity is the handle and the
 * thread. CUDA gives the handle of a destroyed stream to a later one, so the identity of the others is the handle and
 * the driver's id. Handle 0 is the legacy default stream: a program compiled for per-thread default streams that
 * passes 0 means its thread's stream. The legacy stream is ordered with that one in both directions, but two threads'
 * streams are not ordered with each other: `null_shared` says that several threads have passed 0. Op path.
 */
#ifndef UM_GPU_APP_STREAM_H
#define UM_GPU_APP_STREAM_H

#include "gpu/gpu.h"

#define UM_STREAM_LEGACY ((um_stream)(uintptr_t)1)
#define UM_STREAM_PER_THREAD ((um_stream)(uintptr_t)2)
#define UM_STREAM_NONE ((um_stream)UINTPTR_MAX) /* no stream's handle */

struct um_app_stream {
	um_stream handle;
	uint64_t thread; /* for UM_STREAM_PER_THREAD: number of the host thread; 0 for all others */
	unsigned long long id; /* of the driver; 0: a default stream, or the driver does not tell */
};

uint64_t um_app_stream_thread(void); /* number of the calling thread, never 0, never reused */

static inline struct um_app_stream um_app_stream_of(um_stream handle)
{
	return (struct um_app_stream){handle, handle == UM_STREAM_PER_THREAD ? um_app_stream_thread() : 0, 0};
}

#define UM_APP_STREAMS 16

/* The streams that have had ops. The number of a stream that was forgotten is given to a later one. */
struct um_app_streams {
	struct um_app_stream at[UM_APP_STREAMS]; /* UM_STREAM_NONE: the number is not in use */
	uint64_t named[UM_APP_STREAMS + 1]; /* serial of the latest op; the last one: of all streams without a number */
	uint64_t latest; /* serial of the latest op of all */
	unsigned n; /* no number from here on is in use */
	unsigned live; /* bit i: number i is in use */
	unsigned usable; /* bit i: um_app_streams_may_use holds for number i */
	unsigned idle; /* bit i: all work of number i is complete, until the program names it again */
	unsigned due; /* bit i: the pool has to be called when the program names number i */
	int overflow; /* more streams have had ops at once than fit */
	int ends_known; /* no stream is destroyed before it is forgotten; set while no number is in use */
	uint64_t null_thread; /* a host thread that has passed handle 0; 0: none */
	int null_shared; /* several have */
};

static inline int um_app_stream_same(struct um_app_stream a, struct um_app_stream b)
{
	return a.handle == b.handle && a.thread == b.thread;
}

/* Number of the calling thread's per-thread default stream; s->n: not in the list. */
unsigned um_app_streams_find_own(const struct um_app_streams *s);

/* The same of any stream. */
static inline unsigned um_app_streams_find(const struct um_app_streams *s, um_stream handle)
{
	unsigned i = 0, n = s->n;

	if (handle == UM_STREAM_PER_THREAD)
		return um_app_streams_find_own(s);
	while (i < n && s->at[i].handle != handle)
		i++;
	return i;
}

static inline int um_app_stream_is_default(um_stream handle)
{
	return (uintptr_t)handle <= (uintptr_t)UM_STREAM_PER_THREAD;
}

/* The driver's id of a stream that the program names in this call. 0: none. */
static inline unsigned long long um_app_stream_id(struct um_gpu *gpu, um_stream handle)
{
	unsigned long long id = 0;

	if (um_app_stream_is_default(handle) || !gpu->api->cuStreamGetId)
		return 0;
	return gpu->api->cuStreamGetId(gpu, handle, &id) ? 0 : id;
}

/* May a call use this stream's handle if the program does not name it in that call? The stream may be destroyed, and
 * then CUDA may crash. */
static inline int um_app_streams_may_use(const struct um_app_streams *s, um_stream handle)
{
	return s->ends_known || um_app_stream_is_default(handle);
}

static inline int um_app_streams_one(const struct um_app_streams *s)
{
	return s->live && !(s->live & (s->live - 1)) && !s->null_shared;
}

/* The calling thread, of this number, passes this handle. 1: it is the first, or the second, thread that passes 0. */
static inline int um_app_streams_shares_null(const struct um_app_streams *s, um_stream handle, uint64_t thread)
{
	return !handle && !s->null_shared && s->null_thread != thread;
}

/* The lowest number that is not in use; UM_APP_STREAMS: none. */
unsigned um_app_streams_spare(const struct um_app_streams *s);
void um_app_streams_put(struct um_app_streams *s, unsigned i, struct um_app_stream stream);
void um_app_streams_forget(struct um_app_streams *s, unsigned i);

/* Does the stream's handle name this stream in the calling thread? */
static inline int um_app_stream_is_ours(struct um_app_stream stream)
{
	return !stream.thread || stream.thread == um_app_stream_thread();
}

/* Records an event after the work launched on the stream so far. CUDA cannot name the per-thread stream of another host
 * thread: then the event is recorded on the legacy stream, which waits for it. Returns a CUDA error code. */
static inline int um_app_stream_record(struct um_gpu *gpu, um_event_handle event, struct um_app_stream stream)
{
	um_stream handle = um_app_stream_is_ours(stream) ? stream.handle : UM_STREAM_LEGACY;

	return gpu->api->cudaEventRecord(gpu, event, handle);
}

#endif
