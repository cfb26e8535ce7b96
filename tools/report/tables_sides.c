/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes may be recorded by different clocks, so that only how long their iterations took is compared.
 */
#include "report/tables_sides.h"

const struct um_column um_side_columns[UM_SIDE_COLUMNS] = {
	{"file", "slowest in", UM_COLUMN_TEXT},
	{"pid", "slowest pid", UM_COLUMN_COUNT},
	{"n", "n", UM_COLUMN_COUNT},
	{"processes", "processes", UM_COLUMN_COUNT},
	{"slowest_ns", "slowest", UM_COLUMN_NS},
	{"fastest_ns", "fastest", UM_COLUMN_NS},
	{"apart_ns", "apart", UM_COLUMN_NS},
	{"slowest_fault_ns", "slowest, faulting", UM_COLUMN_NS},
	{"fastest_fault_ns", "fastest, faulting", UM_COLUMN_NS},
};

/* As many as the process with the most has; none where there is but one process that has any. */
size_t um_side_rows(const struct um_findings *f)
{
	const struct um_report *r = f->report;
	size_t most = 0, n = 0;

	for (size_t p = 0; p < r->processes.n; p++) {
		size_t has = r->processes.at[p].iterations.n;

		n += has > 0;
		most = has > most ? has : most;
	}
	return n > 1 ? most : 0;
}

struct um_value um_side_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report *r = f->report;
	uint32_t slow = UM_REPORT_NONE, fast = UM_REPORT_NONE;
	uint64_t n = 0;

	for (size_t p = 0; p < r->processes.n; p++) {
		uint32_t at =
			row < r->processes.at[p].iterations.n ? r->processes.at[p].iterations.at[row] : UM_REPORT_NONE;

		if (at == UM_REPORT_NONE || r->iterations.at[at].mark == UM_MARK_UNFINISHED)
			continue;
		n++;
		if (slow == UM_REPORT_NONE || r->iterations.at[at].ns > r->iterations.at[slow].ns)
			slow = at;
		if (fast == UM_REPORT_NONE || r->iterations.at[at].ns < r->iterations.at[fast].ns)
			fast = at;
	}
	if (column == 2 || column == 3)
		return (struct um_value){.number = column == 2 ? (int64_t)row : (int64_t)n};
	if (!n)
		return (struct um_value){.none = 1};
	switch (column) {
	case 0:
		return um_table_iteration_file(f, slow);
	case 1:
		return um_table_iteration_pid(f, slow);
	case 4:
		return (struct um_value){.number = (int64_t)r->iterations.at[slow].ns};
	case 5:
		return (struct um_value){.number = (int64_t)r->iterations.at[fast].ns};
	case 6:
		return (struct um_value){.number = (int64_t)(r->iterations.at[slow].ns - r->iterations.at[fast].ns)};
	case 7:
		return um_table_if(f, UM_RECORDED_SERVING, um_table_iteration_file(f, slow),
				   r->iterations.at[slow].sums.work.fault_ns);
	default:
		return um_table_if(f, UM_RECORDED_SERVING, um_table_iteration_file(f, fast),
				   r->iterations.at[fast].sums.work.fault_ns);
	}
}
