/* SPDX-License-Identifier: Apache-2.0
 *
 * told.h - what a framework of the process tells of its operations (share/python/umadvise/torch.py)
 *
 * in    the allocations that an operation names, while it launches kernels on the calling thread; its iterations
 * out   whether an address in the parameters of a kernel is one of the operation's
 * owns  the list of each thread
 *
 * An allocation counts as the operation's if it names it, or if it was allocated while it runs. Memory that no
 * operation has named, such as a workspace, is not decided. The functions that the framework calls are exported; they
 * are part of the release, not of the ABI. Thread-safe.
 */
#ifndef UM_INJECT_TOLD_H
#define UM_INJECT_TOLD_H

#include "inject/ranges.h"

#define UM_TOLD_MOST 4096u /* allocations of an operation; of one with more nothing is known */

enum um_told { UM_TOLD_NOTHING, UM_TOLD_USED, UM_TOLD_UNUSED };

extern UM_HIDDEN_THREAD _Thread_local int um_told_on; /* an operation of this thread is told */

enum um_told um_told_search(const struct um_range_seen *r);

/* `r`: the allocation that a word of the parameters points to; NULL: none. */
static inline enum um_told um_told_of(const struct um_range_seen *r)
{
	return !um_told_on ? UM_TOLD_NOTHING : r ? um_told_search(r) : UM_TOLD_UNUSED;
}

/* --- for the framework -------------------------------------------------------------------------------------------- */

#define UM_EXPORT __attribute__((visibility("default")))

/* 1: launches are announced, so that it pays to tell operations. */
UM_EXPORT int umadvise_run_wants(void);
/* The operation that the thread begins reads or writes the allocations of these addresses. Addresses outside all
 * allocations are ignored. Operations do not nest: the inner one is part of the outer one. */
UM_EXPORT void umadvise_run_begin(const uint64_t *addresses, uint64_t n);
UM_EXPORT void umadvise_run_end(void);
/* An iteration begins. Ignored where NVTX ranges are iterations (--iteration). */
UM_EXPORT void umadvise_run_iteration(void);

#endif
