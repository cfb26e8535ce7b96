/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_causes.h"

static struct um_value number(uint64_t n)
{
	return (struct um_value){.number = n < INT64_MAX ? (int64_t)n : INT64_MAX};
}

static struct um_value text(const char *s)
{
	return (struct um_value){.none = s ? UM_VALUE_THERE : UM_VALUE_NONE, .text = s};
}

static struct um_value none(void)
{
	return (struct um_value){.none = 1};
}

/* Of both sides: a number of those that were recorded; none of them was, and there is none. */
static struct um_value faults(const struct um_findings *f, uint64_t n)
{
	return um_table_if(f,
			   n || um_table_recorded(f, UM_RECORDED_CPU_FAULTS, NULL) ? UM_RECORDED_ALWAYS
										   : UM_RECORDED_GPU_FAULTS,
			   none(), n);
}

static struct um_value tensor(const struct um_findings *f, uint32_t row)
{
	return text(row == UM_CAUSES_NONE ? NULL : um_report_tensor_name(f->report, row));
}

static struct um_value op(const struct um_findings *f, uint32_t row)
{
	return text(row == UM_CAUSES_NONE ? NULL : f->report->ops.at[row].name);
}

/* --- findings ----------------------------------------------------------------------------------------------------- */

const struct um_column um_finding_columns[UM_FINDING_COLUMNS] = {
	{"file", "most in", UM_COLUMN_TEXT},
	{"severity", "severity", UM_COLUMN_TEXT},
	{"kind", "kind", UM_COLUMN_TEXT},
	{"tensor", "tensor", UM_COLUMN_TEXT},
	{"tensors", "tensors", UM_COLUMN_COUNT},
	{"op", "op", UM_COLUMN_TEXT},
	{"caller", "caller", UM_COLUMN_TEXT},
	{"first_iteration", "first", UM_COLUMN_COUNT},
	{"last_iteration", "last", UM_COLUMN_COUNT},
	{"saving_ns", "would save", UM_COLUMN_NS},
	{"n", "n", UM_COLUMN_COUNT},
	{"bytes", "moved", UM_COLUMN_BYTES},
	{"faults", "faults", UM_COLUMN_COUNT},
	{"cost_ns", "cost", UM_COLUMN_NS},
	{"evidence", "evidence", UM_COLUMN_TEXT},
	{"estimate", "estimated", UM_COLUMN_TEXT},
	{"advice", "do", UM_COLUMN_TEXT},
	{"processes", "processes", UM_COLUMN_COUNT},
	{"pid", "most in pid", UM_COLUMN_COUNT},
};

size_t um_finding_rows(const struct um_findings *f)
{
	return f->report->findings.list.n;
}

struct um_value um_finding_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_finding *x = &f->report->findings.list.at[row];
	const struct um_report_process *process =
		x->process == UM_CAUSES_NONE ? NULL : &f->report->processes.at[x->process];

	switch (column) {
	case 0:
		return process ? um_table_file(f, process->process) : none();
	case 1:
		return text(um_severity_name(x->severity));
	case 2:
		return text(um_reason_name(x->reason));
	case 3:
		return tensor(f, x->tensor);
	case 4:
		return number(x->tensors);
	case 5:
		return op(f, x->op);
	case 6:
		return text(x->caller == UM_CAUSES_NONE ? NULL : f->report->causes.callers.at[x->caller]);
	case 7:
		return x->iterations ? number(x->first) : none();
	case 8:
		return x->iterations ? number(x->last) : none();
	case 9:
		return x->saving_ns ? number(x->saving_ns) : none();
	case 10:
		return number(x->n);
	case 11:
		return number(x->bytes);
	case 12:
		return faults(f, x->faults);
	case 13:
		return number(x->reason == UM_REASON_WAITED ? x->waited_ns : x->ns);
	case 14:
		return text(x->evidence);
	case 15:
		return text(x->estimate);
	case 16:
		return text(x->advice);
	case 17:
		return process ? number(x->processes) : none();
	default:
		return process ? um_table_pid(f, process->process) : none();
	}
}

/* --- verdict ------------------------------------------------------------------------------------------------------ */

