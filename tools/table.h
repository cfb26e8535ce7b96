/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h - tables and sentences for a terminal: at most 100 columns wide
 *
 * in    cells, row by row; sentences
 * out   columns as wide as their cells, without those that are empty. Where a table is too wide, titles take several
 *       lines, then texts are shortened in the middle, then the table goes on below with its first columns repeated
 */
#ifndef UM_TOOLS_TABLE_H
#define UM_TOOLS_TABLE_H

#include "base/vec.h"

#include <stdio.h>

#define TABLE_WIDTH 100
#define TABLE_COLUMNS 24

struct table_column {
	const char *title;
	int left; /* text, which may be shortened */
	int keep; /* shown even if all of it is empty: "", "-" or 0 */
};

struct table {
	const struct table_column *columns;
	unsigned n; /* columns, TABLE_COLUMNS at most */
	unsigned indent; /* of each line */
	int no_titles;
	int err; /* a cell could not be kept */
	UM_VEC(char *) cells; /* owned */
};

/* The next cell; after the last column's the next row begins. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The rest of the row is empty. */
void table_end_row(struct table *t);

/* Writes the collected rows and clears them. 0 or -ENOMEM. */
int table_write(struct table *t, FILE *to);

/* Shortens a text to at most so many characters (5 at least): "convolut...weight". Returns `s`. */
char *table_shorten(char *s, size_t most);

/* Writes a text of words, then a newline; lines after the first begin with `indent` blanks. `column`: where it begins.
 * A word that is longer than a line is shortened. */
void table_wrap(FILE *to, size_t column, size_t indent, const char *text);
void table_wrapf(FILE *to, size_t column, size_t indent, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
