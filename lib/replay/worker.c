/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - threads of workers, and their sleep
 */
#include "replay/worker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000u

void um_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / NS), (long)(ns % NS)};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns == UINT64_MAX ? NULL : &ts, NULL, 0);
}

void um_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Announces the sleep. The worker looks once more after that. */
static void lie_down(struct um_runner *r)
{
	atomic_store_explicit(&r->sleeping, 1, memory_order_relaxed);
	atomic_fetch_or_explicit(&r->group->asleep, r->bit, memory_order_acq_rel);
}

static void get_up(struct um_runner *r)
{
	atomic_store_explicit(&r->sleeping, 0, memory_order_relaxed);
	atomic_fetch_and_explicit(&r->group->asleep, ~r->bit, memory_order_acq_rel);
}

static void *run(void *arg)
{
	struct um_runner *r = arg;
	int lies = 0; /* it has announced its sleep */

	while (!atomic_load_explicit(&r->stop, memory_order_acquire)) {
		struct um_step s = r->worker.step(r->worker.arg);

		if (s.kind == UM_STEP_IDLE && lies) {
			um_futex_wait(&r->sleeping, 1, UINT64_MAX);
			get_up(r);
			lies = 0;
			continue;
		}
		if (s.kind == UM_STEP_IDLE)
			lie_down(r);
		else if (lies)
			get_up(r);
		lies = s.kind == UM_STEP_IDLE;
		if (s.kind == UM_STEP_STOP)
			break;
		if (s.kind == UM_STEP_WAIT)
			r->gpu->api->cudaEventSynchronize(r->gpu, s.event);
	}
	return NULL;
}

int um_runner_start(struct um_runner *r, struct um_gpu *gpu, struct um_runner_group *group, unsigned i,
		    const char *name, struct um_step (*step)(void *), void *arg)
{
	int err;

	r->gpu = gpu;
	r->group = group;
	r->bit = 1u << i;
	r->worker = (struct um_worker){.step = step, .arg = arg, .name = name};
	atomic_init(&r->sleeping, 0);
	atomic_init(&r->stop, 0);
	if (gpu->api->worker_start)
		err = gpu->api->worker_start(gpu, &r->worker) ? -ENOMEM : 0;
	else
		err = -pthread_create(&r->thread, NULL, run, r);
	r->started = !err;
	return err;
}

int um_runner_stop(struct um_runner *r)
{
	struct timespec until;

	if (!r->started)
		return 0;
	r->started = 0;
	atomic_store_explicit(&r->stop, 1, memory_order_release);
	if (r->gpu->api->worker_start) {
		r->gpu->api->worker_stop(r->gpu, &r->worker);
		return 0;
	}
	um_runner_sleepers(r->group, r->gpu);
	um_runner_wake(r);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += UM_RUNNER_STOP_NS / NS;
	if (!pthread_timedjoin_np(r->thread, NULL, &until))
		return 0;
	pthread_detach(r->thread);
	return -ETIMEDOUT;
}

void um_runner_wake(struct um_runner *r)
{
	if (r->gpu->api->worker_poke) {
		r->gpu->api->worker_poke(r->gpu, &r->worker);
		return;
	}
	if (!atomic_exchange_explicit(&r->sleeping, 0, memory_order_acq_rel))
		return;
	atomic_fetch_add_explicit(&r->group->wakes, 1, memory_order_relaxed);
	um_futex_wake(&r->sleeping);
}
