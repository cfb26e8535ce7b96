/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.h - the driver's own counters of unified memory, by CUPTI: migrations with their causes, and faults
 *
 * in    records of CUPTI, on threads of its own
 * out   MIGRATION, GPU_FAULT and CPU_FAULT activities, when they are collected
 * owns  the process's one CUPTI activity subscription, and the records not yet collected
 *
 * CUPTI has one client in a process, so one context uses it at a time, for all devices. CUPTI is loaded when needed,
 * never linked. Memory is bounded: records beyond the limit are summed by kind and cause, exactly; records that CUPTI
 * itself dropped are counted. Control path, except collection: iteration path. Without CUPTI headers at build time it
 * is refused.
 */
#ifndef UM_GPU_COUNTERS_H
#define UM_GPU_COUNTERS_H

#include "model/activity.h"

#include <stddef.h>

/* The CUPTI library that is loaded; NULL: none in this build. */
const char *um_counters_soname(void);

/* `now` is the clock of the activities. After cuInit. 0; -EBUSY: another context, or the parent of this forked process,
 * uses them; -ENOTSUP. `why` then has one line. */
int um_counters_open(int64_t now, char *why, size_t size);

/* Feeds the records received by now to `sink`, in no order; `last`: the final collection, then they are closed.
 * `*lost`: number of records that CUPTI dropped since the previous call. Calls into CUPTI. 0, or CUPTI's error: some
 * records may come later, or never. Only for the context that opened them. */
int um_counters_take(int64_t now, int last, struct um_activity_sink *sink, uint64_t *lost);

#endif
