/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows are collected in temporary tables, which SQLite keeps in a file if they are large, and copied in order of time
 * at the end, because a simulation produces events out of order. As in nsys, tables without rows are not created.
 *
 * SQLite needs a path: that of a scratch file, which is removed as soon as SQLite has opened it. The finished database
 * is copied to the output.
 */
#include "formats/nsys.h"

#include "io/nsys_mark.h"
#include "formats/nsys_schema.h"
#include "io/out.h"
#include "io/target.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK (64u << 10)

struct um_nsys_writer {
	struct um_activity_sink sink; /* first */
	sqlite3 *db;
	char *path;
	int scratch; /* the database's unlinked file; -1: none */
	struct um_out *out;
	sqlite3_stmt *insert[UM_NSYS_TABLES], *name_add, *name_find;
	uint64_t rows[UM_NSYS_TABLES];
	int64_t end; /* ns: time of the last event */
	UM_VEC(char *) domains; /* numbered from 1 */
	struct um_profile device;
	int err; /* the first failure: -errno */
};

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	default:
		return -EIO;
	}
}

static void failed(struct um_nsys_writer *w, int err)
{
	if (!w->err)
		w->err = err;
}

static void run(struct um_nsys_writer *w, const char *sql)
{
	int code = w->err ? SQLITE_OK : sqlite3_exec(w->db, sql, NULL, NULL, NULL);

	if (code != SQLITE_OK)
		failed(w, errno_of(code));
}

static void __attribute__((format(printf, 2, 3))) run_f(struct um_nsys_writer *w, const char *fmt, ...)
{
	va_list ap;
	char *sql;

	va_start(ap, fmt);
	sql = sqlite3_vmprintf(fmt, ap);
	va_end(ap);
	if (sql)
		run(w, sql);
	else
		failed(w, -ENOMEM);
	sqlite3_free(sql);
}

static sqlite3_stmt *prepare(struct um_nsys_writer *w, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int code = w->err ? SQLITE_OK : sqlite3_prepare_v2(w->db, sql, -1, &s, NULL);

	if (code != SQLITE_OK)
		failed(w, errno_of(code));
	return s;
}

