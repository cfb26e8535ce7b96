/* SPDX-License-Identifier: Apache-2.0
 *
 * planning.h - gets plans made: gathers what a plan depends on, has it made beside the program, and hands it over
 *
 * in    a learned schedule, the device, the live tensors
 * out   a plan and its program
 * owns  the job, the planning thread, the account of processor time
 *
 * With a planning thread (plan_thread.h) um_planning_make returns at once, and the plan is ready at the end of a later
 * iteration: the thread has copies of all that it needs. Without one the plan is ready when um_planning_make returns;
 * so it is in simulated time, where equal programs must get equal plans at equal times. Not thread-safe: the caller
 * holds the context's lock. Iteration path; um_planning_make is plan path without a thread.
 */
#ifndef UM_RUNTIME_PLANNING_H
#define UM_RUNTIME_PLANNING_H

#include "runtime/chosen_device.h"
#include "runtime/plan_leash.h"
#include "runtime/plan_thread.h"
#include "runtime/tensors.h"

/* Pointers are borrowed. */
struct um_plan_host {
	const struct um_chosen_device *device;
	const struct um_options *options;
	struct um_tensors *tensors;
	uint64_t (*wall_ms)(void); /* the clock that limits planning; NULL: CLOCK_MONOTONIC */
};

enum um_planning_state {
	UM_PLANNING_IDLE,
	UM_PLANNING_MAKES, /* the thread has the job */
	UM_PLANNING_READY /* the job has a plan, or an error */
};

/* A schedule to be planned, and why. */
struct um_planning_order {
	uint64_t key; /* learner's; 0: a loaded plan */
	uint64_t signature; /* of an iteration */
	int reason; /* of the caller */
	uint32_t n_iterations; /* in the schedule */
};

struct um_planning {
	struct um_plan_host host;
	struct um_plan_leash leash;
	struct um_plan_thread *thread; /* NULL: not started */
	struct um_plan_job own; /* run by the caller */
	struct um_plan_job *job; /* the latest: this one, or the thread's */
	enum um_planning_state state;
	int cancelled; /* the thread has a job whose plan is not wanted any more */
	struct um_planning_order order; /* of the plan that is made, or ready */
	int fresh; /* it was made from the latest iteration */
	unsigned misfits; /* iterations of its key whose tensors were elsewhere, since it is ready */
	unsigned held; /* iterations of its key for which it was held back, since it is ready */
	int no_thread; /* none can be started */
	int relaunches; /* plans of one iteration may launch ops again */
	uint64_t failed_key; /* of the latest schedule without a plan; 0: none */
	size_t late_ops; /* number of ops of the shortest schedule for which planning timed out; 0: none */
	uint64_t cpu_ns; /* processor time of all plans; 0 in simulated time */
	uint64_t unused; /* plans that were made and not followed */
};

void um_planning_init(struct um_planning *p, const struct um_plan_host *host);
void um_planning_fini(struct um_planning *p);

/* Ends the thread; plans are not made any more. 0; -ETIMEDOUT: it is left behind. */
int um_planning_close(struct um_planning *p);

/* Places slots at the current addresses of their tensors. If buffers rotate through places that are not equivalent,
 * `*n_iterations` iterations are joined. 0 or -ENOMEM. */
int um_planning_prepare(struct um_schedule *s, uint32_t *n_iterations);

/* 1: a plan of `ops` ops may be made now. 0: one is being made, or planning has used its share of the time. */
int um_planning_may_make(struct um_planning *p, size_t ops);
/* May one of this key be made? 0: it failed a while ago. */
int um_planning_may_succeed(const struct um_planning *p, uint64_t key);

/* Has a plan made of a prepared schedule whose ops have times; takes its content. A plan that is ready is dropped. 0 or
 * -ENOMEM. */
int um_planning_make(struct um_planning *p, struct um_schedule *s, const struct um_planning_order *order);
/* The same, at any time; it is ready on return. */
int um_planning_make_here(struct um_planning *p, struct um_schedule *s, const struct um_planning_order *order);

/* Takes note of what the thread has done; adds memory that the plan needs. */
enum um_planning_state um_planning_poll(struct um_planning *p);

/* Of a plan that is ready: binds its slots to the tensors of the latest schedule of its key, as learned, and compiles
 * it again if it must. 1: it can be followed; 0: not yet, its tensors are elsewhere in this iteration; or -ENOMEM. */
int um_planning_bind(struct um_planning *p, const struct um_schedule *latest);

/* The job of a plan that is ready is done with. The caller may have taken its content. */
void um_planning_done(struct um_planning *p);

/* The plan that is made, or ready, is not wanted any more. */
void um_planning_drop(struct um_planning *p);

/* Binds a slot of a plan to a tensor at this address. 1: the plan's program does not hold any more. */
int um_planning_bind_slot(struct um_schedule *s, uint32_t slot, struct um_tensor_id id, uint64_t addr);
/* Compiles such a plan again. 0, or -ENOMEM and the program is unchanged. */
int um_planning_compile_again(struct um_planning *p, const struct um_plan *plan, struct um_compiled_plan *program);

#endif
