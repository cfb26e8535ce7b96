/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h - a table for a terminal: columns as wide as what is in them, and those that are empty left out
 *
 * in    cells, row by row
 * out   lines of at most 100 columns, as long as the cells allow it
 */
#ifndef UM_TOOLS_TABLE_H
#define UM_TOOLS_TABLE_H

#include "base/vec.h"

#include <stdio.h>

#define TABLE_COLUMNS 16

struct table_column {
	const char *title;
	int left; /* a text */
	int keep; /* even where all of it is empty: "", "-" or 0 */
};

struct table {
	const struct table_column *columns;
	unsigned n; /* columns, TABLE_COLUMNS at most */
	int err; /* a cell could not be kept */
	UM_VEC(char *) cells; /* owned */
};

/* The next cell; after the last column's the next row begins. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The rest of the row is empty. */
void table_end_row(struct table *t);

/* Writes what was collected and begins anew. 0 or -ENOMEM. */
int table_write(struct table *t, FILE *to);

#endif
