/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_rows.h - the rows of one table of an export, as activities, a few hundred at a time
 *
 * in    an open file, a table, and a function that converts rows to activities
 * out   batches, each valid until the next one of the table
 * owns  its statement, its batches, and for a large table a thread with its own connection, which reads ahead
 *
 * Private to the nsys_* files. Rows are taken by a function of SQL, so that SQLite need not return for each of them.
 * Threads: one caller. Without memory for a thread or a connection, the caller reads.
 */
#ifndef UM_FORMATS_NSYS_ROWS_H
#define UM_FORMATS_NSYS_ROWS_H

#include <pthread.h>

#include "formats/nsys_file.h"
#include "model/activity.h"

#define UM_NSYS_BATCH 512u
#define UM_NSYS_BATCHES 4u

/* The current row. Its texts are valid as long as its batch. */
struct um_nsys_row {
	sqlite3_value **values;
	struct um_nsys_file *file;
	struct um_nsys_room *room;
};

struct um_nsys_batch {
	struct um_activity at[UM_NSYS_BATCH];
	unsigned n;
	uint64_t rows; /* looked at */
	int end; /* after these: 0 perhaps more, 1 end, -EAGAIN rows out of order, or -errno */
	struct um_nsys_room room;
};

struct um_nsys_rows {
	enum um_nsys_id id;
	/* Converts a row to an activity: 1; 0: none. Called on the reading thread. */
	int (*activity_of)(const void *user, enum um_nsys_id id, const struct um_nsys_row *row, struct um_activity *a);
	const void *user; /* borrowed */
	int sort; /* the table was found to be out of order */

	struct um_nsys_file own, *file; /* `file` is `own` or the caller's */
	struct um_diag diag; /* of `own` */
	sqlite3_stmt *s;
	struct um_nsys_batch *ring, *filling; /* UM_NSYS_BATCHES; one of them */
	uint64_t rows; /* looked at */
	int64_t last; /* ns: `begin` of the last activity */
	uint64_t asked; /* for so many batches */

	int threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* of what is below */
	pthread_cond_t changed;
	uint64_t filled, released; /* batches; no more than UM_NSYS_BATCHES between them */
	int stop;
};

/* Begins; the fields above the empty line are set, the others 0. `columns` as for um_nsys_file_select. 0 or -errno,
 * with the diag of `file` set. Close it in every case. */
int um_nsys_rows_open(struct um_nsys_rows *x, struct um_nsys_file *file, const char *path, const char *const *columns,
		      int threaded);
void um_nsys_rows_close(struct um_nsys_rows *x);

/* The next batch; not to be called after the last one. Failures are in the diag of the caller's file. */
const struct um_nsys_batch *um_nsys_rows_next(struct um_nsys_rows *x, struct um_diag *diag);

#endif
