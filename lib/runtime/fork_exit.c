/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fork_exit.h"

#include "runtime/joint.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

unsigned um_fork_generation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below; taken before a context's */
static struct um_fork_exit *contexts;
static struct um_fork_exit *tracers; /* contexts that write a trace, open or about to be */
static int registered;
static atomic_int several; /* contexts have been open at once */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	um_joint_before_fork();
}

static void in_parent(void)
{
	um_joint_after_fork();
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	um_fork_generation++;
	for (struct um_fork_exit *f = contexts; f; f = f->next)
		if (f->abandon)
			f->abandon(f->context);
	contexts = tracers = NULL;
	um_joint_after_fork();
	pthread_mutex_unlock(&lock);
}

/* Waits for threads that are inside the library, at most two seconds for each context. */
static void at_exit(void)
{
	pthread_mutex_lock(&lock);
	for (struct um_fork_exit *f = contexts; f; f = f->next) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 2;
		if (pthread_mutex_timedlock(f->lock, &until))
			continue;
		f->quiesce(f->context);
		pthread_mutex_unlock(f->lock);
	}
	pthread_mutex_unlock(&lock);
}

void um_fork_exit_add(struct um_fork_exit *f)
{
	pthread_mutex_lock(&lock);
	f->generation = um_fork_generation;
	f->next = contexts;
	contexts = f;
	if (f->next)
		atomic_store_explicit(&several, 1, memory_order_relaxed);
	if (!registered) {
		registered = 1;
		pthread_atfork(before_fork, in_parent, in_child);
		atexit(at_exit);
	}
	pthread_mutex_unlock(&lock);
}

int um_fork_exit_several(void)
{
	return atomic_load_explicit(&several, memory_order_relaxed);
}

void um_fork_exit_visit(void (*fn)(void *context, void *user), void *user)
{
	pthread_mutex_lock(&lock);
	for (struct um_fork_exit *f = contexts; f; f = f->next) {
		pthread_mutex_lock(f->lock);
		fn(f->context, user);
		pthread_mutex_unlock(f->lock);
	}
	pthread_mutex_unlock(&lock);
}

int um_fork_exit_claim_trace(struct um_fork_exit *f, const char *path)
{
	struct um_fork_exit *other;

	pthread_mutex_lock(&lock);
	for (other = tracers; other; other = other->next_tracer)
		if (strcmp(other->trace, path) == 0)
			break;
	if (!other) {
		f->trace = path;
		f->next_tracer = tracers;
		tracers = f;
	}
	pthread_mutex_unlock(&lock);
	return other ? -EBUSY : 0;
}

void um_fork_exit_remove(struct um_fork_exit *f)
{
	struct um_fork_exit **at = &contexts, **tracer = &tracers;

	pthread_mutex_lock(&lock);
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	while (*tracer && *tracer != f)
		tracer = &(*tracer)->next_tracer;
	if (*tracer)
		*tracer = f->next_tracer;
	pthread_mutex_unlock(&lock);
}
