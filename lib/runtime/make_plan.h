/* SPDX-License-Identifier: Apache-2.0
 *
 * make_plan.h - makes a proved plan from a learned schedule for the live tensors, and compiles it
 *
 * in    a schedule, the device's budget and profile, live tensors
 * out   a plan and a compiled plan
 * owns  nothing
 *
 * The arenas grow if the planner needs more room. Plan path.
 */
#ifndef UM_RUNTIME_MAKE_PLAN_H
#define UM_RUNTIME_MAKE_PLAN_H

#include "model/plan.h"
#include "replay/compiled_plan.h"
#include "runtime/chosen_device.h"
#include "runtime/tensors.h"

/* Pointers are borrowed. */
struct um_plan_host {
	const struct um_chosen_device *device;
	const struct um_options *options;
	struct um_tensors *tensors;
	uint64_t (*wall_ms)(void); /* the clock that limits planning; NULL: CLOCK_MONOTONIC */
	size_t late_ops; /* number of ops of the shortest schedule for which planning timed out; 0: none */
};

/* Places slots at the current addresses of their tensors. If buffers rotate through places that are not equivalent,
 * `*n_iterations` iterations are joined. 0 or -ENOMEM. */
int um_make_schedule(struct um_schedule *s, uint32_t *n_iterations);

/* Consumes the schedule, whose ops have times. `plan` is initialised. 0; -ENOMEM; another -errno and `why`. */
int um_make_plan(struct um_plan_host *h, struct um_schedule *s, struct um_plan *plan, struct um_plan_figures *figures,
		 char *why, size_t size);

/* Fills rehearsed_ns of the plan. 0 or -ENOMEM. `program` is initialised. */
int um_make_program(const struct um_plan_host *h, struct um_plan *plan, struct um_compiled_plan *program);

#endif
