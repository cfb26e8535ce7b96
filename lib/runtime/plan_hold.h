/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_hold.h - holds a plan back that has nothing to gain, or guesses
 *
 * in    estimated, predicted and measured times of iterations
 * out   whether a waiting plan is held back
 * owns  nothing
 *
 * A plan that has nothing to gain still costs its begin, and whenever the program leaves it, and where tensors are born
 * elsewhere, as those of a queue are. It waits while iterations of its kind take as long without it as with everything
 * resident.
 *
 * What a plan predicts is not to be relied on where it guesses when a tensor is freed, as that was not observed: in a
 * queue, or a cache that grows. Such tensors are born elsewhere than planned, and their memory exceeds the plan's. The
 * plan begins once iterations without it have taken longer than it predicts by many times that time in all: a program
 * that runs for long and would gain much gets its plan in the end.
 *
 * The time of an iteration without a plan is known only when the device has come as far, which may be several
 * iterations later. Until then it is estimated (um_horizon_lap): the time of its ops, and for how long they wait for
 * their blocks. How wrong the latter is follows from the latest measured iteration. Iteration path; a value.
 */
#ifndef UM_RUNTIME_PLAN_HOLD_H
#define UM_RUNTIME_PLAN_HOLD_H

#include "runtime/time_samples.h"

#define UM_PLAN_HOLD_GUESSES 32 /* times its own time are missed before a plan begins that guesses */

/* Of an iteration without a plan. */
struct um_plan_hold_estimate {
	uint64_t ns; /* 0: there is none */
	uint64_t stall_ns; /* of them: for which ops wait for their blocks */
};

struct um_plan_hold {
	uint64_t signature; /* of the iterations that the plan is for; 0: no plan so far */
	double scale; /* a measured stall over its estimate; 0: none was measured */
	int begun; /* such a plan has begun */
	uint64_t missed_ns; /* by which iterations without such a plan took longer than it predicts */
	int holds; /* the waiting plan neither begins, nor do tensors take its places */
};

/* A plan for iterations with this signature will be followed. It takes over what was missed before one for the same. */
void um_plan_hold_begin(struct um_plan_hold *h, uint64_t signature);

/* The expected time of an iteration without a plan: measured (NULL: never), or estimated if that is less and few were
 * measured. 0: not known. */
uint64_t um_plan_hold_expect(const struct um_plan_hold *h, const struct um_plan_hold_estimate *e,
			     const struct um_time_samples *measured);

/* Has a plan nothing to gain where iterations take `ns` (0: not known), and `in_core_ns` with everything resident? */
int um_plan_hold_is_fast(uint64_t ns, uint64_t in_core_ns);

/* Has too little been missed for a plan that guesses when tensors are freed, and predicts `ns`? */
static inline int um_plan_hold_doubts(const struct um_plan_hold *h, uint64_t ns)
{
	return !h->begun && h->missed_ns < UM_PLAN_HOLD_GUESSES * ns;
}

/* The plan begins. */
static inline void um_plan_hold_start(struct um_plan_hold *h)
{
	h->begun = 1;
}

/* A measured iteration without hints of a plan. */
void um_plan_hold_calibrate(struct um_plan_hold *h, const struct um_plan_hold_estimate *e, uint64_t ns);
/* A measured iteration without the plan, for which that predicts less time, or more. */
static inline void um_plan_hold_miss(struct um_plan_hold *h, uint64_t ns, uint64_t predicted_ns)
{
	h->missed_ns += ns > predicted_ns ? ns - predicted_ns : 0;
}

#endif
