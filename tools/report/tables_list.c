/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of tables.
 */
#include "report/tables_rows.h"

const struct um_table *const um_tables[UM_TABLES] = {
	[UM_TABLE_FINDINGS] = &um_table_findings,
	[UM_TABLE_VERDICT] = &um_table_verdict,
	[UM_TABLE_SUMMARY] = &um_table_summary,
	[UM_TABLE_CAUSES] = &um_table_causes,
	[UM_TABLE_ITERATIONS] = &um_table_iterations,
	[UM_TABLE_RANKS] = &um_table_ranks,
	[UM_TABLE_SIDES] = &um_table_sides,
	[UM_TABLE_OPS] = &um_table_ops,
	[UM_TABLE_OP_ITERATIONS] = &um_table_op_iterations,
	[UM_TABLE_TENSORS] = &um_table_tensors,
	[UM_TABLE_TENSOR_ITERATIONS] = &um_table_tensor_iterations,
	[UM_TABLE_REASONS] = &um_table_reasons,
	[UM_TABLE_HINTS] = &um_table_hints,
	[UM_TABLE_ANNOUNCED] = &um_table_announced,
	[UM_TABLE_LIBRARY] = &um_table_library,
	[UM_TABLE_RANGES] = &um_table_ranges,
	[UM_TABLE_PROCESSES] = &um_table_processes,
	[UM_TABLE_DEVICES] = &um_table_devices,
	[UM_TABLE_MISSING] = &um_table_missing,
};
