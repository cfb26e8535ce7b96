/* SPDX-License-Identifier: Apache-2.0
 *
 * A cursor on each table, and always the earliest row of them all next. Tables are taken as they lie, which in all
 * exports seen is in order of time; one that turns out otherwise is sorted by SQLite (which does so in a file once it
 * is large) when all of it is read again.
 */
#include "io/nsys.h"

#include "io/nsys_file.h"
#include "io/nsys_mark.h"

#include <limits.h>

#define PROGRESS_ROWS 65536u

struct reader {
	struct um_nsys_file file;
	const struct um_nsys_read_options *o;
	struct um_capture *capture;
	struct um_activity_sink *sink;
	struct cursor {
		sqlite3_stmt *s; /* NULL: no such table, or its end */
		struct um_activity next;
		uint64_t forgot; /* of the file, when `next` was made */
		uint64_t rows;
		int sort;
	} cursor[UM_NSYS_TABLES];
	UM_VEC(struct domain) domains;
	uint64_t rows, rows_guess;
};

struct domain {
	uint64_t process;
	int64_t id;
	char *name;
};

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* What is read of each table, and where in its rows it then is. */
enum { START, END, GLOBAL, DEVICE }; /* of all of them */
enum { ALLOC_ADDRESS = 4, ALLOC_BYTES, ALLOC_KIND, ALLOC_OPERATION, ALLOC_NAME };
enum { RANGE_TYPE = 4, RANGE_TEXT, RANGE_TEXT_ID, RANGE_DOMAIN };
enum { GPU_STREAM = 4, GPU_CORRELATION, GPU_REST };
enum { CALL_CORRELATION = 4, CALL_NAME };
enum { FAULT_ADDRESS = 4, FAULT_COUNT, FAULT_ACCESS };

static const char *const columns[UM_NSYS_TABLES][UM_NSYS_COLUMNS + 1] = {
	[UM_NSYS_ALLOC] = {"!start", "start", "globalPid", "deviceId", "address", "!bytes", "memKind",
                           "!memoryOperationType", "name"},
	[UM_NSYS_RANGE] = {"!start", "!end", "globalTid", "start", "!eventType", "text", "textId", "domainId"},
	[UM_NSYS_CALL] = {"!start", "!end", "globalTid", "start", "correlationId", "nameId"},
	[UM_NSYS_KERNEL] = {"!start", "!end", "globalPid", "deviceId", "streamId", "correlationId", "shortName",
                            "demangledName"},
	[UM_NSYS_FILL] = {"!start", "!end", "globalPid", "deviceId", "streamId", "correlationId", "bytes"},
	[UM_NSYS_GPU_FAULT] = {"!start", "end", "globalPid", "deviceId", "address", "!numberOfPageFaults",
                               "faultAccessType"},
	[UM_NSYS_CPU_FAULT] = {"!start", "start", "globalPid", "start", "address"},
	[UM_NSYS_COPY] = {"!start", "!end", "globalPid", "deviceId", "streamId", "correlationId", "!bytes", "!copyKind",
                          "migrationCause", "virtualAddress"},
};

static int64_t number(sqlite3_stmt *s, int column)
{
	return sqlite3_column_int64(s, column);
}

/* What cannot be negative. */
static uint64_t count(sqlite3_stmt *s, int column)
{
	int64_t n = number(s, column);

	return n > 0 ? (uint64_t)n : 0;
}

static int has(sqlite3_stmt *s, int column)
{
	return sqlite3_column_type(s, column) != SQLITE_NULL;
}

static int32_t small(sqlite3_stmt *s, int column)
{
	int64_t n = has(s, column) ? number(s, column) : -1;

	return n >= 0 && n <= INT32_MAX ? (int32_t)n : -1;
}

/* --- domains ------------------------------------------------------------------------------------------------------ */

