/* SPDX-License-Identifier: Apache-2.0
 *
 * app_stream.h - identity of the program's streams
 *
 * in    stream handles, as the program passes them
 * out   identities to compare, and events recorded on a stream from any thread
 * owns  a number for each host thread that uses its per-thread default stream
 *
 * Handle 2 (cudaStreamPerThread) names another stream in each host thread, so its identity is the handle and the
 * thread. Every other handle names one stream. Handle 0 is the legacy default stream: a program compiled for per-thread
 * default streams that passes 0 means its thread's stream, but the legacy stream is ordered with that one in both
 * directions. Op path.
 */
#ifndef UM_GPU_APP_STREAM_H
#define UM_GPU_APP_STREAM_H

#include "gpu/gpu.h"

#define UM_STREAM_LEGACY ((um_stream)(uintptr_t)1)
#define UM_STREAM_PER_THREAD ((um_stream)(uintptr_t)2)

struct um_app_stream {
	um_stream handle;
	uint64_t thread; /* for UM_STREAM_PER_THREAD: number of the host thread; 0 for all others */
};

uint64_t um_app_stream_thread(void); /* number of the calling thread, never 0, never reused */

static inline struct um_app_stream um_app_stream_of(um_stream handle)
{
	return (struct um_app_stream){handle, handle == UM_STREAM_PER_THREAD ? um_app_stream_thread() : 0};
}

#define UM_APP_STREAMS 16

/* The streams that have had ops, in order of appearance. */
struct um_app_streams {
	struct um_app_stream at[UM_APP_STREAMS];
	unsigned n; /* never decreases */
	int overflow; /* more streams have had ops than fit */
};

static inline int um_app_stream_same(struct um_app_stream a, struct um_app_stream b)
{
	return a.handle == b.handle && a.thread == b.thread;
}

/* Index of a stream; s->n: not in the list. */
static inline unsigned um_app_streams_find(const struct um_app_streams *s, um_stream handle)
{
	struct um_app_stream is = um_app_stream_of(handle);
	unsigned i = 0;

	while (i < s->n && !um_app_stream_same(s->at[i], is))
		i++;
	return i;
}

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
