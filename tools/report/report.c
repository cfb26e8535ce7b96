/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_state.h"

uint64_t um_report_moved(const struct um_report_sums *s, enum um_activity_dir dir)
{
	uint64_t bytes = 0;

	for (int c = 0; c < UM_CAUSES; c++)
		bytes += s->moves[dir][c].bytes;
	return bytes;
}

/* The process's row, or UM_REPORT_NONE: it has none. */
static uint32_t process_found(struct um_report *r, uint64_t process)
{
	if (r->last_process < r->processes.n && r->processes.at[r->last_process].process == process)
		return r->last_process;
	for (uint32_t i = 0; i < r->processes.n; i++)
		if (r->processes.at[i].process == process)
			return r->last_process = i;
	return UM_REPORT_NONE;
}

/* It has one from now on; UM_REPORT_NONE: no memory. */
static uint32_t process_of(struct um_report *r, uint64_t process)
{
	const struct um_iteration_spans *f = r->o.found;
	struct um_report_process fresh = {.process = process,
					  .file = r->file,
					  .sweep = {INT64_MIN, INT64_MIN, INT64_MIN, UM_REPORT_NONE},
					  .found = f ? um_iteration_spans_of(f, process) : NULL};
	uint32_t row = process_found(r, process);

	if (row != UM_REPORT_NONE)
		return row;
	if (um_vec_push(&r->processes, fresh))
		return UM_REPORT_NONE;
	return r->last_process = (uint32_t)(r->processes.n - 1);
}

static void on_memory(struct um_report_process *p, const struct um_activity *a)
{
	if (!a->managed)
		return;
	if (a->kind == UM_ACT_FREE) {
		p->managed_bytes -= a->bytes < p->managed_bytes ? a->bytes : p->managed_bytes;
		return;
	}
	p->managed_allocs++;
	p->managed_bytes += a->bytes;
	if (p->managed_bytes > p->managed_peak_bytes)
		p->managed_peak_bytes = p->managed_bytes;
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_report *r = (struct um_report *)sink;
	uint32_t p, iteration;
	int err = um_report_tensors_feed(r, process_found(r, a->process), a);

	if (err || !um_window_has(&r->window, a))
		return err;
	p = process_of(r, a->process);
	if (p == UM_REPORT_NONE)
		return -ENOMEM;
	if (!r->activities++ || a->begin < r->first_ns)
		r->first_ns = a->begin;
	if (r->activities == 1 || a->end > r->last_ns)
		r->last_ns = a->end;
	if (um_report_on_found(r, p, a))
		return -ENOMEM;
	if (a->records)
		return um_report_on_counted(r, p, a);
	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_FREE:
		on_memory(&r->processes.at[p], a);
		if (a->managed && a->kind == UM_ACT_FREE && um_views_remove(r, p, a))
			return -ENOMEM;
		return um_report_site_host(r, p, a);
	case UM_ACT_RANGE:
		return um_report_on_range(r, p, a);
	case UM_ACT_CALL:
		um_report_on_call(r, p, a);
		return um_report_site_host(r, p, a);
	case UM_ACT_KERNEL:
	case UM_ACT_FILL:
	case UM_ACT_COPY:
		return um_report_on_work(r, p, a);
	case UM_ACT_GPU_FAULT:
		return um_report_on_fault(r, p, a);
	case UM_ACT_CPU_FAULT:
		iteration = um_report_iteration_at(r, p, a->begin);
		r->all.cpu_faults += a->faults;
		um_report_sums_of(r, iteration)->cpu_faults += a->faults;
		if (um_views_cpu_fault(r, p, iteration, a) || um_report_tensors_cpu_fault(r, a->process, iteration, a))
			return -ENOMEM;
		return um_report_site_host(r, p, a);
	case UM_ACT_MIGRATION:
		return um_report_on_migration(r, p, a);
	case UM_ACT_OP:
	case UM_ACT_USE:
	case UM_ACT_HINT:
		if (um_declared_ops_feed(&r->announced, a) || um_views_remove(r, p, a))
			return -ENOMEM;
		return um_report_site_host(r, p, a);
	case UM_ACT_TENSOR_END:
	case UM_ACT_TENSOR:
		return 0;
	case UM_ACT_KINDS:
		break;
	}
	return -EINVAL;
}

