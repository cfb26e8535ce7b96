/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges the rows of all tables (nsys_rows.h) by time. Tables are read in stored order, which in all known exports is
 * the order of time; if one is out of order, SQLite sorts it (in a file if it is large) and all of the export is read
 * again.
 */
#include "formats/nsys.h"

#include "io/nsys_mark.h"
#include "base/hash.h"
#include "formats/nsys_rows.h"

#include <limits.h>

#define PROGRESS_ROWS 65536u
#define THREAD_ROWS 65536u /* smaller tables have no thread */

struct reader {
	struct um_nsys_file file;
	const char *path;
	const struct um_nsys_read_options *o;
	struct um_capture *capture;
	struct um_activity_sink *sink;
	struct um_nsys_rows rows[UM_NSYS_TABLES];
	const struct um_nsys_batch *batch[UM_NSYS_TABLES]; /* NULL: no such table, or its end */
	unsigned at[UM_NSYS_TABLES]; /* in the batch */
	int sort[UM_NSYS_TABLES];
	UM_VEC(struct domain) domains;
	struct um_nsys_room names; /* of domains */
	uint64_t n_rows, rows_guess;
};

struct domain {
	uint64_t process;
	int64_t id;
	const char *name;
};

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* Columns read from each table, and their indices in its rows. */
enum { START, END, GLOBAL, DEVICE }; /* of all of them */
enum { ALLOC_ADDRESS = 4, ALLOC_BYTES, ALLOC_KIND, ALLOC_OPERATION, ALLOC_NAME };
enum { RANGE_TYPE = 4, RANGE_TEXT, RANGE_TEXT_ID, RANGE_DOMAIN };
enum { GPU_STREAM = 4, GPU_CORRELATION, GPU_REST, GPU_SHAPE = 8 };
enum { CALL_CORRELATION = 4, CALL_NAME, CALL_ERROR };
enum { FAULT_ADDRESS = 4, FAULT_COUNT, FAULT_ACCESS };
enum { CPU_FAULT_CODE = 5, CPU_FAULT_MODULE };

static const char *const columns[UM_NSYS_TABLES][UM_NSYS_COLUMNS + 1] = {
	[UM_NSYS_ALLOC] = {"!start", "start", "globalPid", "deviceId", "address", "!bytes", "memKind",
			   "!memoryOperationType", "name"},
	[UM_NSYS_RANGE] = {"!start", "!end", "globalTid", "start", "!eventType", "text", "textId", "domainId"},
	[UM_NSYS_CALL] = {"!start", "!end", "globalTid", "start", "correlationId", "nameId", "returnValue"},
	[UM_NSYS_KERNEL] = {"!start", "!end", "globalPid", "deviceId", "streamId", "correlationId", "shortName",
			    "demangledName"},
	[UM_NSYS_FILL] = {"!start", "!end", "globalPid", "deviceId", "streamId", "correlationId", "bytes"},
	[UM_NSYS_GPU_FAULT] = {"!start", "end", "globalPid", "deviceId", "address", "!numberOfPageFaults",
			       "faultAccessType"},
	[UM_NSYS_CPU_FAULT] = {"!start", "start", "globalPid", "start", "address", "CpuInstruction", "module"},
	[UM_NSYS_COPY] = {"!start", "!end", "globalPid", "deviceId", "streamId", "correlationId", "!bytes", "!copyKind",
			  "migrationCause", "virtualAddress"},
};

/* Of kernels, if their shapes are wanted. */
static const char *const columns_shaped[] = {"!start",	      "!end",	   "globalPid",	    "deviceId", "streamId",
					     "correlationId", "shortName", "demangledName", "gridX",	"gridY",
					     "gridZ",	      "blockX",	   "blockY",	    "blockZ",	NULL};

static int64_t number(const struct um_nsys_row *row, int column)
{
	return sqlite3_value_int64(row->values[column]);
}

/* Clears negative values of unsigned columns. */
static uint64_t count(const struct um_nsys_row *row, int column)
{
	int64_t n = number(row, column);

	return n > 0 ? (uint64_t)n : 0;
}

static int has(const struct um_nsys_row *row, int column)
{
	return sqlite3_value_type(row->values[column]) != SQLITE_NULL;
}

static int32_t small(const struct um_nsys_row *row, int column)
{
	int64_t n = has(row, column) ? number(row, column) : -1;

	return n >= 0 && n <= INT32_MAX ? (int32_t)n : -1;
}

static const char *text_of(const struct um_nsys_row *row, int column)
{
	return um_nsys_file_text(row->file, row->values[column], row->room);
}

/* --- domains ------------------------------------------------------------------------------------------------------ */

