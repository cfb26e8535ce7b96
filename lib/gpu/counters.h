/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.h - what the driver itself counts of unified memory: migrations with their causes, faults, by CUPTI
 *
 * in    records of CUPTI, on threads of its own
 * out   MIGRATION, GPU_FAULT and CPU_FAULT activities, when they are taken
 * owns  the process's one connection to CUPTI's activities, and what it has told and nobody has taken
 *
 * A process has one, so one context has it at a time, and is told of all devices. CUPTI is opened when it is asked
 * for, never linked. Memory is bounded: what comes too fast is kept as sums, by kind and cause, to the byte and the
 * fault; what CUPTI itself has dropped is counted. Control path, but for taking: iteration path. Where the headers were
 * missing when the library was built, it is refused.
 */
#ifndef UM_GPU_COUNTERS_H
#define UM_GPU_COUNTERS_H

#include "model/activity.h"

#include <stddef.h>

/* The library that is opened for them; NULL: this build opens none. */
const char *um_counters_soname(void);

/* `now` is the clock of what is told. After cuInit. 0; -EBUSY: another context has them, or the process that
 * this one was forked from; -ENOTSUP. `why` then says it in one line. */
int um_counters_open(int64_t now, char *why, size_t size);

/* What was told by now goes to `sink`, in no order; `last`: nothing comes behind it, and they are closed. `*lost`: how
 * many records CUPTI had no room for since it was asked last. Calls into CUPTI. 0, or CUPTI's error: some may come
 * later, or never. Only who has opened them. */
int um_counters_take(int64_t now, int last, struct um_activity_sink *sink, uint64_t *lost);

#endif
