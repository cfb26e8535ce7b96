/* SPDX-License-Identifier: Apache-2.0
 *
 * declared.h - what a framework of the process declares of its operations (share/python/umadvise/torch.py)
 *
 * in    the allocations that an operation names, while it launches kernels on the calling thread; its iterations
 * out   whether an address in the parameters of a kernel is one of the operation's
 * owns  the list of each thread
 *
 * An allocation counts as the operation's if it names it, or if it was allocated while it runs. Memory that no
 * operation has named, such as a workspace, is not decided. The functions that the framework calls are exported; they
 * are part of the release, not of the ABI. Thread-safe.
 */
#ifndef UM_INJECT_DECLARED_H
#define UM_INJECT_DECLARED_H

#include "inject/ranges.h"

#define UM_DECLARED_MOST 4096u /* allocations of an operation; of one with more nothing is known */

enum um_declared { UM_DECLARED_NOTHING, UM_DECLARED_USED, UM_DECLARED_UNUSED };

extern UM_HIDDEN_THREAD _Thread_local int um_declared_on; /* an operation of this thread has declared its allocations */

enum um_declared um_declared_search(const struct um_range_seen *r);

/* `r`: the allocation that a word of the parameters points to; NULL: none. */
static inline enum um_declared um_declared_of(const struct um_range_seen *r)
{
	return !um_declared_on ? UM_DECLARED_NOTHING : r ? um_declared_search(r) : UM_DECLARED_UNUSED;
}

/* --- for the framework -------------------------------------------------------------------------------------------- */

#define UM_EXPORT __attribute__((visibility("default")))

/* 1: launches are announced, so that it pays to declare operations. */
UM_EXPORT int umadvise_run_wants(void);
/* The operation that the thread begins reads or writes the allocations of these addresses. Addresses outside all
 * allocations are ignored. Operations do not nest: the inner one is part of the outer one. */
UM_EXPORT void umadvise_run_begin(const uint64_t *addresses, uint64_t n);
UM_EXPORT void umadvise_run_end(void);
/* An iteration begins. Ignored where NVTX ranges are iterations (--iteration). */
UM_EXPORT void umadvise_run_iteration(void);

#endif
