/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h - a report as tables: one definition of rows and columns for every form that shows them
 *
 * in    a finished report, and what the recording says of itself
 * out   for each table its columns and the value of each cell
 * owns  nothing: texts are borrowed from the report
 *
 * Keys are a contract (doc/report.md): columns are added, never changed.
 */
#ifndef UM_REPORT_TABLES_H
#define UM_REPORT_TABLES_H

#include "report/report.h"

enum um_column_kind {
	UM_COLUMN_TEXT,
	UM_COLUMN_COUNT,
	UM_COLUMN_BYTES,
	UM_COLUMN_NS, /* how long; its key ends in _ns */
	UM_COLUMN_AT /* ns: when, may be negative */
};

enum um_value_state {
	UM_VALUE_THERE,
	UM_VALUE_NONE, /* it does not apply here */
	UM_VALUE_NOT_RECORDED /* what it counts was not recorded, or the recording does not say whether it was */
};

struct um_value {
	int none; /* enum um_value_state: 0, or why there is none */
	const char *text; /* UM_COLUMN_TEXT */
	int64_t number; /* the others; what is larger is cut there */
};

/* How far the run is from what can be had. */
struct um_verdict {
	char device[64];
	uint64_t budget_bytes; /* that were planned with */
	uint64_t iteration_ns; /* of the later half of the run */
	uint64_t plan_ns, bound_ns; /* of an iteration: as the library plans it; that no plan can beat */
};

/* What a report is made of. */
struct um_findings {
	const struct um_report *report;
	const struct um_capture *capture;
	const struct um_verdict *verdict; /* or NULL */
};

/* What values count. */
enum um_recorded {
	UM_RECORDED_ALWAYS,
	UM_RECORDED_GPU_FAULTS,
	UM_RECORDED_SERVING, /* kernels' time in which faults were served, and what was evicted for them */
	UM_RECORDED_CPU_FAULTS,
	UM_RECORDED_MIGRATIONS,
	UM_RECORDED_WAITS, /* for prefetches */
	UM_RECORDED_COPIES, /* of the program */
	UM_RECORDED_KERNELS,
	UM_RECORDED_ALLOCATIONS,
	UM_RECORDED_KINDS
};

/* What a member of 4 bytes is the row of; UM_REPORT_NONE: of none. */
enum um_refers { UM_REFERS_NOT, UM_REFERS_TENSOR, UM_REFERS_OP };

struct um_table_row;

/* All that is known of a column: the forms that show a table read it here. */
struct um_column {
	const char *key; /* with its unit: in CSV and JSON */
	const char *title; /* without: whoever shows it adds the unit that it shows */
	enum um_column_kind kind;
	enum um_recorded counts; /* events that the value is a count of */
	/* Where the value is: `size` bytes, `at` so many in the row's struct; a sum of `terms`, `step` bytes apart. */
	size_t at, size, step;
	unsigned terms;
	enum um_refers refers;
	/* There is a value where the number at `where` - 1 is not 0, and `applies` says so. 0, NULL: always. */
	size_t where;
	int (*applies)(const struct um_table_row *row);
	struct um_value (*value)(const struct um_table_row *row); /* instead of `at`, or NULL */
};

struct um_table {
	const char *name;
	const char *about; /* one line */
	const struct um_column *columns;
	unsigned n_columns;
	int single; /* one row: shown as a list of keys and values */
	/* The rows are a UM_VEC of structs, so many bytes in the report or, `captured`, in the capture; in the order of
	 * a UM_VEC(uint32_t) of rows in the report. 0: in their own. */
	size_t list, row_size, order;
	int captured;
	size_t iteration; /* 1 + where the struct says of which iteration it is; 0: nowhere */
	size_t (*count)(const struct um_findings *f); /* instead of `list`: how many rows */
	void (*find)(struct um_table_row *row); /* what else is known of `row->i`: without `list`, where it is */
};

enum um_table_id {
	UM_TABLE_FINDINGS,
	UM_TABLE_VERDICT,
	UM_TABLE_SUMMARY,
	UM_TABLE_CAUSES,
	UM_TABLE_ITERATIONS,
	UM_TABLE_SIDES,
	UM_TABLE_OPS,
	UM_TABLE_OP_ITERATIONS,
	UM_TABLE_TENSORS,
	UM_TABLE_TENSOR_ITERATIONS,
	UM_TABLE_REASONS,
	UM_TABLE_HINTS,
	UM_TABLE_ANNOUNCED,
	UM_TABLE_LIBRARY,
	UM_TABLE_RANGES,
	UM_TABLE_PROCESSES,
	UM_TABLE_DEVICES,
	UM_TABLE_MISSING,
	UM_TABLES
};

extern const struct um_table *const um_tables[UM_TABLES];

size_t um_table_rows(const struct um_table *t, const struct um_findings *f);

/* The value of a cell. Costs what finding the row costs: iterations side by side, as many steps as there are processes;
 * causes, as there are causes; else none. */
struct um_value um_table_cell(const struct um_table *t, const struct um_findings *f, size_t row, unsigned column);

/* Where several files are one report, the first column of some tables is the file; else it is not shown. */
int um_column_shown(const struct um_findings *f, const struct um_column *column);

/* The number that the system gave the process, and the file that it is in. */
struct um_value um_table_pid(const struct um_findings *f, uint64_t process);
struct um_value um_table_file(const struct um_findings *f, uint64_t process);

/* What the recording says of the process, or NULL. */
const struct um_capture_process *um_table_process(const struct um_findings *f, uint64_t process);

/* Was it recorded? Of several files: in `file`; NULL: in any of them. */
int um_table_recorded(const struct um_findings *f, enum um_recorded what, const char *file);

/* `n`, or UM_VALUE_NOT_RECORDED. `file`: as um_table_file answers. */
struct um_value um_table_if(const struct um_findings *f, enum um_recorded what, struct um_value file, uint64_t n);

/* Why a table is missing: "not recorded", "none happened", "unknown" (one of the two). */
const char *um_absence_word(enum um_absence_state state);

#endif
