/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fork_exit.h"

#include "runtime/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

unsigned um_fork_generation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below; taken before a context's */
static struct umadv *contexts;
static struct umadv *tracers; /* contexts that write a trace, open or about to be */
static int registered;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	um_fork_generation++;
	contexts = tracers = NULL;
	pthread_mutex_unlock(&lock);
}

/* A thread that is inside the library while the process ends is waited for, but not for ever. */
static void at_exit(void)
{
	pthread_mutex_lock(&lock);
	for (struct umadv *adv = contexts; adv; adv = adv->next_context) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 2;
		if (pthread_mutex_timedlock(&adv->lock, &until))
			continue;
		um_context_quiesce(adv);
		pthread_mutex_unlock(&adv->lock);
	}
	pthread_mutex_unlock(&lock);
}

void um_fork_add(struct umadv *adv)
{
	pthread_mutex_lock(&lock);
	adv->generation = um_fork_generation;
	adv->next_context = contexts;
	contexts = adv;
	if (!registered) {
		registered = 1;
		pthread_atfork(before_fork, in_parent, in_child);
		atexit(at_exit);
	}
	pthread_mutex_unlock(&lock);
}

int um_process_claim_trace(struct umadv *adv)
{
	struct umadv *other;

	pthread_mutex_lock(&lock);
	for (other = tracers; other; other = other->next_tracer)
		if (strcmp(other->options.pub.trace, adv->options.pub.trace) == 0)
			break;
	if (!other) {
		adv->next_tracer = tracers;
		tracers = adv;
	}
	pthread_mutex_unlock(&lock);
	return other ? -EBUSY : 0;
}

void um_fork_remove(struct umadv *adv)
{
	struct umadv **at = &contexts, **tracer = &tracers;

	pthread_mutex_lock(&lock);
	while (*at && *at != adv)
		at = &(*at)->next_context;
	if (*at)
		*at = adv->next_context;
	while (*tracer && *tracer != adv)
		tracer = &(*tracer)->next_tracer;
	if (*tracer)
		*tracer = adv->next_tracer;
	pthread_mutex_unlock(&lock);
}
