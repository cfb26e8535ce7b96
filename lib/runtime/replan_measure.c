/* SPDX-License-Identifier: Apache-2.0
 *
 * replan_measure.c - measured iterations of the followed plan, and figures
 */
#include "runtime/replan.h"

#include <stdio.h>

#define FAULT_COPIES 5 /* copies of a block: a page fault and the eviction for it take less time */

struct um_executor_counts um_replan_counts(const struct um_replan *r)
{
	struct um_executor_counts sum = r->counts, c;

	if (r->executor) {
		um_executor_counts(r->executor, &c);
		um_executor_counts_add(&sum, &c);
	}
	return sum;
}

/* --- the plan's time ---------------------------------------------------------------------------------------------- */

/* A measurement is judged only if the plan's times of ops are known: otherwise another plan will be made. */
static void check_gap(struct um_replan *r, int last)
{
	if (!r->host.device->real || r->times.measured)
		um_plan_gap_check(&r->gap, &r->steady, r->plan.rehearsed_ns, r->misplaced, last, r->notices);
}

/* --- the referee -------------------------------------------------------------------------------------------------- */

/* The first stop is a warning. */
static void log_change(struct um_replan *r, const struct um_referee_change *c)
{
	static const char *const kinds[] = {"without hints", "with hints for predicted ops", "with the plan's hints"};
	const char *what = c->to < c->from ? "the former hints stop, and are tried again later" : "hints are resumed";
	char line[200];

	snprintf(line, sizeof line, "iterations take %.3f ms %s, %.3f ms %s: %s", (double)c->from_ns / 1e6,
		 kinds[c->from], (double)c->to_ns / 1e6, kinds[c->to], what);
	if (c->to < c->from && !(r->notices->warned & UM_WARN_REFEREE))
		um_notices_warn(r->notices, UM_WARN_REFEREE, "%s", line);
	else
		um_notices_log(r->notices, UMADV_LOG_INFO, "%s", line);
}

/* More than the page faults of an iteration without hints take: as if each op missed all that it uses. */
static uint64_t fault_ns(const struct um_profile *p, const struct um_iteration *it)
{
	double bytes = 0;

	for (size_t i = 0; i < it->uses.n; i++)
		bytes += (double)it->uses.at[i].touched + (double)UM_BLOCK_BYTES;
	return (uint64_t)(bytes * FAULT_COPIES * 1e9 / (p->h2d * p->eta));
}

struct um_referee_mark um_replan_ask_referee(struct um_replan *r, const struct um_iteration *last, int ran)
{
	enum um_referee_hints had = ran				 ? UM_REFEREE_PLANNED
				    : r->was_active || r->begins ? UM_REFEREE_KINDS
				    : um_replan_is_quiet(r)	 ? UM_REFEREE_NONE
								 : UM_REFEREE_PREDICTED;
	struct um_referee_key *k;
	double scale = 1;

	if (!r->referee.on)
		return (struct um_referee_mark){0};
	r->n_limited += had < UM_REFEREE_PLANNED && r->referee.allowed < UM_REFEREE_PLANNED;
	k = um_referee_meet(&r->referee, last->signature);
	if (!k->fault_ns)
		k = um_referee_add(&r->referee, k, fault_ns(&r->host.device->profile, last), last->ops.n, &scale);
	return um_referee_end(&r->referee, k, scale, had);
}

/* --- measured iterations ------------------------------------------------------------------------------------------ */

/* A plan costs nothing where all tensors fit. Faster algorithms may have room in a plan. */
static int may_lose(const struct um_replan *r, const struct um_plan *p)
{
	return r->host.tensors->bytes_live_peak > r->host.device->budget && !p->sched.ws.n;
}

int um_replan_gains_nothing(const struct um_replan *r, const struct um_iteration *last, const struct um_plan *p,
			    uint32_t n)
{
	const struct um_time_samples *s = um_referee_samples(&r->referee, last->signature, UM_REFEREE_PREDICTED);

	return may_lose(r, p) &&
	       um_plan_hold_is_fast(um_plan_hold_expect(&r->hold, &r->estimate, s), p->in_core_ns / n);
}

/* Of an iteration of the followed plan. */
static uint64_t predicted_ns(const struct um_replan *r)
{
	return r->plan.rehearsed_ns / r->n_iterations;
}

static int guesses(const struct um_schedule *s)
{
	size_t i = 0;

	while (i < s->slots.n && !(s->slots.at[i].flags & UM_SLOT_GUESSED))
		i++;
	return i < s->slots.n;
}

