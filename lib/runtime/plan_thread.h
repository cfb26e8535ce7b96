/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_thread.h - runs a planning job in a thread of its own
 *
 * in    a job, filled in by the owner
 * out   the job, after its search, or after both stages
 * owns  the thread, the job
 *
 * The job belongs to one side at a time: to the thread from um_plan_thread_run until um_plan_thread_is_idle says 1, and
 * else to the owner, who holds the context's lock. An atomic word hands it over; the thread takes no lock. It runs at
 * low priority, blocks all signals and makes no call of the device. In a forked child it does not exist.
 */
#ifndef UM_RUNTIME_PLAN_THREAD_H
#define UM_RUNTIME_PLAN_THREAD_H

#include "runtime/plan_job.h"

#include <pthread.h>

#define UM_PLAN_THREAD_STOP_NS 2000000000u /* after that a search that does not end is left behind */

enum um_plan_stage { UM_PLAN_SEARCH, UM_PLAN_COMPILE };

struct um_plan_thread {
	struct um_plan_job job;
	pthread_t thread;
	_Atomic uint32_t state; /* futex: enum state of plan_thread.c */
	enum um_plan_stage stage; /* that the thread begins with */
	uint64_t cpu_ns; /* processor time of the latest run */
};

/* Starts the thread. NULL: out of memory, or of threads. */
struct um_plan_thread *um_plan_thread_new(void);

/* Gives the job to the thread, which runs it from this stage on: the search, and then, unless that needs more memory,
 * the compilation. */
void um_plan_thread_run(struct um_plan_thread *t, enum um_plan_stage stage);

/* 1: the job belongs to the owner. */
int um_plan_thread_is_idle(const struct um_plan_thread *t);

/* Ends the thread, and the job with it. 0; -ETIMEDOUT: the search did not end: the thread is left behind, and frees its
 * memory later. */
int um_plan_thread_free(struct um_plan_thread *t);

#endif
