/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - threads of workers: polling with growing intervals, then sleep
 */
#include "replay/worker.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define SLACK_NS 1000ul /* the system's default, 50 us, is more than the shortest nap */

static void sleep_ns(long ns)
{
	struct timespec ts = {0, ns};

	nanosleep(&ts, NULL);
}

/* Returns at once if it was woken since `wakes` was read. */
static void sleep_until_woken(struct um_runner *r, unsigned wakes)
{
	pthread_mutex_lock(&r->lock);
	while (atomic_load(&r->asleep) && atomic_load(&r->wakes) == wakes && !atomic_load(&r->stop))
		pthread_cond_wait(&r->cond, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

static void *run(void *arg)
{
	struct um_runner *r = arg;
	long ns = UM_WORKER_POLL_NS;
	unsigned watched = 0;

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	while (!atomic_load_explicit(&r->stop, memory_order_acquire)) {
		unsigned wakes = atomic_load_explicit(&r->wakes, memory_order_acquire);
		int may_sleep = atomic_load_explicit(&r->asleep, memory_order_acquire);
		struct um_step s = r->worker.step(r->worker.arg);

		if (s.kind == UM_STEP_STOP)
			break;
		if (s.kind == UM_STEP_WAIT)
			r->gpu->api->cudaEventSynchronize(r->gpu, s.event);
		if (s.kind == UM_STEP_AGAIN || s.kind == UM_STEP_WAIT) {
			ns = UM_WORKER_POLL_NS;
		} else if (may_sleep && s.kind == UM_STEP_IDLE) {
			sleep_until_woken(r, wakes);
			ns = UM_WORKER_POLL_NS;
		} else {
			sleep_ns(ns);
			if (s.kind != UM_STEP_POLL || ++watched > UM_WORKER_FAST_POLLS)
				ns = ns < UM_WORKER_POLL_MOST_NS ? ns * 2 : ns;
			continue;
		}
		watched = 0;
	}
	return NULL;
}

int um_runner_start(struct um_runner *r, struct um_gpu *gpu, const char *name, struct um_step (*step)(void *),
		    void *arg)
{
	int err;

	r->gpu = gpu;
	r->worker = (struct um_worker){.step = step, .arg = arg, .name = name};
	atomic_init(&r->asleep, 1);
	atomic_init(&r->wakes, 0);
	r->started = 0;
	atomic_init(&r->stop, 0);
	if (gpu->api->worker_start) {
		err = gpu->api->worker_start(gpu, &r->worker);
		r->started = !err;
		return err ? -ENOMEM : 0;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
	err = pthread_create(&r->thread, NULL, run, r);
	if (err) {
		pthread_cond_destroy(&r->cond);
		pthread_mutex_destroy(&r->lock);
		return -err;
	}
	r->started = 1;
	return 0;
}

void um_runner_stop(struct um_runner *r)
{
	if (!r->started)
		return;
	r->started = 0;
	atomic_store_explicit(&r->stop, 1, memory_order_release);
	if (r->gpu->api->worker_start) {
		r->gpu->api->worker_stop(r->gpu, &r->worker);
		return;
	}
	um_runner_wake(r);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->lock);
}

static void set_asleep(struct um_runner *r, int asleep)
{
	if (r->gpu->api->worker_start)
		return;
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->asleep, asleep);
	if (!asleep)
		atomic_fetch_add(&r->wakes, 1);
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

void um_runner_wake(struct um_runner *r)
{
	set_asleep(r, 0);
}

void um_runner_sleep(struct um_runner *r)
{
	set_asleep(r, 1);
}

int um_runner_until(struct um_runner *r, int (*done)(void *arg), void *arg)
{
	if (r->gpu->api->worker_wait)
		return r->gpu->api->worker_wait(r->gpu, done, arg) ? -ETIMEDOUT : 0;
	while (!done(arg))
		sleep_ns(UM_WORKER_POLL_NS);
	return 0;
}
