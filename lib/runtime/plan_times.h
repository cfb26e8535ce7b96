/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_times.h - durations of a schedule's ops: measured on a real device, given by the program, or estimated
 *
 * in    the ops of iterations that follow a plan
 * out   times for the planner
 * owns  the op timer
 *
 * The time of a collective includes waits for other processes: it is planned with the lesser of the measured time and
 * the program's cost, and a measured time of it is no reason to plan again.
 *
 * The first iterations under a plan are measured; their times belong to its schedule, by signature. Iteration path. Not
 * thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_PLAN_TIMES_H
#define UM_RUNTIME_PLAN_TIMES_H

#include "model/plan.h"
#include "runtime/chosen_device.h"
#include "runtime/op_timer.h"

struct um_plan_times {
	const struct um_chosen_device *device; /* borrowed */
	struct um_op_timer timer;
	uint64_t signature; /* of the schedule that it measures or has measured */
	uint64_t measured; /* ops of an iteration of the followed plan */
	uint64_t wait_ns; /* by which its collectives take longer than planned */
};

void um_plan_times_init(struct um_plan_times *t, const struct um_chosen_device *device);
void um_plan_times_fini(struct um_plan_times *t); /* the device is open or never was */

/* Sets the times of the schedule's ops. */
void um_plan_times_fill(const struct um_plan_times *t, struct um_schedule *s);

/* A plan of this schedule, of `n_iterations` iterations, will be followed: measures it if the device is real and the
 * times are not known. */
void um_plan_times_begin(struct um_plan_times *t, const struct um_schedule *s, uint32_t n_iterations);

/* An iteration ended; `followed`: it followed the plan. 1: all ops are measured now, and their times differ from the
 * plan's enough for a new plan. */
int um_plan_times_end(struct um_plan_times *t, int followed, const struct um_schedule *s, uint32_t n_iterations);

#endif
