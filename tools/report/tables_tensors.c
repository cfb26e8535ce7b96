/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of tensors.
 */
#include "report/tables_rows.h"

#define BYTES(type, key, title, cause, member, n)                                                                      \
	{                                                                                                              \
		key, title, UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS, SUM(type, sums.member[cause], n)                  \
	}
#define SUM_COLUMNS(type)                                                                                              \
	{"gpu_page_faults", "faults", UM_COLUMN_COUNT, UM_RECORDED_GPU_FAULTS, MEMBER(type, sums.faults)},             \
		{"fault_ns", "faulting", UM_COLUMN_NS, UM_RECORDED_SERVING, MEMBER(type, sums.fault_ns)},              \
		{"cpu_page_faults", "CPU faults", UM_COLUMN_COUNT, UM_RECORDED_CPU_FAULTS,                             \
		 MEMBER(type, sums.cpu_faults)},                                                                       \
		BYTES(type, "um_h2d_bytes", "in", 0, h2d_bytes, UM_CAUSES),                                            \
		BYTES(type, "um_h2d_demand_bytes", "in, demand", UM_CAUSE_DEMAND, h2d_bytes, 2),                       \
		BYTES(type, "um_h2d_prefetch_bytes", "in, prefetch", UM_CAUSE_PREFETCH, h2d_bytes, 1),                 \
		BYTES(type, "um_d2h_bytes", "out", 0, d2h_bytes, UM_CAUSES),                                           \
		BYTES(type, "um_d2h_demand_bytes", "out, demand", UM_CAUSE_DEMAND, d2h_bytes, 2),                      \
		BYTES(type, "um_d2h_prefetch_bytes", "out, prefetch", UM_CAUSE_PREFETCH, d2h_bytes, 1),                \
		BYTES(type, "um_d2h_eviction_bytes", "out, eviction", UM_CAUSE_EVICTION, d2h_bytes, 1),                \
		{"evictions", "evictions", UM_COLUMN_COUNT, UM_RECORDED_MIGRATIONS, MEMBER(type, sums.evictions)},     \
	{                                                                                                              \
		"um_d2d_bytes", "across", UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS, MEMBER(type, sums.d2d_bytes)        \
	}

#define T struct um_report_tensor
static const struct um_column tensor_columns[] = {
	{"name", "name", UM_COLUMN_TEXT, 0, MEMBER(T, name)},
	{"bytes", "size", UM_COLUMN_BYTES, 0, MEMBER(T, bytes), WHERE(T, lives)},
	{"lives", "lives", UM_COLUMN_COUNT, 0, MEMBER(T, lives)},
	SUM_COLUMNS(T),
	{"first_op", "first used by", UM_COLUMN_TEXT, 0, MEMBER(T, first_op)},
};
#undef T

const struct um_table um_table_tensors = {TABLE("tensors", "tensors, longest fault time first", tensor_columns),
					  LIST(tensors.rows), ORDER(tensors.by_cost)};

static const struct um_column cell_columns[] = {
	FILE_COLUMN("file"),
	{"name", "name", UM_COLUMN_TEXT, 0, TENSOR(struct um_report_tensor_cell, tensor)},
	PID_COLUMN("pid"),
	ITERATION_COLUMN("n"),
	SUM_COLUMNS(struct um_report_tensor_cell),
};

const struct um_table um_table_tensor_iterations = {TABLE("tensor-iterations", "tensors by iteration", cell_columns),
						    LIST(tensors.cells), ORDER(tensors.cell_order),
						    ITERATION(struct um_report_tensor_cell, iteration)};
