/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_tensors.h"

#define SUM_COLUMNS                                                                                                    \
	{"gpu_page_faults", "faults", UM_COLUMN_COUNT}, {"fault_ns", "faulting", UM_COLUMN_NS},                        \
		{"cpu_page_faults", "CPU faults", UM_COLUMN_COUNT}, {"um_h2d_bytes", "in", UM_COLUMN_BYTES},           \
		{"um_h2d_demand_bytes", "in, demand", UM_COLUMN_BYTES},                                                \
		{"um_h2d_prefetch_bytes", "in, prefetch", UM_COLUMN_BYTES}, {"um_d2h_bytes", "out", UM_COLUMN_BYTES},  \
		{"um_d2h_demand_bytes", "out, demand", UM_COLUMN_BYTES},                                               \
		{"um_d2h_prefetch_bytes", "out, prefetch", UM_COLUMN_BYTES},                                           \
		{"um_d2h_eviction_bytes", "out, eviction", UM_COLUMN_BYTES},                                           \
		{"evictions", "evictions", UM_COLUMN_COUNT},                                                           \
	{                                                                                                              \
		"um_d2d_bytes", "across", UM_COLUMN_BYTES                                                              \
	}

const struct um_column um_tensor_columns[] = {{"name", "name", UM_COLUMN_TEXT},
					      {"bytes", "size", UM_COLUMN_BYTES},
					      {"lives", "lives", UM_COLUMN_COUNT},
					      SUM_COLUMNS,
					      {"first_op", "first used by", UM_COLUMN_TEXT}};
const struct um_column um_tensor_iteration_columns[] = {{"file", "file", UM_COLUMN_TEXT},
							{"name", "name", UM_COLUMN_TEXT},
							{"pid", "pid", UM_COLUMN_COUNT},
							{"n", "n", UM_COLUMN_COUNT},
							SUM_COLUMNS};

static struct um_value number(uint64_t n)
{
	return (struct um_value){.number = n < INT64_MAX ? (int64_t)n : INT64_MAX};
}

static struct um_value sum_cell(const struct um_findings *f, const struct um_report_tensor_sums *s,
				struct um_value file, unsigned column)
{
	static const enum um_recorded first[] = {UM_RECORDED_GPU_FAULTS, UM_RECORDED_SERVING, UM_RECORDED_CPU_FAULTS};
	const uint64_t values[UM_TENSOR_SUMS] = {
		s->faults,
		s->fault_ns,
		s->cpu_faults,
		um_report_tensor_moved(s->h2d_bytes),
		s->h2d_bytes[UM_CAUSE_DEMAND] + s->h2d_bytes[UM_CAUSE_SPECULATIVE],
		s->h2d_bytes[UM_CAUSE_PREFETCH],
		um_report_tensor_moved(s->d2h_bytes),
		s->d2h_bytes[UM_CAUSE_DEMAND] + s->d2h_bytes[UM_CAUSE_SPECULATIVE],
		s->d2h_bytes[UM_CAUSE_PREFETCH],
		s->d2h_bytes[UM_CAUSE_EVICTION],
		s->evictions,
		s->d2d_bytes,
	};

	return um_table_if(f, column < 3 ? first[column] : UM_RECORDED_MIGRATIONS, file, values[column]);
}

size_t um_tensor_rows(const struct um_findings *f)
{
	return f->report->tensors.by_cost.n;
}

struct um_value um_tensor_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_tensors *t = &f->report->tensors;
	const struct um_report_tensor *x = &t->rows.at[t->by_cost.at[row]];

	switch (column) {
	case 0:
		return (struct um_value){.text = x->name};
	case 1:
		return x->lives ? number(x->bytes) : (struct um_value){.none = 1};
	case 2:
		return number(x->lives);
	case 3 + UM_TENSOR_SUMS:
		return (struct um_value){.none = !x->first_op, .text = x->first_op};
	default:
		return sum_cell(f, &x->sums, (struct um_value){.none = UM_VALUE_NONE}, column - 3);
	}
}

size_t um_tensor_iteration_rows(const struct um_findings *f)
{
	return f->report->tensors.cell_order.n;
}

struct um_value um_tensor_iteration_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report *r = f->report;
	const struct um_report_tensor_cell *c = &r->tensors.cells.at[r->tensors.cell_order.at[row]];
	const struct um_report_iteration *it = c->iteration == UM_REPORT_NONE ? NULL : &r->iterations.at[c->iteration];

	switch (column) {
	case 0:
		return um_table_iteration_file(f, c->iteration);
	case 1:
		return (struct um_value){.text = r->tensors.rows.at[c->tensor].name};
	case 2:
		return um_table_iteration_pid(f, c->iteration);
	case 3:
		return it ? number(it->n) : (struct um_value){.none = 1};
	default:
		return sum_cell(f, &c->sums, um_table_iteration_file(f, c->iteration), column - 4);
	}
}