const struct um_column um_verdict_columns[UM_VERDICT_COLUMNS] = {
	{"device", "device", UM_COLUMN_TEXT},
	{"budget_bytes", "memory", UM_COLUMN_BYTES},
	{"iteration_ns", "an iteration takes", UM_COLUMN_NS},
	{"plan_ns", "the library plans", UM_COLUMN_NS},
	{"bound_ns", "no plan can beat", UM_COLUMN_NS},
};

size_t um_verdict_rows(const struct um_findings *f)
{
	return f->verdict != NULL;
}

struct um_value um_verdict_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_verdict *v = f->verdict;

	(void)row;
	switch (column) {
	case 0:
		return text(v->device);
	case 1:
		return number(v->budget_bytes);
	case 2:
		return f->report->findings.iterations ? number(v->iteration_ns) : none();
	case 3:
		return number(v->plan_ns);
	default:
		return number(v->bound_ns);
	}
}

/* --- reasons ------------------------------------------------------------------------------------------------------ */

const struct um_column um_reason_columns[UM_REASON_COLUMNS] = {
	{"file", "file", UM_COLUMN_TEXT},      {"reason", "reason", UM_COLUMN_TEXT},
	{"tensor", "tensor", UM_COLUMN_TEXT},  {"op", "op", UM_COLUMN_TEXT},
	{"pid", "pid", UM_COLUMN_COUNT},       {"iteration", "n", UM_COLUMN_COUNT},
	{"events", "events", UM_COLUMN_COUNT}, {"bytes", "moved", UM_COLUMN_BYTES},
	{"faults", "faults", UM_COLUMN_COUNT}, {"cost_ns", "cost", UM_COLUMN_NS},
};

size_t um_reason_rows(const struct um_findings *f)
{
	return f->report->causes.rows.n;
}

struct um_value um_reason_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_cause_row *x = &f->report->causes.rows.at[row];
	const struct um_report_iteration *it =
		x->iteration == UM_CAUSES_NONE ? NULL : &f->report->iterations.at[x->iteration];

	switch (column) {
	case 0:
		return um_table_iteration_file(f, x->iteration);
	case 1:
		return text(um_reason_name(x->reason));
	case 2:
		return tensor(f, x->tensor);
	case 3:
		return x->by_cpu ? none() : op(f, x->op);
	case 4:
		return um_table_iteration_pid(f, x->iteration);
	case 5:
		return it ? number(it->n) : none();
	case 6:
		return number(x->n);
	case 7:
		return number(x->bytes);
	case 8:
		return um_table_if(f, x->by_cpu ? UM_RECORDED_CPU_FAULTS : UM_RECORDED_GPU_FAULTS,
				   um_table_iteration_file(f, x->iteration), x->faults);
	default:
		return number(x->ns);
	}
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

const struct um_column um_hint_columns[UM_HINT_COLUMNS] = {
	{"hint", "hint", UM_COLUMN_TEXT},
	{"tensor", "tensor", UM_COLUMN_TEXT},
	{"issued", "issued", UM_COLUMN_COUNT},
	{"bytes", "asked for", UM_COLUMN_BYTES},
	{"useful", "useful", UM_COLUMN_COUNT},
	{"late", "late", UM_COLUMN_COUNT},
	{"redundant", "redundant", UM_COLUMN_COUNT},
	{"evicted", "evicted before use", UM_COLUMN_COUNT},
	{"refused", "refused", UM_COLUMN_COUNT},
};

size_t um_hint_rows(const struct um_findings *f)
{
	return f->report->causes.hints.rows.n;
}

struct um_value um_hint_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_hint_row *x = &f->report->causes.hints.rows.at[row];

	if (column >= 4 && column <= 7 && f->capture->library.is)
		return none(); /* what became of them nobody saw */
	switch (column) {
	case 0:
		return text(um_hint_word(x->kind));
	case 1:
		return tensor(f, x->tensor);
	case 2:
		return number(x->issued);
	case 3:
		return number(x->bytes);
	case 4:
		return x->kind == UM_HINT_PREFETCH ? number(x->useful) : none();
	case 5:
		return x->kind == UM_HINT_PREFETCH ? number(x->late) : none();
	case 6:
		return x->kind == UM_HINT_PREFETCH ? number(x->redundant) : none();
	case 7:
		return x->kind == UM_HINT_PREFETCH ? number(x->early) : none();
	default:
		return number(x->refused);
	}
}