static int domain_add(struct reader *r, sqlite3_stmt *s)
{
	const char *text = (const char *)sqlite3_column_text(s, 2);
	struct domain d = {UM_NSYS_PROCESS(sqlite3_column_int64(s, 0)), sqlite3_column_int64(s, 1), NULL};

	if (!text)
		text = um_nsys_file_string(&r->file, sqlite3_column_int64(s, 3), &r->names);
	d.name = um_nsys_file_keep(&r->file, text ? text : "", &r->names);
	return d.name && um_vec_push(&r->domains, d) == 0 ? 0 : um_diag_set(r->file.diag, ENOMEM, 0, "no memory");
}

static int domains_read(struct reader *r)
{
	static const char *const wanted[] = {"globalTid", "domainId", "text", "textId", "!eventType", NULL};
	sqlite3_stmt *s = NULL;
	int got;

	if (!r->file.has[UM_NSYS_RANGE])
		return 0;
	got = um_nsys_file_select(&r->file, "NVTX_EVENTS", wanted, "WHERE eventType = 75 LIMIT 8192", &s);
	while (!got && (got = um_nsys_file_step(&r->file, s)) > 0)
		got = domain_add(r, s);
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

static int copy_of(const struct um_nsys_row *s, struct um_activity *a)
{
	switch (number(s, GPU_REST + 1)) {
	case UM_COPY_UM_H2D:
	case UM_COPY_H2D:
		a->dir = UM_DIR_H2D;
		break;
	case UM_COPY_UM_D2H:
	case UM_COPY_D2H:
		a->dir = UM_DIR_D2H;
		break;
	case UM_COPY_UM_D2D:
	case UM_COPY_D2D:
		a->dir = UM_DIR_D2D;
		break;
	default:
		a->dir = UM_DIR_OTHER;
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

/* Parses marks in libumadvise's format: 0 if there is none. */
static int mark_of(const struct reader *r, const struct um_nsys_row *s, struct um_activity *a)
{
	const char *domain = domain_of(r, a->process, number(s, RANGE_DOMAIN)), *text;

	if (!domain || strcmp(domain, UM_NSYS_MARKS) != 0)
		return 0;
	text = text_of(s, has(s, RANGE_TEXT) ? RANGE_TEXT : RANGE_TEXT_ID);
	a->end = a->begin;
	if (text && um_nsys_mark_read(text, a))
		return 1;
	r->capture->marks_damaged++;
	return 0;
}

/* Other marks, categories and names of threads are not ranges: 0. */
static int range_of(const struct reader *r, const struct um_nsys_row *s, struct um_activity *a)
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
	text = text_of(s, has(s, RANGE_TEXT) ? RANGE_TEXT : RANGE_TEXT_ID);
	a->name = text ? text : "";
	a->domain = domain_of(r, a->process, number(s, RANGE_DOMAIN));
	return 1;
}

static const char *kernel_name(const struct um_nsys_row *s)
{
	const char *text = text_of(s, GPU_REST);

	text = text ? text : text_of(s, GPU_REST + 1);
	return text ? text : "(no name)";
}

/* Nsight Systems writes a text in parentheses or brackets for a name that it does not know. */
static const char *known(const char *text)
{
	return !text || !*text || *text == '(' || *text == '[' ? NULL : text;
}

/* The kind of a row. */
static const enum um_activity_kind kinds[UM_NSYS_TABLES] = {
	[UM_NSYS_ALLOC] = UM_ACT_ALLOC,		[UM_NSYS_RANGE] = UM_ACT_RANGE, [UM_NSYS_CALL] = UM_ACT_CALL,
	[UM_NSYS_KERNEL] = UM_ACT_KERNEL,	[UM_NSYS_FILL] = UM_ACT_FILL,	[UM_NSYS_GPU_FAULT] = UM_ACT_GPU_FAULT,
	[UM_NSYS_CPU_FAULT] = UM_ACT_CPU_FAULT, [UM_NSYS_COPY] = UM_ACT_COPY,
};

static uint64_t shape_of(const struct um_nsys_row *s)
{
	uint64_t hash = 0;

	for (int i = GPU_SHAPE; i < GPU_SHAPE + 6; i++)
		hash = um_hash_u64(hash, count(s, i));
	return hash;
}

/* A row as an activity: 1; 0: it is none. */
static int activity_of(const void *user, enum um_nsys_id id, const struct um_nsys_row *s, struct um_activity *a)
{
	const struct reader *r = user;
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
		a->name = text_of(s, ALLOC_NAME);
		return 1;
	case UM_NSYS_RANGE:
		return range_of(r, s, a);
	case UM_NSYS_CALL:
		a->correlation = count(s, CALL_CORRELATION);
		a->name = text_of(s, CALL_NAME);
		a->name = a->name ? a->name : "";
		a->error = (int)number(s, CALL_ERROR);
		return 1;
	case UM_NSYS_KERNEL:
		a->name = kernel_name(s);
		a->shape = r->o->shapes ? shape_of(s) : 0;
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
		a->name = known(text_of(s, CPU_FAULT_CODE));
		a->domain = known(text_of(s, CPU_FAULT_MODULE));
		return 1;
	default:
		return copy_of(s, a);
	}
}

/* --- in order ----------------------------------------------------------------------------------------------------- */

/* The next non-empty batch, or none. 0, -EAGAIN (out of order), or -errno. */
static int advance(struct reader *r, enum um_nsys_id id)
{
	const struct um_nsys_batch *b = r->batch[id];

	r->at[id] = 0;
	do {
		uint64_t before = r->n_rows;

		if (b && b->end) {
			r->batch[id] = NULL;
			r->sort[id] |= b->end == -EAGAIN;
			return b->end < 0 ? b->end : 0;
		}
		r->batch[id] = b = um_nsys_rows_next(&r->rows[id], r->file.diag);
		r->n_rows += b->rows;
		if (r->n_rows / PROGRESS_ROWS != before / PROGRESS_ROWS && r->o->progress &&
		    r->o->progress(r->o->user, r->n_rows, r->rows_guess))
			return -ECANCELED;
	} while (!b->n);
	return 0;
}

static void tables_close(struct reader *r)
{
	for (int i = 0; i < UM_NSYS_TABLES; i++) {
		um_nsys_rows_close(&r->rows[i]);
		r->batch[i] = NULL;
	}
}

static int tables_open(struct reader *r)
{
	uint64_t from = r->o->thread_rows ? r->o->thread_rows : THREAD_ROWS;
	int err = 0;

	r->n_rows = 0;
	r->capture->marks_damaged = 0;
	for (int i = 0; i < UM_NSYS_TABLES && !err; i++) {
		int large = um_nsys_file_rows(&r->file, um_nsys_tables[i].name) >= from;

		if (!r->file.has[i])
			continue;
		r->rows[i] = (struct um_nsys_rows){
			.id = (enum um_nsys_id)i, .activity_of = activity_of, .user = r, .sort = r->sort[i]};
		err = um_nsys_rows_open(&r->rows[i], &r->file, r->path,
					i == UM_NSYS_KERNEL && r->o->shapes ? columns_shaped : columns[i], large);
	}
	for (int i = 0; i < UM_NSYS_TABLES && !err; i++)
		if (r->file.has[i])
			err = advance(r, (enum um_nsys_id)i);
	return err;
}

static int64_t next_of(const struct reader *r, int id)
{
	return r->batch[id]->at[r->at[id]].begin;
}

/* The table with the earliest row; of equal ones, the first. -1: none. `until`: it stays the earliest up to here. */
static int earliest(const struct reader *r, int64_t *until)
{
	int first = -1;

	*until = INT64_MAX;
	for (int i = 0; i < UM_NSYS_TABLES; i++) {
		if (!r->batch[i])
			continue;
		if (first < 0 || next_of(r, i) < next_of(r, first)) {
			*until = first < 0 ? INT64_MAX : next_of(r, first) - 1;
			first = i;
		} else if (next_of(r, i) < *until) {
			*until = next_of(r, i);
		}
	}
	return first;
}

static int merge(struct reader *r)
{
	int err = tables_open(r), first;
	int64_t until;

	while (!err && (first = earliest(r, &until)) >= 0)
		do {
			err = um_activity_feed(r->sink, &r->batch[first]->at[r->at[first]]);
			if (!err && ++r->at[first] == r->batch[first]->n)
				err = advance(r, (enum um_nsys_id)first);
		} while (!err && r->batch[first] && next_of(r, first) <= until);
	tables_close(r);
	return err;
}

int um_nsys_read(const char *path, const struct um_nsys_read_options *options, struct um_activity_sink *sink,
		 struct um_capture *capture, struct um_diag *diag)
{
	struct reader r = {.path = path, .o = options, .capture = capture, .sink = sink};
	int err;

	um_diag_init(diag, path);
	um_capture_init(capture);
	err = um_nsys_file_open(&r.file, path, diag);
	if (!err)
		err = um_nsys_file_capture(&r.file, capture);
	if (!err)
		err = domains_read(&r);
	for (int i = 0; i < UM_NSYS_TABLES; i++)
		r.sort[i] = options->sort;
	for (int i = 0; i < UM_NSYS_TABLES && options->kinds; i++)
		r.file.has[i] &= (options->kinds >> kinds[i] & 1) != 0;
	for (int i = 0; i < UM_NSYS_TABLES && !err; i++)
		r.rows_guess += r.file.has[i] ? um_nsys_file_rows(&r.file, um_nsys_tables[i].name) : 0;
	while (!err && (err = merge(&r)) == -EAGAIN) {
		if (options->again)
			options->again(options->user);
		err = 0;
	}
	capture->rows = r.n_rows;
	um_nsys_room_fini(&r.names);
	um_vec_fini(&r.domains);
	um_nsys_file_close(&r.file);
	return err;
}
