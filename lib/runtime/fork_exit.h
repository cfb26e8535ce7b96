/* SPDX-License-Identifier: Apache-2.0
 *
 * fork_exit.h - fork and exit: what becomes of contexts that are open then
 *
 * A forked child cannot use CUDA: contexts of its parent are dead there, and every function on them returns at once.
 * When the process ends, helper threads of contexts that were left open are stopped before CUDA is torn down (exit
 * handlers run in reverse order, and ours is registered after CUDA was loaded); the contexts stay usable, without
 * hints.
 */
#ifndef UM_RUNTIME_FORK_EXIT_H
#define UM_RUNTIME_FORK_EXIT_H

#include "umadvise.h"

/* Counts forks between the process that was started and this one. A context of another generation is dead. */
extern unsigned um_fork_generation;

void um_fork_add(struct umadv *adv);
void um_fork_remove(struct umadv *adv);

/* The context writes the trace that its options name, until it is removed. 0, or -EBUSY: another one of this process
 * does. */
int um_process_claim_trace(struct umadv *adv);

#endif
