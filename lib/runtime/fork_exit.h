/* SPDX-License-Identifier: Apache-2.0
 *
 * fork_exit.h - handles contexts that are open at a fork or at exit
 *
 * in    a member of each context, with its lock and a function that stops its helper threads
 * out   whether a context belongs to this process
 * owns  the list of the process's contexts, under a lock of its own
 *
 * A forked child cannot use CUDA: contexts of its parent are dead there, and every function on them returns at once. At
 * exit, helper threads of open contexts are stopped before CUDA is unloaded (exit handlers run in reverse order, and
 * ours is registered after CUDA was loaded); the contexts stay usable, without hints.
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
	void (*abandon)(void *context); /* called in a forked child, async-signal-safe; NULL: nothing to do */
	void *context;
};

/* Number of forks from the initial process to this one. A context of another generation is dead. */
extern unsigned um_fork_generation;

static inline int um_fork_exit_is_dead(const struct um_fork_exit *f)
{
	return f->generation != um_fork_generation;
}

/* Registers an open context; lock, quiesce and context are set. */
void um_fork_exit_add(struct um_fork_exit *f);
void um_fork_exit_remove(struct um_fork_exit *f);

/* Have there been several open contexts at once? */
int um_fork_exit_several(void);
/* Calls `fn` for each open context of the process, with its lock held. The caller holds no context's lock. */
void um_fork_exit_visit(void (*fn)(void *context, void *user), void *user);

/* The context writes the trace `path` until it is removed. 0, or -EBUSY: another context of this process writes it. */
int um_fork_exit_claim_trace(struct um_fork_exit *f, const char *path);

#endif