void um_report_init(struct um_report *r, const struct um_report_options *options)
{
	memset(r, 0, sizeof *r);
	r->sink.feed = feed;
	r->o = *options;
	r->views.on = options->views;
	r->window = (struct um_window){r->o.from, r->o.to, r->o.within, INT64_MIN};
	um_causes_init(&r->causes, um_report_tensor_row_at, r);
	r->causes.capture = options->capture;
}

void um_report_fini(struct um_report *r)
{
	for (size_t i = 0; i < r->ops.n; i++)
		free(r->ops.at[i].name);
	for (size_t i = 0; i < r->iterations.n; i++)
		free(r->iterations.at[i].name);
	for (size_t i = 0; i < r->ranges.n; i++) {
		free(r->ranges.at[i].name);
		free(r->ranges.at[i].domain);
	}
	for (size_t i = 0; i < r->processes.n; i++)
		um_vec_fini(&r->processes.at[i].iterations);
	for (size_t i = 0; i < r->lanes.n; i++) {
		um_vec_fini(&r->lanes.at[i].running);
		um_vec_fini(&r->lanes.at[i].waiting);
		um_vec_fini(&r->lanes.at[i].served);
	}
	um_report_tensors_fini(&r->tensors);
	um_declared_ops_fini(&r->announced);
	um_causes_fini(&r->causes);
	um_findings_fini(&r->findings);
	um_vec_fini(&r->ops);
	um_vec_fini(&r->iterations);
	um_vec_fini(&r->cells);
	um_vec_fini(&r->ranges);
	um_vec_fini(&r->processes);
	um_vec_fini(&r->lanes);
	um_vec_fini(&r->by_cost);
	um_vec_fini(&r->by_pace);
	um_views_fini(&r->views);
	um_index_fini(&r->op_index);
	um_index_fini(&r->cell_index);
	um_index_fini(&r->range_index);
}

void um_report_reset(struct um_report *r)
{
	struct um_report_options o = r->o;

	um_report_fini(r);
	um_report_init(r, &o);
}

/* Those that waited longest for faults first, then those that ran longest, then by name. */
static int dearer(const void *a, const void *b, void *user)
{
	const struct um_report *r = user;
	const struct um_report_op *x = &r->ops.at[*(const uint32_t *)a], *y = &r->ops.at[*(const uint32_t *)b];

	if (x->work.fault_ns != y->work.fault_ns)
		return x->work.fault_ns < y->work.fault_ns ? 1 : -1;
	if (x->work.ns != y->work.ns)
		return x->work.ns < y->work.ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static uint64_t this_file(const struct um_report *r)
{
	return (uint64_t)r->last_ns - (uint64_t)r->first_ns;
}

uint64_t um_report_longest(const struct um_report *r)
{
	return this_file(r) > r->longest_ns ? this_file(r) : r->longest_ns;
}

int um_report_next_file(struct um_report *r)
{
	um_report_found_end(r);
	if (um_report_tensors_last(r) || um_report_settle(r) || um_causes_next_file(&r->causes) ||
	    um_views_next_file(&r->views))
		return -ENOMEM;
	um_report_tensors_next_file(&r->tensors);
	r->longest_ns = um_report_longest(r);
	r->together_ns = um_report_together(r);
	r->first_ns = r->last_ns = 0;
	r->activities = 0;
	r->has_calls = 0;
	r->window.end = INT64_MIN;
	r->file++;
	return 0;
}

int um_report_finish(struct um_report *r)
{
	um_report_found_end(r);
	if (um_report_tensors_last(r) || um_report_settle(r) || um_report_tensors_sort(r))
		return -ENOMEM;
	if (um_vec_reserve(&r->by_cost, r->ops.n + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < r->ops.n; i++)
		r->by_cost.at[i] = i;
	r->by_cost.n = r->ops.n;
	qsort_r(r->by_cost.at, r->by_cost.n, sizeof *r->by_cost.at, dearer, r);
	if (um_report_compare(r) || um_causes_finish(&r->causes))
		return -ENOMEM;
	return um_findings_build(&r->findings, r);
}
