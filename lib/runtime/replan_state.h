/* SPDX-License-Identifier: Apache-2.0
 *
 * replan_state.h - the state of replan.h, and declarations shared by its files (private to them)
 *
 *     replan.c           which plan is followed: states, iterations, open and close
 *     replan_begin.c     a waiting plan begins
 *     replan_order.c     plans that are ordered, and taken when they are ready
 *     replan_measure.c   measured iterations, figures
 */
#ifndef UM_RUNTIME_REPLAN_STATE_H
#define UM_RUNTIME_REPLAN_STATE_H

#include "learn/learn.h"
#include "replay/cursor.h"
#include "replay/executor.h"
#include "runtime/follow_state.h"
#include "runtime/iteration_clock.h"
#include "runtime/plan_gap.h"
#include "runtime/plan_times.h"
#include "runtime/planning.h"
#include "runtime/referee.h"

struct um_replan {
	struct um_plan_host host;
	struct um_notices *notices; /* borrowed until um_replan_fini, as the host */
	struct um_learner learner;
	struct um_planning planning;
	struct um_plan plan; /* the followed plan; sched.ops.n == 0: none */
	struct um_plan warm; /* loaded plan, not yet bound to tensors; sched.ops.n == 0: none */
	struct um_plan recomputes; /* the same with recompute hints; no ops: it launches nothing again */
	struct um_relaunches relaunches; /* of the plan */
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_executor *executor; /* NULL: no hints */
	enum um_follow_state state;
	int begins; /* the program was started in this iteration */
	uint32_t n_iterations, iteration; /* in the plan's schedule; the current one of them */
	unsigned replans; /* of one schedule */
	int may_move; /* the plan was left, and has not been made anew for other places since */
	unsigned wrong_guesses; /* in a row */
	uint32_t repetitions; /* of the latest iteration, in a row */
	uint32_t left; /* iterations in a row that left this plan */
	int stalled; /* an op of this iteration waited in vain for work before it */
	uint32_t stalls; /* iterations in a row of which that is so */
	unsigned taken; /* this iteration and the next ones whose ops may use what the CPU took beside the plan */
	uint32_t fitted; /* iterations in a row that fitted the plan, whether it ran or not */
	uint32_t run; /* iterations in a row in which the program ran */
	uint32_t vain; /* times in a row that it began and was left before that had paid */
	int predicts; /* ops are predicted where no plan is followed: one need not begin at once */
	int taught; /* this iteration and the previous one, if alike, are most of what the program has done */
	double fits; /* share of iterations that fitted the plan, the latest of most weight */
	uint64_t last_signature; /* of the previous iteration */
	uint64_t key; /* of the schedule for which the plan was made; 0: a loaded one */
	uint64_t misplaced, misplaced_bytes; /* births of this iteration at other addresses than planned */
	uint64_t displaced; /* bytes of those of the previous iteration */
	/* Planned places of tensors that were born elsewhere, in whole blocks. A plan that runs counts on these blocks,
	 * though they are not on the device. */
	UM_VEC(struct um_heap_region) vacant;
	uint64_t absent; /* births of this iteration there, or at other addresses than planned */
	uint64_t n_placed, n_misplaced; /* births of all iterations at their planned addresses, and at others */
	struct um_plan_times times; /* of the plan's ops */
	struct um_iteration_clock clock;
	struct um_iteration_time steady; /* the latest measured iteration of the plan, except its first one */
	struct um_plan_gap gap;
	struct um_referee referee;
	struct um_plan_hold hold;
	struct um_plan_hold_estimate estimate; /* of the iteration that ends */
	uint64_t n_limited; /* iterations that were allowed fewer hints */
	int was_active, was_warm; /* as the iteration began: the program ran; and it had run in the one before */
	uint64_t n_followed; /* number of the plan */
	uint64_t host_said; /* bytes in the last log line about host memory */
	uint64_t plan_peak_bytes, n_plans, n_left;
	struct um_executor_counts counts; /* of hints issued without the executor, or by a closed executor */
};

/* Outcome of an iteration. */
struct um_outcome {
	int followed; /* it followed the plan's schedule to its end */
	int waited; /* and the plan did not run */
	int excused; /* it did not, as an op waited in vain */
	int err; /* of the learner */
	int changed; /* the learned schedule is not the plan's */
	int repeated; /* it equals the previous one */
	int retimed; /* its ops are now measured, and their times differ from the plan's */
};

/* Has plans made. Returns the event, if it needs no plan or the plan is ready; otherwise the one in its place. */
enum um_follow_event um_replan_settle(struct um_replan *r, enum um_follow_event event, const struct um_iteration *last,
				      const struct um_outcome *l);

/* Has this plan, of `n` iterations, nothing to gain where they are as the latest one? 0 where all tensors fit. */
int um_replan_gains_nothing(const struct um_replan *r, const struct um_iteration *last, const struct um_plan *p,
			    uint32_t n);

/* Does the followed plan guess when tensors are freed, though its pattern is known, and has too little been missed
 * without it? 0 where all tensors fit. O(slots). */
int um_replan_is_doubted(const struct um_replan *r);

/* Counts and logs that there is no plan. `why`: in words, may be empty. */
void um_replan_report(struct um_replan *r, int err, const char *why);

/* Of all hints so far. */
struct um_executor_counts um_replan_counts(const struct um_replan *r);

/* Takes a new measurement of the plan's iterations. `last`: there will be no other. */
void um_replan_check_clock(struct um_replan *r, int last);

/* `n` iterations ended, of which `mark` is the referee's. `ran`: under the plan. */
void um_replan_time_iteration(struct um_replan *r, int ran, uint32_t n, const struct um_referee_mark *mark);

/* Decides which hints the next iteration may have. `ran`: the latest one followed the plan to its end. */
struct um_referee_mark um_replan_ask_referee(struct um_replan *r, const struct um_iteration *last, int ran);

#endif
