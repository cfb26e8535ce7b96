/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of causes: findings, the verdict, reasons and hints.
 */
#include "report/tables_rows.h"

/* --- findings ----------------------------------------------------------------------------------------------------- */

static const struct um_finding *finding(const struct um_table_row *row)
{
	return row->at;
}

static struct um_value finding_severity(const struct um_table_row *row)
{
	return um_table_text(um_severity_name(finding(row)->severity));
}

static struct um_value finding_kind(const struct um_table_row *row)
{
	return um_table_text(um_reason_name(finding(row)->reason));
}

static struct um_value finding_caller(const struct um_table_row *row)
{
	uint32_t caller = finding(row)->caller;

	return um_table_text(caller == UM_CAUSES_NONE ? NULL : row->f->report->causes.callers.at[caller]);
}

/* Sum of the recorded ones of both sides; no value if none was recorded. */
static struct um_value finding_faults(const struct um_table_row *row)
{
	uint64_t n = finding(row)->faults;
	int some = n || um_table_recorded(row->f, UM_RECORDED_CPU_FAULTS, NULL);

	return um_table_if(row->f, some ? UM_RECORDED_ALWAYS : UM_RECORDED_GPU_FAULTS, um_table_none(), n);
}

static struct um_value finding_cost(const struct um_table_row *row)
{
	const struct um_finding *x = finding(row);

	return um_table_number(x->reason == UM_REASON_WAITED ? x->waited_ns : x->ns);
}

static int finding_in_iteration(const struct um_table_row *row)
{
	return row->process != NULL;
}

#define F struct um_finding
static const struct um_column finding_columns[] = {
	FILE_COLUMN("most in"),
	{"severity", "severity", UM_COLUMN_TEXT, .value = finding_severity},
	{"kind", "kind", UM_COLUMN_TEXT, .value = finding_kind},
	{"tensor", "tensor", UM_COLUMN_TEXT, 0, TENSOR(F, tensor)},
	{"tensors", "tensors", UM_COLUMN_COUNT, 0, MEMBER(F, tensors)},
	{"op", "op", UM_COLUMN_TEXT, 0, OP(F, op)},
	{"caller", "caller", UM_COLUMN_TEXT, .value = finding_caller},
	{"first_iteration", "first", UM_COLUMN_COUNT, 0, MEMBER(F, first), WHERE(F, iterations)},
	{"last_iteration", "last", UM_COLUMN_COUNT, 0, MEMBER(F, last), WHERE(F, iterations)},
	{"saving_ns", "would save", UM_COLUMN_NS, 0, MEMBER(F, saving_ns), WHERE(F, saving_ns)},
	{"n", "n", UM_COLUMN_COUNT, 0, MEMBER(F, n)},
	{"bytes", "moved", UM_COLUMN_BYTES, 0, MEMBER(F, bytes)},
	{"faults", "faults", UM_COLUMN_COUNT, .value = finding_faults},
	{"cost_ns", "cost", UM_COLUMN_NS, .value = finding_cost},
	{"evidence", "evidence", UM_COLUMN_TEXT, 0, MEMBER(F, evidence)},
	{"estimate", "estimated", UM_COLUMN_TEXT, 0, MEMBER(F, estimate)},
	{"advice", "do", UM_COLUMN_TEXT, 0, MEMBER(F, advice)},
	{"processes", "processes", UM_COLUMN_COUNT, 0, MEMBER(F, processes), .applies = finding_in_iteration},
	PID_COLUMN("most in pid"),
};
#undef F

static void find_finding(struct um_table_row *row)
{
	uint32_t process = finding(row)->process;

	row->process = process == UM_CAUSES_NONE ? NULL : &row->f->report->processes.at[process];
}

const struct um_table um_table_findings = {TABLE("findings", "costs and advice", finding_columns), LIST(findings.list),
					   .find = find_finding};

/* --- verdict ------------------------------------------------------------------------------------------------------ */

static int has_iterations(const struct um_table_row *row)
{
	return row->f->report->findings.iterations != 0;
}

