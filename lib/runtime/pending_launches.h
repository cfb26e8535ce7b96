/* SPDX-License-Identifier: Apache-2.0
 *
 * pending_launches.h - ops that were announced, and whose launch may still be to come
 *
 * in    calls of the program's threads, and the ops that they announce
 * out   whether such an op uses a range
 * owns  the latest op of each thread
 *
 * An event that is recorded on a stream after umadv_op and before the launch does not come after the op. While one
 * thread calls the library, that cannot happen: it launches before its next call. With several, an op of one thread
 * makes discards due that wait for the op of another one, which may not be launched yet. So what that op uses is not
 * discarded before its thread calls again. Not thread-safe: the caller holds the context's lock. Op path.
 */
#ifndef UM_RUNTIME_PENDING_LAUNCHES_H
#define UM_RUNTIME_PENDING_LAUNCHES_H

#include "gpu/app_stream.h"
#include "model/event.h"

#define UM_PENDING_THREADS 64
#define UM_PENDING_RANGES 8 /* an op with more counts as using everything */

struct um_pending_launch {
	uint64_t thread;
	uint32_t n; /* 0: its latest op was launched; UINT32_MAX: it may use anything */
	struct {
		uint64_t addr, end;
	} at[UM_PENDING_RANGES];
};

/* Zeroed: no thread has called. */
struct um_pending_launches {
	uint64_t thread; /* the only thread so far */
	int shared; /* several threads have called */
	int overflow; /* too many of them: any range may be used */
	uint32_t n;
	struct um_pending_launch of[UM_PENDING_THREADS];
};

void um_pending_launches_called(struct um_pending_launches *p, uint64_t thread);

/* The calling thread calls: its latest op was launched. Returns its number. */
static inline uint64_t um_pending_launches_call(struct um_pending_launches *p)
{
	uint64_t thread = um_app_stream_thread();

	if (p->shared || p->thread != thread)
		um_pending_launches_called(p, thread);
	return thread;
}

/* The calling thread has announced an op. Only where several have called. */
void um_pending_launches_op(struct um_pending_launches *p, const struct um_use *uses, uint32_t n);

/* May an op use a byte of [addr, addr + bytes) that was announced and not launched yet? */
int um_pending_launches_search(const struct um_pending_launches *p, uint64_t addr, uint64_t bytes);

static inline int um_pending_launches_use(const struct um_pending_launches *p, uint64_t addr, uint64_t bytes)
{
	return p->shared && um_pending_launches_search(p, addr, bytes);
}

#endif
