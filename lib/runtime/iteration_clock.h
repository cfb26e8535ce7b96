/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_clock.h - measures how long iterations take on the device
 *
 * in    the ops as they are announced, the end of each iteration and what it was
 * out   ns from the first op of an iteration to the first op of the next one; counters of hints in between
 * owns  a ring of events
 *
 * An event is recorded at the first op of each iteration, and read when the device has passed it. While a program is
 * UM_ITERATION_CLOCK_EVENTS iterations ahead of the device, iterations are not measured. Op path: an event record at
 * the first op of an iteration, no allocation. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_ITERATION_CLOCK_H
#define UM_RUNTIME_ITERATION_CLOCK_H

#include "gpu/gpu.h"
#include "replay/executor.h"
#include "runtime/plan_hold.h"
#include "runtime/referee.h"

#define UM_ITERATION_CLOCK_EVENTS 32

/* What an iteration was. */
struct um_iteration_kind {
	uint64_t plan; /* number of the plan that it followed to its end, and not as the first one; 0: none */
	uint32_t n; /* iterations of the program: a plan may cover several */
	struct um_referee_mark mark;
	struct um_plan_hold_estimate estimate; /* of its time without a plan */
};

struct um_iteration_time {
	uint64_t ns; /* 0: none */
	struct um_iteration_kind kind;
	struct um_executor_counts before, after; /* at its begin and end */
};

struct um_iteration_clock {
	struct um_gpu *gpu;
	struct um_iteration_begin {
		um_event_handle event;
		struct um_executor_counts counts;
		struct um_iteration_kind kind;
		int adjacent; /* the begin before is that of the previous iteration */
	} ring[UM_ITERATION_CLOCK_EVENTS];
	uint64_t read, n; /* begins [read, n) may be needed yet */
	int due; /* the next op is an iteration's first one */
	int recorded, previous; /* the begin of the current iteration is in the ring; of the one before */
};

void um_iteration_clock_init(struct um_iteration_clock *c, struct um_gpu *gpu);
void um_iteration_clock_fini(struct um_iteration_clock *c); /* before the device is closed */

/* An iteration ended. */
void um_iteration_clock_end(struct um_iteration_clock *c, const struct um_iteration_kind *kind);

/* An iteration ended that is not to be measured. */
static inline void um_iteration_clock_skip(struct um_iteration_clock *c)
{
	c->recorded = 0;
}

/* The first op of an iteration is about to be launched. `counts`: of the hints so far. Op path. */
void um_iteration_clock_record(struct um_iteration_clock *c, um_stream stream, const struct um_executor_counts *counts);

/* 1: there is another measured iteration, in order. */
int um_iteration_clock_read(struct um_iteration_clock *c, struct um_iteration_time *out);

#endif