/* "INSERT INTO temp.T (set, fixed) VALUES (?, ..., values)" */
static void prepare_insert(struct um_nsys_writer *w, enum um_nsys_id id)
{
	const struct um_nsys_table *t = &um_nsys_tables[id];
	char marks[64] = "?", *sql;
	size_t n = 1;

	for (const char *c = t->set; *c; c++)
		if (*c == ',') {
			memcpy(marks + n, ", ?", 4);
			n += 3;
		}
	run_f(w, "CREATE TABLE temp.%s (%s)", t->name, t->columns);
	sql = sqlite3_mprintf("INSERT INTO temp.%s (%s%s%s) VALUES (%s%s%s)", t->name, t->set, *t->fixed ? ", " : "",
			      t->fixed, marks, *t->fixed ? ", " : "", t->values);
	if (sql)
		w->insert[id] = prepare(w, sql);
	else
		failed(w, -ENOMEM);
	sqlite3_free(sql);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void step(struct um_nsys_writer *w, sqlite3_stmt *s)
{
	int code = sqlite3_step(s);

	if (code != SQLITE_DONE && code != SQLITE_ROW)
		failed(w, errno_of(code));
}

/* The number of a text, assigned at its first use. */
static int64_t name_id(struct um_nsys_writer *w, const char *text)
{
	int64_t id = 0;

	if (w->err)
		return 0;
	for (int turn = 0; turn < 2 && !id && !w->err; turn++) {
		sqlite3_bind_text(w->name_find, 1, text, -1, SQLITE_STATIC);
		if (sqlite3_step(w->name_find) == SQLITE_ROW)
			id = sqlite3_column_int64(w->name_find, 0);
		sqlite3_reset(w->name_find);
		if (id || turn)
			break;
		sqlite3_bind_text(w->name_add, 1, text, -1, SQLITE_STATIC);
		step(w, w->name_add);
		sqlite3_reset(w->name_add);
	}
	return id;
}

/* Numbers into a row, in the order of its columns. */
static void put(struct um_nsys_writer *w, enum um_nsys_id id, const int64_t *values, int n)
{
	if (w->err)
		return;
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(w->insert[id], i + 1, values[i]);
	step(w, w->insert[id]);
	sqlite3_reset(w->insert[id]);
	w->rows[id]++;
}

#define PUT(w, id, ...)                                                                                                \
	do {                                                                                                           \
		const int64_t values_[] = {__VA_ARGS__};                                                               \
		put((w), (id), values_, (int)(sizeof values_ / sizeof *values_));                                      \
	} while (0)

static void put_range(struct um_nsys_writer *w, const struct um_activity *a, int type, const char *text, int64_t domain)
{
	sqlite3_stmt *s = w->insert[UM_NSYS_RANGE];

	if (w->err)
		return;
	sqlite3_bind_int64(s, 1, a->begin);
	if (type == UM_NVTX_DOMAIN || type == UM_NVTX_MARK)
		sqlite3_bind_null(s, 2);
	else
		sqlite3_bind_int64(s, 2, a->end);
	sqlite3_bind_int64(s, 3, type);
	sqlite3_bind_text(s, 4, text, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 5, (int64_t)UM_NSYS_GLOBAL(a->process, a->thread));
	sqlite3_bind_int64(s, 6, domain);
	step(w, s);
	sqlite3_reset(s);
	w->rows[UM_NSYS_RANGE]++;
}

/* The domain's number; a new one gets a row. */
static int64_t domain_id(struct um_nsys_writer *w, const struct um_activity *a, const char *domain)
{
	char *copy;

	if (!domain)
		return 0;
	for (size_t i = 0; i < w->domains.n; i++)
		if (strcmp(w->domains.at[i], domain) == 0)
			return (int64_t)i + 1;
	copy = strdup(domain);
	if (!copy || um_vec_push(&w->domains, copy)) {
		free(copy);
		failed(w, -ENOMEM);
		return 0;
	}
	put_range(w, a, UM_NVTX_DOMAIN, domain, (int64_t)w->domains.n);
	return (int64_t)w->domains.n;
}

static void put_mark(struct um_nsys_writer *w, const struct um_activity *a)
{
	int64_t id = domain_id(w, a, UM_NSYS_MARKS);
	char *text;

	if (um_nsys_mark_write(a, &text))
		failed(w, -ENOMEM);
	if (text)
		put_range(w, a, UM_NVTX_MARK, text, id);
	free(text);
}

static int64_t copy_kind(const struct um_activity *a)
{
	static const int64_t kinds[] = {[UM_DIR_OTHER] = UM_COPY_H2H,
					[UM_DIR_H2D] = UM_COPY_H2D,
					[UM_DIR_D2H] = UM_COPY_D2H,
					[UM_DIR_D2D] = UM_COPY_D2D};
	static const int64_t unified[] = {[UM_DIR_OTHER] = UM_COPY_UM_D2D,
					  [UM_DIR_H2D] = UM_COPY_UM_H2D,
					  [UM_DIR_D2H] = UM_COPY_UM_D2H,
					  [UM_DIR_D2D] = UM_COPY_UM_D2D};

	return a->kind == UM_ACT_MIGRATION ? unified[a->dir] : kinds[a->dir];
}

static void put_copy(struct um_nsys_writer *w, const struct um_activity *a, int64_t pid)
{
	int unified = a->kind == UM_ACT_MIGRATION;
	sqlite3_stmt *s = w->insert[UM_NSYS_COPY];

	if (!unified) { /* PUT knows numbers only */
		sqlite3_bind_null(s, 10);
		sqlite3_bind_null(s, 11);
		const int64_t values[] = {
			a->begin,	   a->end,	a->device, 1, a->stream, (int64_t)a->correlation, pid,
			(int64_t)a->bytes, copy_kind(a)};

		put(w, UM_NSYS_COPY, values, 9);
		return;
	}
	PUT(w, UM_NSYS_COPY, a->begin, a->end, a->device, 0, 0, 0, pid, (int64_t)a->bytes, copy_kind(a), a->cause,
	    (int64_t)a->address);
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_nsys_writer *w = (struct um_nsys_writer *)sink;
	int64_t pid = (int64_t)UM_NSYS_GLOBAL(a->process, 0), tid = (int64_t)UM_NSYS_GLOBAL(a->process, a->thread), id;

	if (a->end > w->end)
		w->end = a->end;
	switch (a->kind) {
	case UM_ACT_ALLOC:
	case UM_ACT_FREE:
		PUT(w, UM_NSYS_ALLOC, a->begin, pid, a->device, (int64_t)a->address, (int64_t)a->bytes,
		    a->managed ? UM_MEM_MANAGED : UM_MEM_DEVICE, a->kind == UM_ACT_FREE);
		break;
	case UM_ACT_RANGE:
		id = domain_id(w, a, a->domain);
		put_range(w, a, UM_NVTX_PUSH_POP, a->name, id);
		break;
	case UM_ACT_CALL:
		PUT(w, UM_NSYS_CALL, a->begin, a->end, tid, (int64_t)a->correlation, name_id(w, a->name), a->error);
		break;
	case UM_ACT_KERNEL:
		id = name_id(w, a->name);
		PUT(w, UM_NSYS_KERNEL, a->begin, a->end, a->device, a->stream, (int64_t)a->correlation, pid, id, id);
		break;
	case UM_ACT_FILL:
		PUT(w, UM_NSYS_FILL, a->begin, a->end, a->device, a->stream, (int64_t)a->correlation, pid,
		    (int64_t)a->bytes);
		break;
	case UM_ACT_COPY:
	case UM_ACT_MIGRATION:
		put_copy(w, a, pid);
		break;
	case UM_ACT_GPU_FAULT:
		PUT(w, UM_NSYS_GPU_FAULT, a->begin, a->end, pid, a->device, (int64_t)a->address, (int64_t)a->faults,
		    a->access);
		break;
	case UM_ACT_CPU_FAULT:
		for (uint64_t i = 0; i < a->faults; i++)
			PUT(w, UM_NSYS_CPU_FAULT, a->begin, pid, (int64_t)a->address,
			    name_id(w, a->name ? a->name : "(unknown)"),
			    name_id(w, a->domain ? a->domain : "(unknown)"));
		break;
	case UM_ACT_TENSOR_END:
	case UM_ACT_TENSOR:
	case UM_ACT_OP:
	case UM_ACT_USE:
	case UM_ACT_HINT:
		put_mark(w, a);
		break;
	case UM_ACT_KINDS:
		break;
	}
	return w->err;
}

struct um_activity_sink *um_nsys_sink(struct um_nsys_writer *w)
{
	return &w->sink;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void writer_free(struct um_nsys_writer *w)
{
	for (int i = 0; i < UM_NSYS_TABLES; i++)
		sqlite3_finalize(w->insert[i]);
	sqlite3_finalize(w->name_add);
	sqlite3_finalize(w->name_find);
	sqlite3_close(w->db);
	for (size_t i = 0; i < w->domains.n; i++)
		free(w->domains.at[i]);
	um_vec_fini(&w->domains);
	if (w->scratch >= 0)
		close(w->scratch);
	free(w->path);
	free(w);
}

/* Sets an error if none was set. */
static void report_reason(const struct um_nsys_writer *w, int err, struct um_diag *diag)
{
	um_diag_set(diag, -err, 0, "cannot be written: %s", w->db ? sqlite3_errmsg(w->db) : strerror(-err));
}

/* No journal: the file is invisible until it is complete. SQLite opens it at its first statement. */
static void open_db(struct um_nsys_writer *w)
{
	char *name = NULL;
	int err = um_target_scratch(&w->scratch, &name), code;

	if (err)
		failed(w, err);
	code = err ? SQLITE_OK : sqlite3_open_v2(name, &w->db, SQLITE_OPEN_READWRITE, NULL);
	if (code != SQLITE_OK)
		failed(w, errno_of(code));
	run(w, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; BEGIN");
	run(w, um_nsys_frame);
	um_target_forget(name);
	for (int i = 0; i < UM_NSYS_TABLES; i++)
		prepare_insert(w, (enum um_nsys_id)i);
	run(w, "CREATE TABLE temp.names (id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE)");
	w->name_add = prepare(w, "INSERT INTO temp.names (value) VALUES (?)");
	w->name_find = prepare(w, "SELECT id FROM temp.names WHERE value = ?");
}

int um_nsys_create(struct um_nsys_writer **out, const char *path, const struct um_profile *device, struct um_diag *diag)
{
	struct um_nsys_writer *w = calloc(1, sizeof *w);
	int err;

	um_diag_init(diag, path);
	if (!w)
		return um_diag_set(diag, ENOMEM, 0, "no memory");
	w->sink.feed = feed;
	w->device = *device;
	w->scratch = -1;
	w->path = strdup(path);
	err = w->path ? um_out_open(&w->out, path, diag) : um_diag_set(diag, ENOMEM, 0, "no memory");
	if (!err) {
		open_db(w);
		err = w->err;
	}
	if (err) {
		report_reason(w, err, diag);
		if (w->out)
			um_out_close(w->out, 0, NULL);
		writer_free(w);
		return err;
	}
	*out = w;
	return 0;
}

static void finish(struct um_nsys_writer *w)
{
	static const char in_order[] = "eventType = 34, "; /* marks after ranges that begin at the same time */
	char *device = sqlite3_mprintf("%q", w->device.name);

	for (int i = 0; i < UM_NSYS_TABLES; i++) {
		const struct um_nsys_table *t = &um_nsys_tables[i];

		if (!w->rows[i])
			continue;
		run_f(w, "CREATE TABLE main.%s (%s)", t->name, t->columns);
		run_f(w, "INSERT INTO main.%s SELECT * FROM temp.%s ORDER BY start, %srowid", t->name, t->name,
		      i == UM_NSYS_RANGE ? in_order : "");
	}
	run(w, "INSERT INTO main.StringIds SELECT id, value FROM temp.names ORDER BY id");
	run_f(w, "INSERT INTO ANALYSIS_DETAILS VALUES (%lld, %lld, 0, %lld)", 1ll << 48, (long long)w->end + 1,
	      (long long)w->end + 1);
	run_f(w, "INSERT INTO PROCESSES VALUES (%lld, 1, 'simulated')", (long long)UM_NSYS_GLOBAL(1, 0));
	if (device)
		run_f(w, "INSERT INTO TARGET_INFO_GPU VALUES (0, 0, '%s', NULL, 1, %lld, %lld, 0)", device,
		      (long long)w->device.capacity, (long long)w->device.mem_bandwidth);
	else
		failed(w, -ENOMEM);
	sqlite3_free(device);
	run(w, "COMMIT");
}

/* Copies the database to the output. */
static void copy_out(struct um_nsys_writer *w)
{
	char *block = malloc(BLOCK);
	uint64_t at = 0;
	ssize_t n = 1;

	while (block && n > 0 && !um_out_error(w->out)) {
		n = pread(w->scratch, block, BLOCK, (off_t)at);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			um_out_fail(w->out, errno);
		else
			um_out_write(w->out, block, (size_t)n), at += (uint64_t)n;
	}
	if (!block)
		um_out_fail(w->out, ENOMEM);
	free(block);
}

int um_nsys_close(struct um_nsys_writer *w, int keep, struct um_diag *diag)
{
	int err;

	if (!w)
		return 0;
	um_diag_init(diag, w->path);
	if (keep)
		finish(w);
	err = keep ? w->err : 0;
	if (err)
		report_reason(w, err, diag);
	else if (keep)
		copy_out(w);
	if (err || !keep)
		um_out_close(w->out, 0, NULL);
	else
		err = um_out_close(w->out, 1, diag);
	writer_free(w);
	return err;
}
