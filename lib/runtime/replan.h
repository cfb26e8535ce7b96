/* SPDX-License-Identifier: Apache-2.0
 *
 * replan.h - what is followed: at the end of an iteration schedule -> plan -> program, and which of them is kept
 *
 * in    finished iterations, plans that were loaded
 * out   the plan that the next iteration follows, and its hints
 * owns  the learner, the plan, its program, the cursor, the executor, and the times of the plan's ops
 *
 * follow_state.h has the states and what changes them. Iteration path and plan path; um_replan_leave,
 * um_replan_first_op and the fields are the op path's. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_REPLAN_H
#define UM_RUNTIME_REPLAN_H

#include "learn/learn.h"
#include "replay/cursor.h"
#include "replay/executor.h"
#include "runtime/follow_state.h"
#include "runtime/make_plan.h"
#include "runtime/op_timer.h"

#define UM_MAX_REPLANS 3 /* of one schedule, as what is known of it grows */
#define UM_MAX_GUESSES 2 /* in a row that were not followed; then only a pattern that came twice is planned */

struct um_replan {
	struct um_plan_host host;
	struct um_notices *notices; /* borrowed until um_replan_fini, as the host */
	struct um_learner learner;
	struct um_plan plan; /* the one followed; sched.ops.n == 0: none */
	struct um_plan warm; /* loaded, not yet bound to tensors; sched.ops.n == 0: none */
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_executor *executor; /* NULL: no hints */
	enum um_follow_state state;
	int begins; /* the program was taken up in this iteration */
	uint32_t laps, lap; /* iterations that the plan's schedule holds; and how many of them are over */
	unsigned replans; /* of one schedule */
	unsigned wrong_guesses; /* in a row */
	uint64_t last_signature; /* of the iteration before */
	uint64_t misplaced; /* births of this iteration that do not lie where planned */
	struct um_op_timer timer; /* of the plan's ops, on a real device */
	uint64_t timer_signature; /* whose ops it measures, or has measured */
	uint64_t measured; /* ops of an iteration of the plan whose times were measured */
	uint64_t plan_peak_bytes, n_plans, n_left;
	struct um_executor_counts counts; /* of hints without the executor, or of one that is closed */
};

/* 0 or -ENOMEM. */
int um_replan_init(struct um_replan *r, const struct um_plan_host *host, struct um_notices *notices);
/* Hints come from an executor, if the strategy plans and the device can be hinted. 0 or -ENOMEM. */
int um_replan_open(struct um_replan *r, struct um_executor_host *host);
void um_replan_close_executor(struct um_replan *r); /* no hints any more; what it did stays counted */
void um_replan_fini(struct um_replan *r); /* the executor is closed, the device is open or never was (timer) */

/* Iteration `last` ended. 1: another plan is followed, or none any more; 0. */
int um_replan_end_iteration(struct um_replan *r, const struct um_iteration *last, uint64_t number);

/* `it` was an iteration, and the one that ends next came after it: it is learned from, and not planned. */
void um_replan_teach(struct um_replan *r, const struct um_iteration *it);

/* No plan is followed any more. */
void um_replan_forget(struct um_replan *r);

/* A plan to start warm from (read, checked) is taken over. */
void um_replan_load(struct um_replan *r, struct um_plan *plan);
static inline int um_replan_is_loaded(const struct um_replan *r)
{
	return r->warm.sched.ops.n != 0;
}
/* Follows the loaded plan, whose slots find their tensors by name and size. 1, as above. */
int um_replan_start_warm(struct um_replan *r);

/* The schedule was left in iteration `number`. */
void um_replan_leave(struct um_replan *r, uint64_t number);

/* The first op of the iteration fits and the plan waits: from here on its program runs. Uses are looked up anew. */
void um_replan_first_op(struct um_replan *r);

/* Does the program run? */
static inline int um_replan_hints(const struct um_replan *r)
{
	return r->executor && r->cursor.on && um_executor_active(r->executor);
}

/* Does the program evict or discard? */
static inline int um_replan_evicts(const struct um_replan *r)
{
	const struct um_compiled_iteration *first = &r->program.iterations[0],
					   *steady = &r->program.iterations[UM_COMPILED_PLAN_STEADY];

	return first->n_out || first->n_drop || steady->n_out || steady->n_drop;
}

void um_replan_stats(const struct um_replan *r, struct umadv_stats *out);

#endif
