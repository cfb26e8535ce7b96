/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_file.h - an export, open for reading: which tables and columns it has, what it says of itself, its strings
 *
 * Private to the nsys_* files. What is in the file is not trusted: views and virtual tables count as absent, nothing
 * is written, nothing is mapped, and no table has more rows than the file has room for.
 */
#ifndef UM_FORMATS_NSYS_FILE_H
#define UM_FORMATS_NSYS_FILE_H

#include <sqlite3.h>

#include "base/diag.h"
#include "io/arena.h"
#include "formats/nsys_schema.h"
#include "model/capture.h"

#define UM_NSYS_COLUMNS 16 /* of a table that are read, at most */
#define UM_NSYS_STRINGS 131072u /* a power of two */

struct um_nsys_string {
	int64_t id;
	const char *text; /* in `names`; NULL: a free place */
};

/* Copies of texts, given back all at once. */
struct um_nsys_room {
	struct um_arena arena;
	size_t bytes;
};

struct um_nsys_file {
	sqlite3 *db;
	uint64_t rows_max; /* of a table */
	struct um_diag *diag; /* borrowed */
	int has[UM_NSYS_TABLES];
	sqlite3_stmt *find_string; /* NULL: the file has none */
	struct um_nsys_string *strings; /* met so far, at most half of UM_NSYS_STRINGS; open addressing */
	size_t n_strings;
	struct um_nsys_room names;
	int err; /* a text that there was no memory for: -ENOMEM */
};

/* 0; -EINVAL: refused; -ENOMEM. What is wrong is in the diag. Close it in every case. */
int um_nsys_file_open(struct um_nsys_file *f, const char *path, struct um_diag *diag);
void um_nsys_file_close(struct um_nsys_file *f);

/* What the file says of itself, but for rows. 0 or as above. */
int um_nsys_file_capture(struct um_nsys_file *f, struct um_capture *c);

/* A statement that selects the columns of the list, in its order, with NULL for those that the table lacks. One that
 * begins with '!' must be there. 0 or as above. */
int um_nsys_file_select(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
			sqlite3_stmt **out);

/* Of rows that meet a condition on the columns, which are called c0, c1, ... there. Nothing but 1 is selected. */
int um_nsys_file_select_where(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
			      const char *condition, sqlite3_stmt **out);

int um_nsys_file_has(struct um_nsys_file *f, const char *table); /* 1, 0, or as above */

/* How many rows a table has at most, as far as their numbers tell; 0: they do not. */
uint64_t um_nsys_file_rows(struct um_nsys_file *f, const char *table);

/* A row: 1, the end: 0, or as above. */
int um_nsys_file_step(struct um_nsys_file *f, sqlite3_stmt *s);

/* A value that is a text, or its number in StringIds; NULL: none, or f->err is set. It stays as long as the room, or as
 * the file. */
const char *um_nsys_file_text(struct um_nsys_file *f, sqlite3_value *v, struct um_nsys_room *room);
const char *um_nsys_file_string(struct um_nsys_file *f, int64_t id, struct um_nsys_room *room);

/* A copy of a text; NULL: f->err is set. */
const char *um_nsys_file_keep(struct um_nsys_file *f, const char *text, struct um_nsys_room *room);
void um_nsys_room_fini(struct um_nsys_room *room);

/* What SQLite said, in a line. */
int um_nsys_file_error(struct um_nsys_file *f, int code);

#endif
