/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_clock.h - measures how long iterations of a plan take on the device
 *
 * in    the begin of each iteration that follows the plan, the ops as they are announced
 * out   ns from the first op of the latest such iteration to the first op after it; counters of hints in between
 * owns  a ring of events
 *
 * An event is recorded at the first op of each iteration. A program that is more than UM_PLAN_CLOCK_EVENTS - 2
 * iterations ahead of the device overwrites events before they are read: then only its last iterations are measured,
 * when it waits for the device. Op path: an event record at the first op of an iteration, no allocation. Not
 * thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_PLAN_CLOCK_H
#define UM_RUNTIME_PLAN_CLOCK_H

#include "gpu/gpu.h"
#include "replay/executor.h"

#define UM_PLAN_CLOCK_EVENTS 4

struct um_plan_clock {
	struct um_gpu *gpu;
	struct um_plan_clock_mark {
		um_event_handle event;
		struct um_executor_counts counts;
	} ring[UM_PLAN_CLOCK_EVENTS];
	uint64_t first, n; /* marks [first, n) are begins of adjacent iterations */
	uint64_t read; /* the iteration that begins with this mark, and earlier ones, were read: its number plus 1 */
	int due; /* the next op is an iteration's first one */
	uint64_t ns; /* the latest measured iteration, 0: none of this plan */
	struct um_executor_counts before, after; /* at its begin and end */
};

void um_plan_clock_init(struct um_plan_clock *c, struct um_gpu *gpu);
void um_plan_clock_fini(struct um_plan_clock *c); /* before the device is closed */

/* Another plan, or none, is followed. */
void um_plan_clock_reset(struct um_plan_clock *c);

/* An iteration ended. `followed`: it followed the plan to its end; `follows`: the next one may. */
void um_plan_clock_iteration(struct um_plan_clock *c, int followed, int follows);

/* The first op of an iteration is about to be launched. `counts`: of the hints so far. Op path. */
void um_plan_clock_record(struct um_plan_clock *c, um_stream stream, const struct um_executor_counts *counts);

/* 1: there is a new measurement. */
int um_plan_clock_read(struct um_plan_clock *c);

#endif