static int domains_read(struct reader *r)
{
	static const char *const wanted[] = {"globalTid", "domainId", "text", "textId", "!eventType", NULL};
	sqlite3_stmt *s = NULL;
	int got;

	if (!r->file.has[UM_NSYS_RANGE])
		return 0;
	got = um_nsys_file_select(&r->file, "NVTX_EVENTS", wanted, "WHERE eventType = 75 LIMIT 8192", &s);
	while (!got && (got = um_nsys_file_step(&r->file, s)) > 0) {
		const char *text = um_nsys_file_text(&r->file, s, has(s, 2) ? 2 : 3);
		struct domain d = {UM_NSYS_PROCESS(number(s, 0)), number(s, 1), strdup(text ? text : "")};

		got = 0;
		if (!d.name || um_vec_push(&r->domains, d)) {
			free(d.name);
			got = um_diag_set(r->file.diag, ENOMEM, 0, "no memory");
		}
	}
	sqlite3_finalize(s);
	return got;
}

static const char *domain_of(const struct reader *r, uint64_t process, int64_t id)
{
	for (size_t i = 0; id && i < r->domains.n; i++)
		if (r->domains.at[i].process == process && r->domains.at[i].id == id)
			return r->domains.at[i].name;
	return NULL;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static int copy_of(sqlite3_stmt *s, struct um_activity *a)
{
	switch (number(s, GPU_REST + 1)) {
	case UM_COPY_UM_H2D:
	case UM_COPY_H2D:
		a->way = UM_WAY_H2D;
		break;
	case UM_COPY_UM_D2H:
	case UM_COPY_D2H:
		a->way = UM_WAY_D2H;
		break;
	case UM_COPY_UM_D2D:
	case UM_COPY_D2D:
		a->way = UM_WAY_D2D;
		break;
	default:
		a->way = UM_WAY_OTHER;
	}
	a->bytes = count(s, GPU_REST);
	if (number(s, GPU_REST + 1) < UM_COPY_UM_H2D || number(s, GPU_REST + 1) > UM_COPY_UM_D2D)
		return 1;
	a->kind = UM_ACT_MIGRATION;
	a->stream = -1;
	a->correlation = 0;
	a->address = (uint64_t)number(s, GPU_REST + 3);
	if (has(s, GPU_REST + 2) && number(s, GPU_REST + 2) > 0 && number(s, GPU_REST + 2) < UM_CAUSES)
		a->cause = (enum um_activity_cause)number(s, GPU_REST + 2);
	return 1;
}

/* Of what libumadvise, or whoever marks as it does, marks: 0 where it says nothing. */
static int mark_of(struct reader *r, sqlite3_stmt *s, struct um_activity *a)
{
	const char *domain = domain_of(r, a->process, number(s, RANGE_DOMAIN)), *text;

	if (!domain || strcmp(domain, UM_NSYS_MARKS) != 0)
		return 0;
	text = um_nsys_file_text(&r->file, s, has(s, RANGE_TEXT) ? RANGE_TEXT : RANGE_TEXT_ID);
	a->end = a->begin;
	if (text && um_nsys_mark_read(text, a))
		return 1;
	r->capture->marks_damaged++;
	return 0;
}

/* Other marks, categories and names of threads are no ranges: 0. */
static int range_of(struct reader *r, sqlite3_stmt *s, struct um_activity *a)
{
	int64_t type = number(s, RANGE_TYPE);
	const char *text;

	if (type == UM_NVTX_MARK)
		return mark_of(r, s, a);
	if (type != UM_NVTX_PUSH_POP && type != UM_NVTX_START_END && type != UM_NVTX_TEXT_PUSH_POP &&
	    type != UM_NVTX_TEXT_START_END)
		return 0;
	if (!has(s, END))
		a->end = r->capture->end_ns;
	a->end = a->end < a->begin ? a->begin : a->end;
	a->unfinished = !has(s, END) || (r->capture->end_ns && a->end >= r->capture->end_ns);
	text = um_nsys_file_text(&r->file, s, has(s, RANGE_TEXT) ? RANGE_TEXT : RANGE_TEXT_ID);
	a->name = text ? text : "";
	a->domain = domain_of(r, a->process, number(s, RANGE_DOMAIN));
	return 1;
}

static const char *kernel_name(struct reader *r, sqlite3_stmt *s)
{
	const char *text = um_nsys_file_text(&r->file, s, GPU_REST);

	text = text ? text : um_nsys_file_text(&r->file, s, GPU_REST + 1);
	return text ? text : "(no name)";
}

/* A row as an activity: 1; 0: it is none. */
static int activity_of(struct reader *r, enum um_nsys_id id, sqlite3_stmt *s, struct um_activity *a)
{
	static const enum um_activity_kind kinds[UM_NSYS_TABLES] = {
		[UM_NSYS_ALLOC] = UM_ACT_ALLOC,
		[UM_NSYS_RANGE] = UM_ACT_RANGE,
		[UM_NSYS_CALL] = UM_ACT_CALL,
		[UM_NSYS_KERNEL] = UM_ACT_KERNEL,
		[UM_NSYS_FILL] = UM_ACT_FILL,
		[UM_NSYS_GPU_FAULT] = UM_ACT_GPU_FAULT,
		[UM_NSYS_CPU_FAULT] = UM_ACT_CPU_FAULT,
		[UM_NSYS_COPY] = UM_ACT_COPY,
	};
	int on_gpu = id == UM_NSYS_KERNEL || id == UM_NSYS_FILL || id == UM_NSYS_COPY;
	int nowhere = id == UM_NSYS_RANGE || id == UM_NSYS_CALL || id == UM_NSYS_CPU_FAULT;

	*a = (struct um_activity){.kind = kinds[id],
	                          .begin = number(s, START),
	                          .end = number(s, END),
	                          .process = UM_NSYS_PROCESS(number(s, GLOBAL)),
	                          .thread = (uint64_t)number(s, GLOBAL),
	                          .device = nowhere ? -1 : small(s, DEVICE),
	                          .stream = on_gpu ? small(s, GPU_STREAM) : -1,
	                          .correlation = on_gpu ? count(s, GPU_CORRELATION) : 0};
	a->end = a->end < a->begin && id != UM_NSYS_RANGE ? a->begin : a->end;
	switch (id) {
	case UM_NSYS_ALLOC:
		a->kind = number(s, ALLOC_OPERATION) ? UM_ACT_FREE : UM_ACT_ALLOC;
		a->address = (uint64_t)number(s, ALLOC_ADDRESS);
		a->bytes = count(s, ALLOC_BYTES);
		a->managed = number(s, ALLOC_KIND) == UM_MEM_MANAGED || number(s, ALLOC_KIND) == UM_MEM_MANAGED_STATIC;
		a->name = um_nsys_file_text(&r->file, s, ALLOC_NAME);
		return 1;
	case UM_NSYS_RANGE:
		return range_of(r, s, a);
	case UM_NSYS_CALL:
		a->correlation = count(s, CALL_CORRELATION);
		a->name = um_nsys_file_text(&r->file, s, CALL_NAME);
		a->name = a->name ? a->name : "";
		return 1;
	case UM_NSYS_KERNEL:
		a->name = kernel_name(r, s);
		return 1;
	case UM_NSYS_FILL:
		a->bytes = count(s, GPU_REST);
		return 1;
	case UM_NSYS_GPU_FAULT:
		a->faults = count(s, FAULT_COUNT);
		a->access = count(s, FAULT_ACCESS) <= UM_ACCESS_PREFETCH
		                    ? (enum um_activity_access)count(s, FAULT_ACCESS)
		                    : UM_ACCESS_UNKNOWN;
		a->address = (uint64_t)number(s, FAULT_ADDRESS);
		return 1;
	case UM_NSYS_CPU_FAULT:
		a->faults = 1;
		a->address = (uint64_t)number(s, FAULT_ADDRESS);
		return 1;
	default:
		return copy_of(s, a);
	}
}

/* --- in order ----------------------------------------------------------------------------------------------------- */

/* The cursor's next activity. 0, -EAGAIN (not in order), or -errno. */
static int advance(struct reader *r, enum um_nsys_id id)
{
	struct cursor *c = &r->cursor[id];
	int64_t before = c->rows ? c->next.begin : INT64_MIN;

	for (;;) {
		int got = um_nsys_file_step(&r->file, c->s);

		if (got <= 0) {
			sqlite3_finalize(c->s);
			c->s = NULL;
			return got;
		}
		if (++c->rows > r->file.rows_max)
			return um_diag_set(r->file.diag, EINVAL, 0,
			                   "damaged: table %s has more rows than the file has room for",
			                   um_nsys_tables[id].name);
		if (++r->rows % PROGRESS_ROWS == 0 && r->o->progress &&
		    r->o->progress(r->o->user, r->rows, r->rows_guess))
			return -ECANCELED;
		if (activity_of(r, id, c->s, &c->next))
			break;
	}
	c->forgot = r->file.forgot;
	if (c->next.begin >= before)
		return 0;
	if (c->sort)
		return um_diag_set(r->file.diag, EINVAL, 0, "damaged: table %s cannot be sorted",
		                   um_nsys_tables[id].name);
	c->sort = 1;
	return -EAGAIN;
}

static void cursors_close(struct reader *r)
{
	for (int i = 0; i < UM_NSYS_TABLES; i++) {
		sqlite3_finalize(r->cursor[i].s);
		r->cursor[i].s = NULL;
		r->cursor[i].rows = 0;
	}
}

static int cursors_open(struct reader *r)
{
	int err = 0;

	r->rows = 0;
	r->capture->marks_damaged = 0;
	for (int i = 0; i < UM_NSYS_TABLES && !err; i++) {
		if (!r->file.has[i])
			continue;
		err = um_nsys_file_select(&r->file, um_nsys_tables[i].name, columns[i],
		                          r->cursor[i].sort ? "ORDER BY start" : "", &r->cursor[i].s);
		if (!err)
			err = advance(r, (enum um_nsys_id)i);
	}
	return err;
}

/* What its name was borrowed from may have been dropped since, for another table's names. */
static void renew_name(struct reader *r, enum um_nsys_id id)
{
	struct cursor *c = &r->cursor[id];

	if (c->forgot != r->file.forgot && c->next.name)
		activity_of(r, id, c->s, &c->next);
}

static int merge(struct reader *r)
{
	int err = cursors_open(r);

	while (!err) {
		int first = -1;

		for (int i = 0; i < UM_NSYS_TABLES; i++)
			if (r->cursor[i].s && (first < 0 || r->cursor[i].next.begin < r->cursor[first].next.begin))
				first = i;
		if (first < 0)
			break;
		renew_name(r, (enum um_nsys_id)first);
		err = um_activity_feed(r->sink, &r->cursor[first].next);
		if (!err)
			err = advance(r, (enum um_nsys_id)first);
	}
	cursors_close(r);
	return err;
}

int um_nsys_read(const char *path, const struct um_nsys_read_options *options, struct um_activity_sink *sink,
                 struct um_capture *capture, struct um_diag *diag)
{
	struct reader r = {.o = options, .capture = capture, .sink = sink};
	int err;

	um_diag_init(diag, path);
	um_capture_init(capture);
	err = um_nsys_file_open(&r.file, path, diag);
	if (!err)
		err = um_nsys_file_capture(&r.file, capture);
	if (!err)
		err = domains_read(&r);
	for (int i = 0; i < UM_NSYS_TABLES && !err; i++)
		r.rows_guess += r.file.has[i] ? um_nsys_file_rows(&r.file, um_nsys_tables[i].name) : 0;
	while (!err && (err = merge(&r)) == -EAGAIN) {
		if (options->again)
			options->again(options->user);
		err = 0;
		continue;
	}
	capture->rows = r.rows;
	for (size_t i = 0; i < r.domains.n; i++)
		free(r.domains.at[i].name);
	um_vec_fini(&r.domains);
	um_nsys_file_close(&r.file);
	return err;
}