#define V struct um_verdict
static const struct um_column verdict_columns[] = {
	{"device", "device", UM_COLUMN_TEXT, 0, MEMBER(V, device)},
	{"budget_bytes", "memory", UM_COLUMN_BYTES, 0, MEMBER(V, budget_bytes)},
	{"iteration_ns", "time of an iteration", UM_COLUMN_NS, 0, MEMBER(V, iteration_ns), .applies = has_iterations},
	{"plan_ns", "planned time", UM_COLUMN_NS, 0, MEMBER(V, plan_ns)},
	{"bound_ns", "lower bound of any plan", UM_COLUMN_NS, 0, MEMBER(V, bound_ns)},
};
#undef V

static size_t verdict_rows(const struct um_findings *f)
{
	return f->verdict != NULL;
}

static void find_verdict(struct um_table_row *row)
{
	row->at = row->f->verdict;
}

const struct um_table um_table_verdict = {
	TABLE("verdict", "time of an iteration over the lower bound of any plan (needs --workload)", verdict_columns),
	.single = 1, .count = verdict_rows, .find = find_verdict};

/* --- reasons ------------------------------------------------------------------------------------------------------ */

static const struct um_cause_row *cause(const struct um_table_row *row)
{
	return row->at;
}

static struct um_value cause_reason(const struct um_table_row *row)
{
	return um_table_text(um_reason_name(cause(row)->reason));
}

static struct um_value cause_faults(const struct um_table_row *row)
{
	return um_table_if(row->f, cause(row)->by_cpu ? UM_RECORDED_CPU_FAULTS : UM_RECORDED_GPU_FAULTS,
			   um_table_row_file(row), cause(row)->faults);
}

static int cause_on_device(const struct um_table_row *row)
{
	return !cause(row)->by_cpu;
}

#define C struct um_cause_row
static const struct um_column reason_columns[] = {
	FILE_COLUMN("file"),
	{"reason", "reason", UM_COLUMN_TEXT, .value = cause_reason},
	{"tensor", "tensor", UM_COLUMN_TEXT, 0, TENSOR(C, tensor)},
	{"op", "op", UM_COLUMN_TEXT, 0, OP(C, op), .applies = cause_on_device},
	PID_COLUMN("pid"),
	ITERATION_COLUMN("iteration"),
	{"events", "events", UM_COLUMN_COUNT, 0, MEMBER(C, n)},
	{"bytes", "moved", UM_COLUMN_BYTES, 0, MEMBER(C, bytes)},
	{"faults", "faults", UM_COLUMN_COUNT, .value = cause_faults},
	{"cost_ns", "cost", UM_COLUMN_NS, 0, MEMBER(C, ns)},
};
#undef C

const struct um_table um_table_reasons = {
	TABLE("reasons", "causes of migrations and faults, by tensor, kernel and iteration", reason_columns),
	LIST(causes.rows), ITERATION(struct um_cause_row, iteration)};

/* --- hints -------------------------------------------------------------------------------------------------------- */

static const struct um_hint_row *hint(const struct um_table_row *row)
{
	return row->at;
}

static struct um_value hint_kind(const struct um_table_row *row)
{
	return um_table_text(um_hint_word(hint(row)->kind));
}

/* Outcomes of prefetches, which a run log lacks. */
static int hint_judged(const struct um_table_row *row)
{
	return !row->f->capture->library.is && hint(row)->kind == UM_HINT_PREFETCH;
}

#define H struct um_hint_row
static const struct um_column hint_columns[] = {
	{"hint", "hint", UM_COLUMN_TEXT, .value = hint_kind},
	{"tensor", "tensor", UM_COLUMN_TEXT, 0, TENSOR(H, tensor)},
	{"issued", "issued", UM_COLUMN_COUNT, 0, MEMBER(H, issued)},
	{"bytes", "asked for", UM_COLUMN_BYTES, 0, MEMBER(H, bytes)},
	{"useful", "useful", UM_COLUMN_COUNT, 0, MEMBER(H, useful), .applies = hint_judged},
	{"late", "late", UM_COLUMN_COUNT, 0, MEMBER(H, late), .applies = hint_judged},
	{"redundant", "redundant", UM_COLUMN_COUNT, 0, MEMBER(H, redundant), .applies = hint_judged},
	{"evicted", "evicted before use", UM_COLUMN_COUNT, 0, MEMBER(H, early), .applies = hint_judged},
	{"refused", "refused", UM_COLUMN_COUNT, 0, MEMBER(H, refused)},
};
#undef H

const struct um_table um_table_hints = {TABLE("hints", "outcomes of hints, by kind and tensor", hint_columns),
					LIST(causes.hints.rows)};
