/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_library.h"

#define COUNTS 8 /* the first column of them */
#define LEVELS (COUNTS + UM_LIBRARY_COUNTS)

_Static_assert(LEVELS + UM_LIBRARY_LEVELS == UM_LIBRARY_COLUMNS, "a column for each");

/* Behind the first, in the order of enum um_library_count and enum um_library_level, with their keys. */
const struct um_column um_library_columns[UM_LIBRARY_COLUMNS] = {
	{"version", "written by", UM_COLUMN_TEXT},
	{"device", "device", UM_COLUMN_TEXT},
	{"why_no_hints", "hints do nothing, because", UM_COLUMN_TEXT},
	{"strategy", "strategy", UM_COLUMN_TEXT},
	{"clock", "clock", UM_COLUMN_TEXT},
	{"budget_bytes", "budget", UM_COLUMN_BYTES},
	{"iterations", "iterations", UM_COLUMN_COUNT},
	{"iterations_kept", "of which it has more than sums", UM_COLUMN_COUNT},
	{"ops", "operations", UM_COLUMN_COUNT},
	{"hints_issued", "hints issued", UM_COLUMN_COUNT},
	{"hints_refused", "hints refused", UM_COLUMN_COUNT},
	{"hints_dropped", "hints dropped", UM_COLUMN_COUNT},
	{"prefetch_bytes", "asked to come", UM_COLUMN_BYTES},
	{"evict_bytes", "asked to leave", UM_COLUMN_BYTES},
	{"discard_bytes", "discarded", UM_COLUMN_BYTES},
	{"plans_adopted", "plans adopted", UM_COLUMN_COUNT},
	{"left_schedule", "iterations that left the schedule", UM_COLUMN_COUNT},
	{"unknown_uses", "uses of no known tensor", UM_COLUMN_COUNT},
	{"captured_ops", "operations under stream capture", UM_COLUMN_COUNT},
	{"errors", "errors of the library's own", UM_COLUMN_COUNT},
	{"counted_h2d_bytes", "counted: to the device", UM_COLUMN_BYTES},
	{"counted_d2h_bytes", "counted: to the host", UM_COLUMN_BYTES},
	{"counted_gpu_faults", "counted: faults of the device", UM_COLUMN_COUNT},
	{"counted_cpu_faults", "counted: faults of the CPU", UM_COLUMN_COUNT},
	{"counters_summed", "counted, of no known tensor", UM_COLUMN_COUNT},
	{"counters_lost", "not counted: records that CUPTI dropped", UM_COLUMN_COUNT},
	{"plan_ns", "an iteration by the plan", UM_COLUMN_NS},
	{"in_core_ns", "the same with all in memory", UM_COLUMN_NS},
	{"plan_peak_bytes", "resident by the plan", UM_COLUMN_BYTES},
	{"tensors_live", "tensors alive", UM_COLUMN_COUNT},
	{"live_bytes", "alive", UM_COLUMN_BYTES},
	{"live_peak_bytes", "alive at most", UM_COLUMN_BYTES},
	{"measured_ops", "operations measured", UM_COLUMN_COUNT},
};

static struct um_value number(uint64_t n)
{
	return (struct um_value){.number = n < INT64_MAX ? (int64_t)n : INT64_MAX};
}

static struct um_value text(const char *s)
{
	return (struct um_value){.none = !*s, .text = s};
}

size_t um_library_rows(const struct um_findings *f)
{
	return f->capture->library.is != 0;
}

struct um_value um_library_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_capture_library *l = &f->capture->library;
	struct um_value v;

	(void)row;
	if (column >= COUNTS && column < LEVELS) {
		v = number(l->counts[column - COUNTS]);
		v.none = !l->counters && column >= COUNTS + UM_LIBRARY_H2D;
		return v;
	}
	if (column >= LEVELS) {
		v = number(l->levels[column - LEVELS]);
		v.none = !v.number && column < LEVELS + UM_LIBRARY_TENSORS; /* there is no plan */
		return v;
	}
	switch (column) {
	case 0:
		return text(l->version);
	case 1:
		return text(l->device);
	case 2:
		return text(l->why);
	case 3:
		return text(l->strategy);
	case 4:
		return text(l->simulated ? "simulated" : "monotonic");
	case 5:
		return number(l->budget_bytes);
	case 6:
		return number(l->iterations);
	default:
		return number(l->kept);
	}
}

const struct um_column um_declared_ops_columns[UM_DECLARED_OPS_COLUMNS] = {
	{"name", "name", UM_COLUMN_TEXT},
	{"announced", "announced", UM_COLUMN_COUNT},
	{"uses", "uses", UM_COLUMN_COUNT},
	{"read_bytes", "read", UM_COLUMN_BYTES},
	{"written_bytes", "written", UM_COLUMN_BYTES}};

size_t um_declared_ops_rows(const struct um_findings *f)
{
	return f->report->announced.rows.n;
}

struct um_value um_declared_ops_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_declared_op *op = &f->report->announced.rows.at[row];
	const uint64_t values[] = {0, op->n, op->uses, op->read_bytes, op->written_bytes};

	return column ? number(values[column]) : text(op->name);
}
