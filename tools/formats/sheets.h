/* SPDX-License-Identifier: Apache-2.0
 *
 * sheets.h - reads a report in JSON ("umreport/1": doc/report.md) as tables by name
 *
 * in    the text of one document
 * out   its tables: columns by key, a value for each row and column; a single object ("summary") is a table of one row
 * owns  all of it
 *
 * Keys without a table, and lists and objects in a row, are ignored, so later versions may add them.
 */
#ifndef UM_FORMATS_SHEETS_H
#define UM_FORMATS_SHEETS_H

#include "base/diag.h"
#include "base/vec.h"
#include "io/arena.h"

#define UM_SHEETS_SCHEMA "umreport/1"

struct um_sheet_value {
	enum { UM_SHEET_NONE, UM_SHEET_TEXT, UM_SHEET_NUMBER } kind;
	const char *text;
	double number;
};

struct um_sheet {
	const char *name; /* as in the document */
	const char **columns; /* of the first row */
	size_t n_columns, n_rows;
	struct um_sheet_value *cells; /* row by row */
};

struct um_sheets {
	UM_VEC(struct um_sheet) tables;
	struct um_arena arena;
};

/* Does the file begin like such a document? */
int um_sheets_is(const char *path);

/* Reads a file, or a text. 0; -EINVAL with `diag` set (whose file name the caller sets for a text), or -ENOMEM. End it
 * in every case. */
int um_sheets_read(struct um_sheets *s, const char *path, struct um_diag *diag);
int um_sheets_parse(struct um_sheets *s, const char *text, size_t bytes, struct um_diag *diag);
void um_sheets_fini(struct um_sheets *s);

/* NULL or -1: none. */
const struct um_sheet *um_sheets_find(const struct um_sheets *s, const char *name);
int um_sheet_column(const struct um_sheet *t, const char *key);

static inline const struct um_sheet_value *um_sheet_at(const struct um_sheet *t, size_t row, size_t column)
{
	return &t->cells[row * t->n_columns + column];
}

#endif
