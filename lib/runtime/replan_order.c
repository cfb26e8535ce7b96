/* SPDX-License-Identifier: Apache-2.0
 *
 * replan_order.c - orders plans, and takes those that were made
 *
 * A plan is ordered of the iteration that has ended, and taken at the end of one with the same key. In between, the
 * state machine gets other events (follow_state.h).
 */
#include "runtime/replan.h"

#include <errno.h>

#define HOLD_MOST 8 /* iterations without a sample */
#define HOLD_SAMPLES 5
#define HOLD_PART 5 /* of a time, by which it may become less */

void um_replan_report(struct um_replan *r, int err, const char *why)
{
	if (err == -ENOMEM)
		r->notices->errors++;
	um_notices_warn(r->notices, UM_WARN_PLAN, "no plan, no hints: %s", *why ? why : umadv_strerror(err));
}

/* A prepared schedule of the latest iteration. 0 or -ENOMEM. */
static int build_schedule(struct um_replan *r, const struct um_iteration *last, struct um_schedule *s,
			  struct um_planning_order *order)
{
	int err = um_learner_build(&r->learner, last, s);

	if (!err)
		err = um_planning_prepare(s, &order->n_iterations);
	if (!err)
		um_plan_times_fill(&r->times, s);
	order->key = r->learner.key;
	return err;
}

static int order_plan(struct um_replan *r, enum um_follow_event event, const struct um_iteration *last)
{
	struct um_planning_order order = {.reason = event, .signature = last->signature};
	struct um_schedule s;
	int err;

	um_schedule_init(&s);
	err = build_schedule(r, last, &s, &order);
	if (!err)
		err = um_planning_make(&r->planning, &s, &order);
	um_schedule_fini(&s);
	return err;
}

/* The event after a failure to make a plan: without one, or with the plan that was to be improved. */
static enum um_follow_event fail(struct um_replan *r, enum um_follow_event event, int err, const char *why)
{
	um_replan_report(r, err, why);
	um_planning_drop(&r->planning);
	r->replans++;
	if (!r->state || event == UM_FOLLOW_ON_LEFT || event == UM_FOLLOW_ON_NEW)
		return UM_FOLLOW_ON_FAILED;
	return um_follow_needs_plan(r->state, event) ? um_follow_without_plan(r->state, event) : event;
}

/* The event with which the plan that is ready is followed. */
static enum um_follow_event event_of_plan(const struct um_replan *r, enum um_follow_event event)
{
	enum um_follow_event reason = (enum um_follow_event)r->planning.order.reason;

	if (um_follow_needs_plan(r->state, event))
		return event;
	if (!r->state)
		return UM_FOLLOW_ON_NEW;
	return um_follow_needs_plan(r->state, reason) ? reason : UM_FOLLOW_ON_CHANGED;
}

/* A plan of the iteration's schedule is ready, or it failed. */
static enum um_follow_event take_plan(struct um_replan *r, enum um_follow_event event, const struct um_iteration *last)
{
	struct um_planning *p = &r->planning;
	int err = p->job->err, fits = 1;
	struct um_schedule s;

	um_schedule_init(&s);
	if (!err && !p->fresh)
		err = um_learner_build(&r->learner, last, &s);
	if (!err && !p->fresh)
		fits = um_planning_bind(p, &s);
	um_schedule_fini(&s);
	if (err || fits < 0)
		return fail(r, event, err ? err : fits, p->job->why);
	if (fits)
		return event_of_plan(r, event);
	return um_follow_needs_plan(r->state, event) ? um_follow_without_plan(r->state, event) : event;
}

/* Does the plan leave an op to page faults whose excess predicted hints leave on the host? The op accesses it there
 * once, as it streams; a plan does so only with tensors that live in all iterations. */
static int pages_stream(const struct um_schedule *s)
{
	size_t i = 0;

	while (i < s->ops.n &&
	       (!s->ops.at[i].paged || !um_cost_streams(&s->ops.at[i].cost, um_sched_touched(s, &s->ops.at[i]))))
		i++;
	return i < s->ops.n;
}

/* A plan that has nothing to gain is not followed (plan_hold.h). One that leaves an op to page faults is held back
 * until iterations without it are measured, and then while they take less time than it predicts. The first ones take
 * longer, since predictions improve: of those only a large difference counts. */
