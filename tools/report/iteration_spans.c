/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the iterations of a survey as the report reaches them. On the CPU an iteration begins with the first call after
 * the previous iteration's last launch that does not wait for the device.
 */
#include "report/iteration_spans.h"

#include "report/report_state.h"

void um_iteration_spans_fini(struct um_iteration_spans *f)
{
	for (size_t i = 0; i < f->processes.n; i++) {
		um_vec_fini(&f->processes.at[i].spans);
		free(f->processes.at[i].first);
	}
	um_vec_fini(&f->processes);
	free(f->name);
	free(f->domain);
	free(f->rival);
	memset(f, 0, sizeof *f);
}

const struct um_iteration_spans_process *um_iteration_spans_of(const struct um_iteration_spans *f, uint64_t process)
{
	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.at[i].number == process)
			return &f->processes.at[i];
	return NULL;
}

void um_iteration_spans_renumber(struct um_iteration_spans *f, uint64_t process, uint64_t number)
{
	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.at[i].process == process)
			f->processes.at[i].number = number;
}

const char *um_report_iterations_by(const struct um_report *r)
{
	const char *by = NULL;

	for (size_t i = 0; i < r->processes.n; i++) {
		const char *one = r->processes.at[i].iterations_by;

		if (one && by && strcmp(by, one) != 0)
			return "mixed";
		by = one ? one : by;
	}
	return by;
}

static int waits(const struct um_activity *a)
{
	return a->kind == UM_ACT_CALL && strstr(a->name, "Synchronize");
}

static int open_next(struct um_report *r, uint32_t process, uint64_t key, int64_t t)
{
	struct um_report_process *p = &r->processes.at[process];
	const struct um_iteration_spans_span *span = &p->found->spans.at[p->opened];
	struct um_report_iteration *last = um_report_last_of(r, p);
	struct um_report_iteration it = {.process = process,
					 .n = (uint32_t)p->iterations.n,
					 .begin = t,
					 .end = INT64_MAX,
					 .has_calls = !p->found->by_time,
					 .first_call = key < span->first ? key : span->first,
					 .last_call = span->last,
					 .mark = span->whole ? UM_MARK_NONE : UM_MARK_UNFINISHED};

	if (last && last->end == INT64_MAX)
		last->end = t;
	p->opened++;
	if (r->iterations.n >= UM_REPORT_ITERATIONS_MAX) {
		r->ranges_skipped++;
		return 0;
	}
	it.name = strdup("repetition");
	if (!it.name || um_vec_reserve(&p->iterations, 1) || um_vec_push(&r->iterations, it)) {
		free(it.name);
		return -ENOMEM;
	}
	p->iterations_by = "repetition";
	p->iterations.at[p->iterations.n++] = (uint32_t)(r->iterations.n - 1);
	return 0;
}

int um_report_on_found(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_process *p = &r->processes.at[process];
	const struct um_iteration_spans_process *f = p->found;
	uint64_t key = f && f->by_time && a->kind != UM_ACT_CALL ? (uint64_t)a->begin : a->correlation;
	struct um_report_iteration *last;
	int err = 0;

	if (!f || !key || (f->by_time && a->kind == UM_ACT_CALL))
		return 0;
	while (!err && p->opened < f->spans.n && key >= f->spans.at[p->opened].first)
		err = open_next(r, process, key, a->begin);
	last = um_report_last_of(r, p);
	if (err || !last || last->end != INT64_MAX || key <= last->last_call)
		return err;
	if (waits(a)) {
		last->last_call = key;
		return 0;
	}
	if (p->opened < f->spans.n && f->spans.at[p->opened].joined)
		return f->by_time ? 0 : open_next(r, process, key, a->begin);
	last->end = a->begin;
	return 0;
}

void um_report_found_end(struct um_report *r)
{
	for (size_t i = 0; i < r->iterations.n; i++)
		if (r->iterations.at[i].end == INT64_MAX)
			r->iterations.at[i].end = r->last_ns;
}
