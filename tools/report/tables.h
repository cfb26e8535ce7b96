/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h - a report as tables: one definition of rows and columns for all output forms
 *
 * in    a finished report, and properties of the recording
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
	UM_COLUMN_NS, /* duration; its key ends in _ns */
	UM_COLUMN_AT /* point in time, ns, may be negative */
};

enum um_value_state {
	UM_VALUE_THERE,
	UM_VALUE_NONE, /* not applicable */
	UM_VALUE_NOT_RECORDED /* not recorded, or unknown whether it was recorded */
};

struct um_value {
	int none; /* enum um_value_state: 0, or why there is no value */
	const char *text; /* UM_COLUMN_TEXT */
	int64_t number; /* the others; larger values are cut there */
};

/* The run's time compared with the lower bound. */
struct um_verdict {
	char device[64];
	uint64_t budget_bytes; /* inputs of the plan */
	uint64_t iteration_ns; /* mean of the later half of the run */
	uint64_t plan_ns, bound_ns; /* of an iteration: planned by the library; lower bound of any plan */
};

/* Inputs of the tables. */
struct um_findings {
	const struct um_report *report;
	const struct um_capture *capture;
	const struct um_verdict *verdict; /* or NULL */
};

/* Kinds of counted events. */
enum um_recorded {
	UM_RECORDED_ALWAYS,
	UM_RECORDED_GPU_FAULTS,
	UM_RECORDED_SERVING, /* kernel time while faults were served, and evictions for them */
	UM_RECORDED_CPU_FAULTS,
	UM_RECORDED_MIGRATIONS,
	UM_RECORDED_WAITS, /* for prefetches */
	UM_RECORDED_COPIES, /* of the program */
	UM_RECORDED_KERNELS,
	UM_RECORDED_ALLOCATIONS,
	UM_RECORDED_KINDS
};

/* The table that a 4-byte member is a row number of; UM_REPORT_NONE: no row. */
enum um_refers { UM_REFERS_NOT, UM_REFERS_TENSOR, UM_REFERS_OP };

struct um_table_row;

/* Description of a column for all output forms. */
struct um_column {
	const char *key; /* with its unit: in CSV and JSON */
	const char *title; /* without its unit, which the output form adds */
	enum um_column_kind kind;
	enum um_recorded counts; /* events that the value counts */
	/* Place of the value: `size` bytes at offset `at` of the row's struct; a sum of `terms`, `step` bytes apart. */
	size_t at, size, step;
	unsigned terms;
	enum um_refers refers;
	/* The cell has a value if the number at `where` - 1 is not 0 and `applies` returns so. 0, NULL: always. */
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
	size_t iteration; /* 1 + offset of the row's iteration; 0: none */
	size_t (*count)(const struct um_findings *f); /* instead of `list`: how many rows */
	void (*find)(struct um_table_row *row); /* completes `row->i`; without `list`, finds the row */
};

enum um_table_id {
	UM_TABLE_FINDINGS,
	UM_TABLE_VERDICT,
	UM_TABLE_SUMMARY,
	UM_TABLE_CAUSES,
	UM_TABLE_ITERATIONS,
	UM_TABLE_RANKS,
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

/* In a report of several files the first column of some tables is the file; otherwise it is not shown. */
int um_column_shown(const struct um_findings *f, const struct um_column *column);

/* The process id, and the process's file. */
struct um_value um_table_pid(const struct um_findings *f, uint64_t process);
struct um_value um_table_file(const struct um_findings *f, uint64_t process);

/* Properties of the process in the recording, or NULL. */
const struct um_capture_process *um_table_process(const struct um_findings *f, uint64_t process);

/* Was it recorded? In a report of several files: in `file`; NULL: in any of them. */
int um_table_recorded(const struct um_findings *f, enum um_recorded what, const char *file);

/* `n`, or UM_VALUE_NOT_RECORDED. `file`: as um_table_file answers. */
struct um_value um_table_if(const struct um_findings *f, enum um_recorded what, struct um_value file, uint64_t n);

/* Why a table is missing: "not recorded", "none happened", "unknown" (one of the two). */
const char *um_absence_word(enum um_absence_state state);

#endif
