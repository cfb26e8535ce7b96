/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_rows.h - descriptions of columns and their values: private to the tables*.c files
 *
 * Most values are members of the struct that a row shows: NUMBER, SUM and TEXT describe them. A function makes the
 * others.
 */
#ifndef UM_REPORT_TABLES_ROWS_H
#define UM_REPORT_TABLES_ROWS_H

#include "report/tables.h"

/* The iterations of all processes with one number. */
struct um_table_side {
	const struct um_report_iteration *slowest, *fastest; /* NULL: none, n is 0 */
	uint64_t slowest_ns, fastest_ns, apart_ns;
	uint64_t n; /* processes that have finished it */
};

struct um_table_row {
	const struct um_findings *f;
	size_t i;
	const void *at; /* the struct that the row shows */
	const struct um_report_iteration *iteration; /* the row's iteration, or NULL */
	const struct um_report_process *process; /* likewise */
	struct um_table_side side;
};

#define TABLE(name_, about_, columns_)                                                                                 \
	.name = (name_), .about = (about_), .columns = (columns_), .n_columns = sizeof(columns_) / sizeof *(columns_)
/* Rows in a list of the report, or of the capture. */
#define LIST(member) .list = offsetof(struct um_report, member), .row_size = sizeof *((struct um_report *)0)->member.at
#define CAPTURED(member)                                                                                               \
	.captured = 1, .list = offsetof(struct um_capture, member),                                                    \
	.row_size = sizeof *((struct um_capture *)0)->member.at
#define ORDER(member) .order = offsetof(struct um_report, member)
#define ITERATION(type, member) .iteration = 1 + offsetof(type, member)

/* A member of `type`: a number of 8 bytes, a pointer to a text, or an array of characters ("": none). */
#define MEMBER(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define TENSOR(type, member) MEMBER(type, member), .refers = UM_REFERS_TENSOR
#define OP(type, member) MEMBER(type, member), .refers = UM_REFERS_OP
/* The cell has a value if that member is not 0. */
#define WHERE(type, member) .where = 1 + offsetof(type, member)
/* `n_` members, from one on; in arrays of numbers, and of moves. */
#define SUM(type, member, n_) .at = offsetof(type, member), .size = 8, .terms = (n_), .step = 8
#define MOVES(type, sums, way, cause, n_)                                                                              \
	.at = offsetof(type, sums.moves[way][cause].bytes), .size = 8, .terms = (n_),                                  \
	.step = sizeof(struct um_report_moves)

_Static_assert(UM_CAUSE_SPECULATIVE == UM_CAUSE_DEMAND + 1, "both are summed from the first one on");

/* Columns that several tables share: the row's iteration or process. */
#define FILE_COLUMN(title_)                                                                                            \
	{                                                                                                              \
		"file", title_, UM_COLUMN_TEXT, .value = um_table_row_file                                             \
	}
#define PID_COLUMN(title_)                                                                                             \
	{                                                                                                              \
		"pid", title_, UM_COLUMN_COUNT, .value = um_table_row_pid                                              \
	}
#define ITERATION_COLUMN(key_)                                                                                         \
	{                                                                                                              \
		key_, "n", UM_COLUMN_COUNT, .value = um_table_row_iteration                                            \
	}
struct um_value um_table_row_file(const struct um_table_row *row);
struct um_value um_table_row_pid(const struct um_table_row *row);
struct um_value um_table_row_iteration(const struct um_table_row *row);

static inline struct um_value um_table_number(uint64_t n)
{
	return (struct um_value){.number = n < INT64_MAX ? (int64_t)n : INT64_MAX};
}

static inline struct um_value um_table_text(const char *s)
{
	return (struct um_value){.none = s ? UM_VALUE_THERE : UM_VALUE_NONE, .text = s};
}

static inline struct um_value um_table_none(void)
{
	return (struct um_value){.none = UM_VALUE_NONE};
}

extern const struct um_table um_table_findings, um_table_verdict, um_table_summary, um_table_causes,
	um_table_iterations, um_table_ranks, um_table_sides, um_table_ops, um_table_op_iterations, um_table_tensors,
	um_table_tensor_iterations, um_table_reasons, um_table_hints, um_table_announced, um_table_library,
	um_table_ranges, um_table_processes, um_table_devices, um_table_missing;

#endif
