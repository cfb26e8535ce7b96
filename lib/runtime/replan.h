/* SPDX-License-Identifier: Apache-2.0
 *
 * replan.h - makes plans at the end of iterations and decides which plan is followed
 *
 * in    finished iterations, loaded plans
 * out   the plan for the next iteration, and its hints
 * owns  the learner, the planning, the plan, its program, the cursor, the executor, the times of the plan's ops
 *
 * follow_state.h has the states and transitions. Iteration path; um_replan_leave, um_replan_first_op and the fields are
 * the op path's. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_REPLAN_H
#define UM_RUNTIME_REPLAN_H

#include "runtime/replan_state.h"

#define UM_MAX_REPLANS 3 /* new plans of one schedule */
#define UM_FITS_OFTEN 0.65 /* share of fitting iterations from which on a plan begins at once */
#define UM_MAX_GUESSES 2 /* wrong guesses in a row; after them only a pattern that occurred twice is planned */

/* 0 or -ENOMEM. */
int um_replan_init(struct um_replan *r, const struct um_plan_host *host, struct um_notices *notices);
unsigned um_replan_out_workers(const struct um_chosen_device *d); /* that evict with copies */
/* Opens the executor if the strategy plans and the device supports hints. 0 or -ENOMEM. */
int um_replan_open(struct um_replan *r, struct um_executor_host *host);
int um_replan_close_executor(struct um_replan *r); /* ends the hints; their counts are kept */
void um_replan_fini(struct um_replan *r); /* the executor is closed, the device is open or never was (timer) */

/* Iteration `last` ended. 1: another plan, or no plan, is followed from now on; 0: no change. */
int um_replan_end_iteration(struct um_replan *r, const struct um_iteration *last, uint64_t number);

/* Gives the learner the iteration before the one that ends next; makes no plan. `steady`: if both are alike, a plan
 * need not wait for a third one. */
void um_replan_teach(struct um_replan *r, const struct um_iteration *it, int steady);

/* Ops are predicted where no plan is followed (horizon.h). Call it before the first iteration. */
void um_replan_predicts(struct um_replan *r);

/* Plans may launch ops again, on a device whose ops were measured; or they may not. */
static inline void um_replan_may_relaunch(struct um_replan *r, int may)
{
	r->planning.relaunches = may && (!r->host.device->real || r->times.measured);
}

/* Drops the plan, and one that is being made. */
void um_replan_forget(struct um_replan *r);

/* The budget has changed: drops the plan, and one that is being made. What was learned stays, so that the next plan is
 * made at once. Without predictions, until um_replan_predicts. */
void um_replan_restart(struct um_replan *r);

/* The plan that is followed, or else one that is ready. NULL: none. */
const struct um_plan *um_replan_latest(const struct um_replan *r);

/* Takes ownership of a plan that was read and checked, for a warm start. */
void um_replan_load(struct um_replan *r, struct um_plan *plan);
static inline int um_replan_is_loaded(const struct um_replan *r)
{
	return r->warm.sched.ops.n != 0;
}
/* Follows the loaded plan after binding its slots to tensors by name and size. 1, as above. */
int um_replan_start_warm(struct um_replan *r);

/* The program left the schedule in iteration `number`. Hints issued so far, of announced ops, are carried out; returns
 * when no discard of them is pending. */
void um_replan_leave(struct um_replan *r, uint64_t number);

/* The same, as an op waited for discards that come after earlier work of the device, which took longer than an op
 * waits. The iteration still fits: the plan is taken up again in a later one. */
void um_replan_stall(struct um_replan *r, uint64_t number);

/* 1: the program evicts or discards. */
static inline int um_replan_evicts(const struct um_replan *r)
{
	const struct um_compiled_iteration *first = &r->program.iterations[0],
					   *steady = &r->program.iterations[UM_COMPILED_PLAN_STEADY];

	return first->n_out || first->n_drop || steady->n_out || steady->n_drop;
}

/* As it begins, or later, it evicts. */
static inline int um_replan_begins_cold(const struct um_replan *r)
{
	return um_replan_evicts(r) || r->host.tensors->bytes_live_peak > r->host.device->budget;
}

/* Tensors of other iterations block a waiting plan: they live at its places, and what is born elsewhere instead would
 * exceed the budget, or be much. A blocked plan is made anew for other places before it begins, once after it was left.
 * Returns 1 if the plan is blocked. O(n log n) of the live tensors and slots; allocates, and returns 0 without memory.
 */
int um_replan_is_blocked(const struct um_replan *r);

/* May a waiting plan begin with this iteration? The first iteration of a plan that evicts takes as long as several
 * steady ones save. Where few iterations fit, it waits for the second one in a row; where ops are predicted without a
 * plan, it waits at first until one has fitted. After it was left too early, it waits for one more that fits, and after
 * the second time in a row for three. */
static inline int um_replan_may_begin(const struct um_replan *r)
{
	return um_follow_waits(r->state) && !r->hold.holds && r->referee.allowed == UM_REFEREE_PLANNED &&
	       (!um_replan_begins_cold(r) || ((r->fits >= UM_FITS_OFTEN || r->fitted > 1) &&
					      (r->fitted + 1) >> r->vain && !um_replan_is_blocked(r)));
}

/* The first op of the iteration matches the waiting plan: starts its program. The caller resolves the uses again.
 * 1: the plan may evict what was resident. */
int um_replan_first_op(struct um_replan *r);

/* The first op of the plan's next iteration, or the first one after it, is about to be launched. */
void um_replan_time(struct um_replan *r, um_stream stream);

/* The next iteration is to have no hints at all. */
static inline int um_replan_is_quiet(const struct um_replan *r)
{
	return r->referee.allowed == UM_REFEREE_NONE;
}

/* 1: the program is running. */
static inline int um_replan_hints(const struct um_replan *r)
{
	return r->executor && r->cursor.on && um_executor_active(r->executor);
}

void um_replan_stats(struct um_replan *r, struct umadv_stats *out);

#endif
