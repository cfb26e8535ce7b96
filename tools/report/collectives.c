/* SPDX-License-Identifier: Apache-2.0
 *
 * Time in which a process ran nothing but collectives. Work comes in order of its beginning: when work begins, all that
 * ran before it is known.
 */
#include "report/report_state.h"

#include "model/collective.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The collective that ends last has run since before `at`, so the time is within the span of its iteration. */
static void sweep(struct um_report *r, struct um_report_process *p, int64_t to)
{
	struct um_report_sweep *s = &p->sweep;
	int64_t from = later(s->at, s->work_end), until = to < s->collective_end ? to : s->collective_end;

	if (s->iteration != UM_REPORT_NONE && from < until)
		r->iterations.at[s->iteration].collectives.alone_ns += (uint64_t)until - (uint64_t)from;
	s->at = to;
}

void um_report_on_collective(struct um_report *r, uint32_t process, uint32_t iteration, const struct um_activity *a)
{
	struct um_report_process *p = &r->processes.at[process];
	struct um_report_sweep *s = &p->sweep;

	sweep(r, p, a->begin);
	if (a->kind != UM_ACT_KERNEL || !um_collective_is(a->name)) {
		s->work_end = later(s->work_end, a->end);
		return;
	}
	if (iteration != UM_REPORT_NONE)
		r->iterations.at[iteration].collectives.ns += (uint64_t)a->end - (uint64_t)a->begin;
	if (a->end > s->collective_end) {
		s->collective_end = a->end;
		s->iteration = iteration;
	}
}

void um_report_collectives_end(struct um_report *r)
{
	for (size_t i = 0; i < r->processes.n; i++)
		sweep(r, &r->processes.at[i], INT64_MAX);
}
