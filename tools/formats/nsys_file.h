/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_file.h - an export, open for reading: its tables and columns, its description, its strings
 *
 * Private to the nsys_* files. The content is not trusted: views and virtual tables count as absent, nothing is
 * written, nothing is mapped, and no table may have more rows than fit into the file.
 */
#ifndef UM_FORMATS_NSYS_FILE_H
#define UM_FORMATS_NSYS_FILE_H

#include <sqlite3.h>

#include "base/diag.h"
#include "io/arena.h"
#include "formats/nsys_schema.h"
#include "model/capture.h"

#define UM_NSYS_COLUMNS 16 /* largest number of columns read from a table */
#define UM_NSYS_STRINGS 131072u /* a power of two */

struct um_nsys_string {
	int64_t id;
	const char *text; /* in `names`; NULL: free slot */
};

/* Copies of texts, freed all at once. */
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
	struct um_nsys_string *strings; /* cached strings, at most half of UM_NSYS_STRINGS; open addressing */
	size_t n_strings;
	struct um_nsys_room names;
	int err; /* -ENOMEM after a text without memory */
};

/* 0; -EINVAL: refused; -ENOMEM; explained by the diag. Close it in every case. */
int um_nsys_file_open(struct um_nsys_file *f, const char *path, struct um_diag *diag);
void um_nsys_file_close(struct um_nsys_file *f);

/* Reads the file's description, without rows. 0 or as above. */
int um_nsys_file_capture(struct um_nsys_file *f, struct um_capture *c);

/* A statement that selects the columns of the list, in order, with NULL for missing ones. A column that begins with '!'
 * is required. 0 or as above. */
int um_nsys_file_select(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
			sqlite3_stmt **out);

/* Selects 1 for rows that meet a condition on the columns c0, c1, ... */
int um_nsys_file_select_where(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
			      const char *condition, sqlite3_stmt **out);

int um_nsys_file_has(struct um_nsys_file *f, const char *table); /* 1, 0, or as above */

/* Upper limit of a table's rows, from their numbers; 0: unknown. */
uint64_t um_nsys_file_rows(struct um_nsys_file *f, const char *table);

/* A row: 1, the end: 0, or as above. */
int um_nsys_file_step(struct um_nsys_file *f, sqlite3_stmt *s);

/* A text value, or a text by its number in StringIds; NULL: none, or f->err is set. Valid as long as the arena or the
 * file. */
const char *um_nsys_file_text(struct um_nsys_file *f, sqlite3_value *v, struct um_nsys_room *room);
const char *um_nsys_file_string(struct um_nsys_file *f, int64_t id, struct um_nsys_room *room);

/* A copy of a text; NULL: f->err is set. */
const char *um_nsys_file_keep(struct um_nsys_file *f, const char *text, struct um_nsys_room *room);
void um_nsys_room_fini(struct um_nsys_room *room);

/* SQLite's error in one line. */
int um_nsys_file_error(struct um_nsys_file *f, int code);

#endif
