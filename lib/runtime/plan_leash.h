/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_leash.h - how much planning a program gets
 *
 * in    the processor time of each plan, whether it paid, the time that passes
 * out   whether another plan may be made
 *
 * Two things are limited. Processor time: it may use a fiftieth of the time that passes, beyond an allowance for the
 * first plans; what is above that is a debt, and no plan is made while it is too large. And the cost of a plan's first
 * hints on the device: after each plan in a row that did not pay, the next one waits for about twice as many
 * repetitions. A plan pays when enough iterations have followed it. A value; iteration path.
 */
#ifndef UM_RUNTIME_PLAN_LEASH_H
#define UM_RUNTIME_PLAN_LEASH_H

#include <stdint.h>

#define UM_PLAN_LEASH_PERCENT 2 /* of the time that passes */
#define UM_PLAN_LEASH_FREE_NS 500000000u /* the least allowance */
#define UM_PLAN_LEASH_FREE_PLANS 6 /* likewise, as plans like the most expensive one: guesses, and improved plans */
#define UM_PLAN_LEASH_PAYS 8 /* iterations that must follow a plan for it to pay */
#define UM_PLAN_LEASH_REPETITIONS 15 /* at most twice as many, and one more, are waited for */

struct um_plan_leash {
	uint64_t debt_ns; /* processor time of plans, less the share of the time that has passed since */
	uint64_t most_ns; /* of one plan */
	uint64_t at_ns; /* the time until which that share is counted */
	uint32_t repetitions; /* of an iteration, in a row, that do not suffice for a plan */
	uint32_t followed; /* iterations that followed the current plan */
};

/* Making a plan took so much processor time. */
void um_plan_leash_spend(struct um_plan_leash *l, uint64_t now_ns, uint64_t cpu_ns);

/* An iteration followed the plan. 1: it pays from this iteration on. */
int um_plan_leash_follow(struct um_plan_leash *l);

/* The plan ends for another pattern; `had`: there was one. */
void um_plan_leash_end(struct um_plan_leash *l, int had);

/* May a plan be made? */
int um_plan_leash_allows(struct um_plan_leash *l, uint64_t now_ns);

#endif
