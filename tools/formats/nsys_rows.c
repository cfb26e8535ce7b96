/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/nsys_rows.h"

#include <stdio.h>

#define FUNCTION "um_row_%d" /* one per table: several may share a connection */
#define TEXTS_MAX (1u << 20) /* bytes of texts in a batch: more end it */
#define TIME_MAX (INT64_MAX / 4) /* ns, some 70 years: differences of two are numbers, too */

/* --- rows --------------------------------------------------------------------------------------------------------- */

static int possible(const struct um_activity *a)
{
	return a->begin >= -TIME_MAX && a->begin <= TIME_MAX && a->end >= -TIME_MAX && a->end <= TIME_MAX &&
	       (a->kind != UM_ACT_MIGRATION || a->bytes <= UM_RANGE_MAX);
}

/* Adds a row. Does the batch end with it? */
static int take(struct um_nsys_rows *x, sqlite3_value **values)
{
	struct um_nsys_batch *b = x->filling;
	const struct um_nsys_row row = {values, x->file, &b->room};
	struct um_activity *a = &b->at[b->n];

	b->rows++;
	if (++x->rows > x->file->rows_max) {
		b->end = um_diag_set(x->file->diag, EINVAL, 0,
				     "damaged: table %s has more rows than the file has room for",
				     um_nsys_tables[x->id].name);
		return 1;
	}
	if (x->activity_of(x->user, x->id, &row, a)) {
		if (!possible(a)) {
			b->end = um_diag_set(x->file->diag, EINVAL, 0,
					     "damaged: table %s, row %llu: %llu bytes from %lld to %lld ns",
					     um_nsys_tables[x->id].name, (unsigned long long)x->rows,
					     (unsigned long long)a->bytes, (long long)a->begin, (long long)a->end);
			return 1;
		}
		if (a->begin < x->last) {
			b->end = x->sort ? um_diag_set(x->file->diag, EINVAL, 0, "damaged: table %s cannot be sorted",
						       um_nsys_tables[x->id].name)
					 : -EAGAIN;
			return 1;
		}
		x->last = a->begin;
		b->n++;
	}
	return b->n == UM_NSYS_BATCH || b->rows == 8 * UM_NSYS_BATCH || b->room.bytes > TEXTS_MAX || x->file->err;
}

static void on_row(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	sqlite3_result_int(context, take(sqlite3_user_data(context), values));
}

static void fill(struct um_nsys_rows *x, struct um_nsys_batch *b)
{
	int got;

	um_nsys_room_fini(&b->room);
	b->n = 0;
	b->rows = 0;
	b->end = 0;
	x->filling = b;
	got = um_nsys_file_step(x->file, x->s);
	if (!b->end)
		b->end = got < 0	? got
			 : x->file->err ? um_diag_set(x->file->diag, -x->file->err, 0, "no memory")
					: !got;
}

/* --- a thread that reads ahead ------------------------------------------------------------------------------------ */

static void *read_ahead(void *arg)
{
	struct um_nsys_rows *x = arg;
	int over = 0;

	pthread_mutex_lock(&x->lock);
	while (!over) {
		struct um_nsys_batch *b = &x->ring[x->filled % UM_NSYS_BATCHES];

		while (!x->stop && x->filled - x->released >= UM_NSYS_BATCHES)
			pthread_cond_wait(&x->changed, &x->lock);
		if (x->stop)
			break;
		pthread_mutex_unlock(&x->lock);
		fill(x, b);
		over = b->end;
		pthread_mutex_lock(&x->lock);
		x->filled++;
		pthread_cond_signal(&x->changed);
	}
	pthread_mutex_unlock(&x->lock);
	return NULL;
}

static void thread_start(struct um_nsys_rows *x)
{
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->changed, NULL);
	x->threaded = pthread_create(&x->thread, NULL, read_ahead, x) == 0;
	if (x->threaded)
		return;
	pthread_cond_destroy(&x->changed);
	pthread_mutex_destroy(&x->lock);
}

static void thread_end(struct um_nsys_rows *x)
{
	pthread_mutex_lock(&x->lock);
	x->stop = 1;
	pthread_cond_signal(&x->changed);
	pthread_mutex_unlock(&x->lock);
	pthread_join(x->thread, NULL);
	pthread_cond_destroy(&x->changed);
	pthread_mutex_destroy(&x->lock);
	x->threaded = 0;
}

/* --- the outside -------------------------------------------------------------------------------------------------- */

/* "SELECT 1 FROM (SELECT the columns AS c0, c1, ...) WHERE the function of them". The limit -1 makes SQLite sort before
 * the call. */
static int prepare(struct um_nsys_rows *x, const char *const *columns)
{
	char name[32], condition[256];
	size_t n;
	int code;

	snprintf(name, sizeof name, FUNCTION, (int)x->id);
	n = (size_t)snprintf(condition, sizeof condition, "%s(", name);
	for (int i = 0; columns[i]; i++)
		n += (size_t)snprintf(condition + n, sizeof condition - n, i ? ", c%d" : "c%d", i);
	snprintf(condition + n, sizeof condition - n, ")");
	code = sqlite3_create_function_v2(x->file->db, name, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, x, on_row, NULL, NULL,
					  NULL);
	if (code != SQLITE_OK)
		return um_nsys_file_error(x->file, code);
	return um_nsys_file_select_where(x->file, um_nsys_tables[x->id].name, columns,
					 x->sort ? "ORDER BY start LIMIT -1" : "", condition, &x->s);
}

/* A connection, and with it a thread, for this table alone. */
static int open_own(struct um_nsys_rows *x, const char *path, const char *const *columns)
{
	int err;

	um_diag_init(&x->diag, path);
	x->file = &x->own;
	err = um_nsys_file_open(&x->own, path, &x->diag);
	if (!err)
		err = prepare(x, columns);
	if (!err)
		thread_start(x);
	return err;
}

int um_nsys_rows_open(struct um_nsys_rows *x, struct um_nsys_file *file, const char *path, const char *const *columns,
		      int threaded)
{
	x->last = INT64_MIN;
	x->ring = calloc(UM_NSYS_BATCHES, sizeof *x->ring);
	if (!x->ring)
		return um_diag_set(file->diag, ENOMEM, 0, "no memory");
	if (threaded && open_own(x, path, columns) == 0)
		return 0;
	um_nsys_file_close(&x->own);
	x->file = file;
	return prepare(x, columns);
}

void um_nsys_rows_close(struct um_nsys_rows *x)
{
	if (x->threaded)
		thread_end(x);
	sqlite3_finalize(x->s);
	x->s = NULL;
	um_nsys_file_close(&x->own);
	for (unsigned i = 0; x->ring && i < UM_NSYS_BATCHES; i++)
		um_nsys_room_fini(&x->ring[i].room);
	free(x->ring);
	x->ring = NULL;
}

const struct um_nsys_batch *um_nsys_rows_next(struct um_nsys_rows *x, struct um_diag *diag)
{
	struct um_nsys_batch *b = &x->ring[x->threaded ? x->asked % UM_NSYS_BATCHES : 0];

	if (!x->threaded) {
		fill(x, b);
	} else {
		pthread_mutex_lock(&x->lock);
		x->released = x->asked;
		pthread_cond_signal(&x->changed);
		while (x->filled == x->asked)
			pthread_cond_wait(&x->changed, &x->lock);
		pthread_mutex_unlock(&x->lock);
	}
	x->asked++;
	if (b->end < 0 && b->end != -EAGAIN && x->file == &x->own)
		um_diag_set(diag, -b->end, 0, "%s", x->diag.text);
	return b;
}