int um_replan_is_doubted(const struct um_replan *r)
{
	return um_follow_is_confirmed(r->state) && may_lose(r, &r->plan) && guesses(&r->plan.sched) &&
	       um_plan_hold_doubts(&r->hold, predicted_ns(r));
}

/* Learns from an iteration how wrong estimates are, or how much time the plan would have saved. */
static void compare(struct um_replan *r, const struct um_iteration_time *t)
{
	const struct um_referee_mark *mark = &t->kind.mark;
	uint64_t ns = t->ns / t->kind.n;

	if (t->kind.estimate.ns)
		um_plan_hold_calibrate(&r->hold, &t->kind.estimate, ns);
	if (mark->had == UM_REFEREE_PREDICTED && r->plan.sched.ops.n && mark->key == r->hold.signature)
		um_plan_hold_miss(&r->hold, ns, predicted_ns(r));
}

void um_replan_check_clock(struct um_replan *r, int last)
{
	struct um_iteration_time t;
	struct um_referee_change change;

	while (um_iteration_clock_read(&r->clock, &t)) {
		if (r->referee.on && um_referee_measure(&r->referee, &t.kind.mark, t.ns / t.kind.n, &change))
			log_change(r, &change);
		compare(r, &t);
		if (!t.kind.plan || t.kind.plan != r->n_followed)
			continue;
		r->steady = t;
		check_gap(r, last);
	}
	if (last && r->gap.measurements == 1)
		check_gap(r, last);
}

void um_replan_time_iteration(struct um_replan *r, int ran, uint32_t n, const struct um_referee_mark *mark)
{
	const struct um_iteration_kind kind = {
		.plan = ran && r->was_warm ? r->n_followed : 0, .n = n, .mark = *mark, .estimate = r->estimate};

	if (!r->executor)
		return;
	um_iteration_clock_end(&r->clock, &kind);
	r->was_active = um_executor_active(r->executor);
	r->was_warm = um_executor_is_warm(r->executor);
}

void um_replan_time(struct um_replan *r, um_stream stream)
{
	struct um_executor_counts counts = um_replan_counts(r);

	um_iteration_clock_record(&r->clock, stream, &counts);
}

void um_replan_stats(struct um_replan *r, struct umadv_stats *out)
{
	struct um_executor_counts c = um_replan_counts(r);
	uint64_t waits = r->plan.sched.ops.n ? r->times.wait_ns : 0;

	um_replan_check_clock(r, 0);

	out->plans = r->n_plans;
	out->divergences = r->n_left;
	out->hints_issued = c.issued;
	out->hints_refused = c.refused;
	out->hints_dropped = c.dropped;
	out->prefetch_bytes = c.prefetch_bytes;
	out->evict_bytes = c.evict_bytes;
	out->discard_bytes = c.discard_bytes;
	out->kept_bytes = c.kept_bytes;
	out->gates_waited = c.waits.gates_waited;
	out->gates_late = c.waits.gates_late;
	out->stuck = c.waits.stuck;
	out->host_wait_ns = c.waits.host_wait_ns;
	out->hints_scheduled = c.issued_by.hints[UM_HINT_SCHEDULED];
	out->hints_predicted = c.issued_by.hints[UM_HINT_PREDICTED];
	out->hints_announced = c.issued_by.hints[UM_HINT_ANNOUNCED];
	out->prefetch_scheduled_bytes = c.issued_by.prefetch_bytes[UM_HINT_SCHEDULED];
	out->prefetch_predicted_bytes = c.issued_by.prefetch_bytes[UM_HINT_PREDICTED];
	out->prefetch_announced_bytes = c.issued_by.prefetch_bytes[UM_HINT_ANNOUNCED];
	out->plan_ns = r->plan.sched.ops.n ? (r->plan.rehearsed_ns + waits) / r->n_iterations : 0;
	out->played_ns = r->steady.ns / (r->n_iterations ? r->n_iterations : 1);
	out->in_core_ns = (r->plan.in_core_ns + waits) / (r->n_iterations ? r->n_iterations : 1);
	out->plan_peak_bytes = r->plan_peak_bytes;
	out->measured = r->times.measured;
	out->planning_ns = r->planning.cpu_ns;
	out->plans_unused = r->planning.unused;
	out->limited_iterations = r->n_limited;
	out->budget_bytes = r->host.device->starved ? 0 : r->host.device->budget;
	out->allocs_planned = r->n_placed;
	out->allocs_elsewhere = r->n_misplaced;
}
