/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_thread.h"

#include "base/clock.h"
#include "replay/worker.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#define NICE 10 /* plans may come late; the program's own threads come first */

enum state {
	IDLE,
	BUSY,
	STOP, /* the thread ends, and the owner waits for that */
	LEFT, /* the thread ends, and frees the memory */
	ENDED
};

static uint32_t state_of(const struct um_plan_thread *t)
{
	return atomic_load_explicit(&t->state, memory_order_acquire);
}

/* Both may be refused; then the thread competes with the program's. */
static void lower_priority(void)
{
	const struct sched_param none = {0};

	sched_setscheduler(0, SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, 0, NICE); /* of the calling thread */
}

static void run_job(struct um_plan_thread *t)
{
	uint64_t begin = um_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct um_plan_job *j = &t->job;

	if (t->stage == UM_PLAN_SEARCH)
		um_plan_job_search(j);
	if (t->stage == UM_PLAN_COMPILE || (!j->err && !j->grow))
		um_plan_job_compile(j);
	t->cpu_ns = um_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void free_thread(struct um_plan_thread *t)
{
	um_plan_job_fini(&t->job);
	free(t);
}

static void *run(void *arg)
{
	struct um_plan_thread *t = arg;
	uint32_t state;

	lower_priority();
	while ((state = state_of(t)) == IDLE || state == BUSY) {
		if (state == IDLE) {
			um_futex_wait(&t->state, IDLE, UINT64_MAX);
			continue;
		}
		run_job(t);
		atomic_compare_exchange_strong(&t->state, &state, IDLE);
	}
	if (state == LEFT || !atomic_compare_exchange_strong(&t->state, &state, ENDED))
		free_thread(t);
	return NULL;
}

struct um_plan_thread *um_plan_thread_new(void)
{
	struct um_plan_thread *t = calloc(1, sizeof *t);
	sigset_t all, was;
	int err;

	if (!t)
		return NULL;
	um_plan_job_init(&t->job);
	atomic_init(&t->state, IDLE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	err = pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (err) {
		free(t);
		return NULL;
	}
	return t;
}

void um_plan_thread_run(struct um_plan_thread *t, enum um_plan_stage stage)
{
	t->stage = stage;
	atomic_store_explicit(&t->state, BUSY, memory_order_release);
	um_futex_wake(&t->state);
}

int um_plan_thread_is_idle(const struct um_plan_thread *t)
{
	return state_of(t) == IDLE;
}

int um_plan_thread_free(struct um_plan_thread *t)
{
	uint32_t stop = STOP;
	struct timespec until;

	if (!t)
		return 0;
	atomic_store(&t->job.cancelled, 1);
	atomic_store(&t->state, STOP);
	um_futex_wake(&t->state);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += UM_PLAN_THREAD_STOP_NS / 1000000000u;
	if (pthread_timedjoin_np(t->thread, NULL, &until)) {
		pthread_t thread = t->thread;

		if (atomic_compare_exchange_strong(&t->state, &stop, LEFT)) {
			pthread_detach(thread);
			return -ETIMEDOUT;
		}
		pthread_join(thread, NULL);
	}
	free_thread(t);
	return 0;
}
