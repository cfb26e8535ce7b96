/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - runs a worker: in a thread of its own, or in simulated time by the device
 *
 * An idle worker polls while it is awake, so that giving it work needs no system call. The interval grows from
 * UM_WORKER_POLL_NS to UM_WORKER_POLL_MOST_NS; for a worker that watches (UM_STEP_POLL) it grows only after
 * UM_WORKER_FAST_POLLS polls, since it probably waits for the copy of a block. An asleep worker costs nothing. It falls
 * asleep only when a step that began after the request to sleep has found nothing to do, so that earlier requests are
 * complete.
 */
#ifndef UM_REPLAY_WORKER_H
#define UM_REPLAY_WORKER_H

#include "gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#define UM_WORKER_POLL_NS 20000
#define UM_WORKER_POLL_MOST_NS 160000
#define UM_WORKER_FAST_POLLS 32

struct um_runner {
	struct um_gpu *gpu;
	struct um_worker worker;
	pthread_t thread;
	pthread_mutex_t lock; /* so that no wake is missed */
	pthread_cond_t cond;
	atomic_int asleep; /* requested to sleep; set under the lock */
	atomic_uint wakes; /* set under the lock; a wake counts even if a request to sleep precedes it */
	atomic_int stop;
	int started;
};

/* Starts a worker, asleep. 0 or -errno. `name` must stay valid. */
int um_runner_start(struct um_runner *r, struct um_gpu *gpu, const char *name, struct um_step (*step)(void *),
		    void *arg);
void um_runner_stop(struct um_runner *r); /* waits for it; allowed if it was never started */
void um_runner_wake(struct um_runner *r);
void um_runner_sleep(struct um_runner *r);

/* Signals that there may be work. Op path. */
static inline void um_runner_poke(struct um_runner *r)
{
	if (r->gpu->api->worker_poke)
		r->gpu->api->worker_poke(r->gpu, &r->worker);
}

/* Waits until done(arg) is true. 0, or -ETIMEDOUT if that cannot happen any more. */
int um_runner_until(struct um_runner *r, int (*done)(void *arg), void *arg);

#endif
