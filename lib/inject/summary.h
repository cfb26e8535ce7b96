/* SPDX-License-Identifier: Apache-2.0
 *
 * summary.h - the line at exit: what was seen of the program, what it got, and why not more
 *
 * in    figures that the hooks count, statistics of the contexts
 * out   one line on standard error
 * owns  the figures
 */
#ifndef UM_INJECT_SUMMARY_H
#define UM_INJECT_SUMMARY_H

#include "umadvise.h"

#include <stdatomic.h>

struct um_injected;

/* Figures of the process. */
struct um_inject_counts {
	_Atomic uint64_t launches, launches_unseen; /* kernels and graphs */
	_Atomic uint64_t live, live_seen, peak, peak_seen; /* bytes; seen at the time of the peak */
	_Atomic uint64_t partial; /* ops with more tensors than fit */
	_Atomic uint64_t left_to_plan; /* prefetches of the program that were not passed on */
	_Atomic uint64_t refused_host; /* allocations that exceeded the host's memory */
};
extern struct um_inject_counts um_inject_counts;

/* One of the reasons that the exit line gives. */
enum um_inject_reason {
	UM_REASON_LAYOUT = 1, /* the driver does not tell the parameters of kernels */
	UM_REASON_GRAPH = 2, /* a graph has nodes that cannot be read */
	UM_REASON_POOL = 4, /* pools of the program, virtual memory */
	UM_REASON_IPC = 16,
	UM_REASON_LIBRARY = 32 /* allocations of a library that needs device memory */
};
extern atomic_uint um_inject_reasons;

/* A function with a hook was looked up and got a form that has none. `name`: a string of the caller's, copied. */
void um_summary_unhooked(const char *name);
int um_summary_has_unhooked(void);

/* Adds the statistics of a context that is about to be closed. */
void um_summary_keep(struct umadv *adv);

/* Writes the line, unless it is switched off. `fits`: all allocations did, so that launches were not announced. */
void um_summary_write(const struct um_injected *devices, unsigned n, int fits);

#endif
