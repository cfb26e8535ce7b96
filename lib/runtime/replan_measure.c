/* SPDX-License-Identifier: Apache-2.0
 *
 * replan_measure.c - measured iterations of the followed plan, and figures
 */
#include "runtime/replan.h"

struct um_executor_counts um_replan_counts(const struct um_replan *r)
{
	struct um_executor_counts sum = r->counts, c;

	if (r->executor) {
		um_executor_counts(r->executor, &c);
		um_executor_counts_add(&sum, &c);
	}
	return sum;
}

/* A measurement is judged only if the plan's times of ops are known: otherwise another plan will be made. */
void um_replan_check_clock(struct um_replan *r, int last)
{
	int is_new = um_plan_clock_read(&r->clock);

	if ((is_new || (last && r->gap.measurements == 1)) && (!r->host.device->real || r->times.measured))
		um_plan_gap_check(&r->gap, &r->clock, r->plan.rehearsed_ns, r->misplaced, last, r->notices);
}

void um_replan_time_iteration(struct um_replan *r, int followed)
{
	if (r->executor)
		um_plan_clock_iteration(&r->clock, followed, um_executor_is_warm(r->executor));
}

void um_replan_time(struct um_replan *r, um_stream stream)
{
	struct um_executor_counts counts = um_replan_counts(r);

	um_plan_clock_record(&r->clock, stream, &counts);
}

void um_replan_stats(struct um_replan *r, struct umadv_stats *out)
{
	struct um_executor_counts c = um_replan_counts(r);

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
	out->plan_ns = r->plan.sched.ops.n ? r->plan.rehearsed_ns / r->n_iterations : 0;
	out->played_ns = r->clock.ns / (r->n_iterations ? r->n_iterations : 1);
	out->in_core_ns = r->plan.in_core_ns / (r->n_iterations ? r->n_iterations : 1);
	out->plan_peak_bytes = r->plan_peak_bytes;
	out->measured = r->times.measured;
	out->planning_ns = r->planning.cpu_ns;
	out->plans_unused = r->planning.unused;
	out->budget_bytes = r->host.device->budget;
	out->allocs_planned = r->n_placed;
	out->allocs_elsewhere = r->n_misplaced;
}
