/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - runs a worker: in a thread of its own, or in simulated time by the device
 *
 * A worker with nothing to do sleeps. Before that it says so in a word that it shares with the other workers of its
 * group and looks once more, and whoever gives it work reads that word afterwards: so no wake is missed, and giving
 * work to a worker that is awake needs no system call.
 */
#ifndef UM_REPLAY_WORKER_H
#define UM_REPLAY_WORKER_H

#include "gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#define UM_RUNNER_STOP_NS 2000000000u /* a worker that does not return from a call of the device is left behind */

/* Workers of one group, at most 32. */
struct um_runner_group {
	_Atomic uint32_t asleep; /* a bit for each sleeping worker */
	_Atomic uint64_t wakes; /* of sleeping workers, so far */
};

struct um_runner {
	struct um_gpu *gpu;
	struct um_worker worker;
	struct um_runner_group *group;
	uint32_t bit;
	pthread_t thread;
	_Atomic uint32_t sleeping; /* futex: 1 from its last look on, until it is woken */
	atomic_int stop;
	int started;
};

/* Starts worker number `i` of the group. 0 or -errno. `name` must stay valid. */
int um_runner_start(struct um_runner *r, struct um_gpu *gpu, struct um_runner_group *group, unsigned i,
		    const char *name, struct um_step (*step)(void *), void *arg);

/* Waits for it; allowed if it was never started. 0, or -ETIMEDOUT: the device did not return from a call, and the
 * thread is left behind with all that it refers to. */
int um_runner_stop(struct um_runner *r);

/* A bit for each worker that may have to be woken, after work was given to the group. In virtual time all of them. */
static inline uint32_t um_runner_sleepers(struct um_runner_group *group, const struct um_gpu *gpu)
{
	/* an update, so that a worker which this does not see yet finds the work at its last look */
	return gpu->api->worker_poke ? UINT32_MAX : atomic_fetch_add_explicit(&group->asleep, 0, memory_order_acq_rel);
}

/* Wakes the worker: there is work. */
void um_runner_wake(struct um_runner *r);

/* Sleeps until the word differs from `value` and was woken, or `ns` have passed. */
void um_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void um_futex_wake(_Atomic uint32_t *word);

#endif
