/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_rows.h - the rows of one table of an export, as activities, a few hundred at a time
 *
 * in    a file that is open, a table, and who makes an activity of a row
 * out   batches; what is in one stays until the next one of the table is asked for
 * owns  its statement, its batches, and for a large table a thread with a connection of its own, which reads ahead
 *
 * Private to the nsys_* files. Rows are taken by a function of SQL, so that SQLite need not return for each of them.
 * Threads: one asks. Where there is no memory for another or for a connection, it reads as well.
 */
#ifndef UM_FORMATS_NSYS_ROWS_H
#define UM_FORMATS_NSYS_ROWS_H

#include <pthread.h>

#include "formats/nsys_file.h"
#include "model/activity.h"

#define UM_NSYS_BATCH 512u
#define UM_NSYS_BATCHES 4u

/* A row that is being looked at. Its texts stay as long as its batch. */
struct um_nsys_row {
	sqlite3_value **values;
	struct um_nsys_file *file;
	struct um_nsys_room *room;
};

struct um_nsys_batch {
	struct um_activity at[UM_NSYS_BATCH];
	unsigned n;
	uint64_t rows; /* looked at */
	int end; /* behind these: 0 there may be more, 1 nothing, -EAGAIN what is not in order of time, or -errno */
	struct um_nsys_room room;
};

struct um_nsys_rows {
	enum um_nsys_id id;
	/* A row as an activity: 1; 0: it is none. Called on the thread that reads. */
	int (*activity_of)(const void *user, enum um_nsys_id id, const struct um_nsys_row *row, struct um_activity *a);
	const void *user; /* borrowed */
	int sort; /* the table was found to be in no order */

	struct um_nsys_file own, *file; /* `file` is `own`, or the one that was given */
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

/* Begins, with the fields above the empty line set and the others 0. `columns` as for um_nsys_file_select. 0 or -errno,
 * with the diag of `file` set. Close it in every case. */
int um_nsys_rows_open(struct um_nsys_rows *x, struct um_nsys_file *file, const char *path, const char *const *columns,
		      int threaded);
void um_nsys_rows_close(struct um_nsys_rows *x);

/* The next batch; not after one that says it is the last. A failure is in the diag of the file that was given. */
const struct um_nsys_batch *um_nsys_rows_next(struct um_nsys_rows *x, struct um_diag *diag);

#endif
