/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - runs a worker: in a thread of its own, or where time is simulated, by the device below
 *
 * A worker that has nothing to do is polled while it is awake, so that giving it work needs no system call: after
 * UM_WORKER_NAP_NS, then less and less often, down to every UM_WORKER_NAP_MOST_NS; one that watches (UM_STEP_POLL) only
 * after UM_WORKER_WATCHES times, since most likely it waits for the copy of a block. Asleep it costs nothing. It falls
 * asleep only when a step begun after it was asked to has found nothing to do, so that what was put before is done.
 */
#ifndef UM_REPLAY_WORKER_H
#define UM_REPLAY_WORKER_H

#include "gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#define UM_WORKER_NAP_NS 20000
#define UM_WORKER_NAP_MOST_NS 160000
#define UM_WORKER_WATCHES 32

struct um_runner {
	struct um_gpu *gpu;
	struct um_worker worker;
	pthread_t thread;
	pthread_mutex_t lock; /* so that no wake is missed */
	pthread_cond_t cond;
	atomic_int asleep; /* asked to sleep; set under the lock */
	atomic_uint wakes; /* set under the lock; a wake counts even if sleep is asked for before it was seen */
	atomic_int stop;
	int started;
};

/* Starts a worker, asleep. 0 or -errno. `name` must stay. */
int um_runner_start(struct um_runner *r, struct um_gpu *gpu, const char *name, struct um_step (*step)(void *),
		    void *arg);
void um_runner_stop(struct um_runner *r); /* waits for it; allowed if it was never started */
void um_runner_wake(struct um_runner *r);
void um_runner_sleep(struct um_runner *r);

/* There may be work. Op path. */
static inline void um_runner_poke(struct um_runner *r)
{
	if (r->gpu->api->worker_poke)
		r->gpu->api->worker_poke(r->gpu, &r->worker);
}

/* Waits until done(arg) is true. 0, or -ETIMEDOUT if that cannot happen any more. */
int um_runner_until(struct um_runner *r, int (*done)(void *arg), void *arg);

#endif
