/* SPDX-License-Identifier: Apache-2.0
 *
 * fork_exit.h - fork and exit: what becomes of contexts that are open then
 *
 * in    a member of each context, with its lock and what ends its work behind the scenes
 * out   whether a context belongs to this process
 * owns  the list of the process's contexts, under a lock of its own
 *
 * A forked child cannot use CUDA: contexts of its parent are dead there, and every function on them returns at once.
 * When the process ends, helper threads of contexts that were left open are stopped before CUDA is torn down (exit
 * handlers run in reverse order, and ours is registered after CUDA was loaded); the contexts stay usable, without
 * hints.
 */
#ifndef UM_RUNTIME_FORK_EXIT_H
#define UM_RUNTIME_FORK_EXIT_H

#include <pthread.h>

struct um_fork_exit {
	struct um_fork_exit *next, *next_tracer;
	unsigned generation;
	const char *trace; /* the file that the context writes; borrowed */
	pthread_mutex_t *lock; /* of the context; borrowed */
	void (*quiesce)(void *context); /* called with that lock held, when the process ends */
	void *context;
};

/* Counts forks between the process that was started and this one. A context of another generation is dead. */
extern unsigned um_fork_generation;

static inline int um_fork_exit_is_dead(const struct um_fork_exit *f)
{
	return f->generation != um_fork_generation;
}

/* The context is open from now on; lock, quiesce and context are set. */
void um_fork_exit_add(struct um_fork_exit *f);
void um_fork_exit_remove(struct um_fork_exit *f);

/* The context writes the trace `path`, until it is removed. 0, or -EBUSY: another one of this process does. */
int um_fork_exit_claim_trace(struct um_fork_exit *f, const char *path);

#endif