static int is_held(struct um_replan *r, const struct um_iteration *last)
{
	struct um_planning *p = &r->planning;
	const struct um_plan *plan = &p->job->plan;
	int replaces = p->order.reason == UM_FOLLOW_ON_NEW || p->order.reason == UM_FOLLOW_ON_LEFT;
	const struct um_time_samples *s;
	uint64_t ns;

	if ((r->state && !(replaces && r->estimate.ns)) || !r->referee.on || p->job->err)
		return 0;
	if (r->state || !pages_stream(&plan->sched))
		return um_replan_gains_nothing(r, last, plan, p->order.n_iterations);
	s = um_referee_samples(&r->referee, last->signature, UM_REFEREE_PREDICTED);
	if (!s || !s->n)
		return p->held++ < HOLD_MOST;
	ns = um_time_samples_least(s) * p->order.n_iterations;
	return ns - (s->n < HOLD_SAMPLES ? ns / HOLD_PART : 0) <= plan->rehearsed_ns;
}

/* Is the plan that is ready, of the iteration's schedule, to be followed? */
static int is_wanted(const struct um_replan *r, enum um_follow_event event, const struct um_outcome *l)
{
	enum um_follow_event reason = (enum um_follow_event)r->planning.order.reason;
	int improves =
		reason == UM_FOLLOW_ON_CHANGED || reason == UM_FOLLOW_ON_MISPLACED || reason == UM_FOLLOW_ON_TIMED;

	return !r->state || um_follow_needs_plan(r->state, event) || (l->followed && improves);
}

/* Is a plan being made that will not be followed? Its schedule is known better by now, or the program has changed for
 * long. */
static int is_in_vain(struct um_replan *r, enum um_follow_event event, const struct um_iteration *last)
{
	const struct um_planning *p = &r->planning;

	if (p->state != UM_PLANNING_MAKES)
		return 0;
	if (last->signature != p->order.signature)
		return event == UM_FOLLOW_ON_NEW && r->repetitions >= UM_PLAN_LEASH_PAYS;
	return !um_learner_know_key(&r->learner, last) && r->learner.key != p->order.key;
}

/* A plan that is ready, of another schedule, gives way to the one of the latest iteration. */
static void give_way(struct um_replan *r, const struct um_iteration *last)
{
	struct um_planning *p = &r->planning;

	if (p->order.reason == UM_FOLLOW_ON_LEFT)
		r->wrong_guesses += last->signature != p->order.signature; /* else it is known better */
	else
		um_plan_leash_end(&p->leash, 1);
	um_planning_drop(p);
}

/* May a plan be made of the latest iteration's schedule? */
static int may_order(struct um_replan *r, enum um_follow_event event, const struct um_iteration *last)
{
	struct um_planning *p = &r->planning;

	if (p->state == UM_PLANNING_READY)
		give_way(r, last);
	else if (is_in_vain(r, event, last))
		um_planning_drop(p);
	if (event == UM_FOLLOW_ON_LEFT && r->wrong_guesses >= UM_MAX_GUESSES)
		return 0;
	return um_planning_may_make(p, last->ops.n);
}

/* The key of an iteration is found only if it matters: that takes as long as building its schedule. */
enum um_follow_event um_replan_settle(struct um_replan *r, enum um_follow_event event, const struct um_iteration *last,
				      const struct um_outcome *l)
{
	struct um_planning *p = &r->planning;
	int needs = um_follow_needs_plan(r->state, event), ready = um_planning_poll(p) == UM_PLANNING_READY, err;

	ready = ready && !l->err && last->signature == p->order.signature && is_wanted(r, event, l);
	if (ready && is_held(r, last))
		return um_follow_without_plan(r->state, event);
	if (ready && !um_learner_know_key(&r->learner, last) && r->learner.key == p->order.key)
		return take_plan(r, event, last);
	if (!needs)
		return event;
	if (!may_order(r, event, last))
		return um_follow_without_plan(r->state, event);
	err = um_learner_know_key(&r->learner, last);
	if (!err && !um_planning_may_succeed(p, r->learner.key))
		return um_follow_without_plan(r->state, event);
	if (!err)
		err = order_plan(r, event, last);
	if (err)
		return fail(r, event, err, "");
	return p->state == UM_PLANNING_READY && !is_held(r, last) ? take_plan(r, event, last)
								  : um_follow_without_plan(r->state, event);
}
