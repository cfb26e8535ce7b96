/* SPDX-License-Identifier: Apache-2.0
 *
 * A part is fed when the next one is read (or the file ends), because calls of hints may begin before the part that has
 * their outcome, and events are fed in order of time. Whole parts are kept as long as others may refer to them.
 */
#include "formats/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ROWS 4096 /* lines between two calls of progress */

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* Keeps a part for references and drops the oldest one. */
static void keep(struct um_log_reader *r)
{
	struct um_log_part oldest = r->kept[UM_LOG_REFERRED - 1];

	memmove(&r->kept[1], &r->kept[0], (UM_LOG_REFERRED - 1) * sizeof *r->kept);
	r->kept[0] = r->part;
	r->part = oldest;
	if (r->n_kept < UM_LOG_REFERRED)
		r->n_kept++;
}

static int end_part(struct um_log_reader *r)
{
	struct um_log_part *p = &r->part;
	struct um_capture_library *l = &r->capture->library;
	int err;

	r->in_part = 0;
	if (p->begin < r->end)
		return um_diag_set(r->diag, EINVAL, r->line, "a part begins before the one before it ends");
	if (um_log_queue_counted(r, p->begin))
		return um_log_no_memory(r);
	err = um_log_feed(r, p->begin);
	if (err)
		return err;
	if (p->n != UM_LOG_SETUP) {
		l->iterations++;
		l->kept += !r->bare;
		if (um_log_queue_range(r, p))
			return um_log_no_memory(r);
	}
	if (!r->bare && um_log_queue_events(r, p, r->like == UM_LOG_SETUP ? p : um_log_kept(r, r->like)))
		return um_log_no_memory(r);
	for (int i = 0; i < UM_LIBRARY_COUNTS; i++)
		l->counts[i] += p->counts[i];
	memcpy(l->levels, p->levels, sizeof l->levels);
	l->left_out += p->left_out;
	r->end = p->end;
	r->capture->end_ns = p->end;
	if (!r->bare && r->like == UM_LOG_SETUP && p->n != UM_LOG_SETUP)
		keep(r);
	return 0;
}

static int read_line(struct um_log_reader *r, const struct um_json *j)
{
	const json_t *o = j->root;

	if (r->line == 1) {
		int err = um_log_line_head(r, j);

		return err || !r->capture->library.counters ? err : um_log_recount(r);
	}
	if (json_object_get(o, "define"))
		return um_log_line_define(r, j);
	if (json_object_get(o, "sums"))
		return um_log_line_sums(r, j);
	if (json_object_get(o, "part"))
		return um_log_line_part(r, j);
	if (!r->in_part)
		return 0; /* written by a later version */
	if (json_object_get(o, "end"))
		return end_part(r);
	return um_log_line_event(r, j);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* A log never has kernels; it has migrations and faults if the driver counted them. */
static int absences(struct um_log_reader *r)
{
	static const struct um_absence list[] = {
		{"kernels", "kernels and their times", "--trace=cuda", UM_ABSENT_NOT_RECORDED, NULL},
		{"migrations", "migrations of managed memory", "--trace=cuda", UM_ABSENT_NOT_RECORDED, NULL},
		{"faults", "page faults of the GPU", "--cuda-um-gpu-page-faults=true", UM_ABSENT_NOT_RECORDED, NULL}};

	size_t n = r->capture->library.counters ? 1 : sizeof list / sizeof *list;

	for (size_t i = 0; i < n; i++)
		if (um_vec_push(&r->capture->missing, list[i]))
			return um_log_no_memory(r);
	return 0;
}

static int notes(struct um_log_reader *r, int cut)
{
	static const char about[] = "the library's own log: iterations are measured from one umadv_iter to the "
				    "next; it has no kernels, faults and migrations";
	static const char with_counters[] =
		"the library's own log: iterations are measured from one umadv_iter to the next; it has no kernels; "
		"the driver's counts are assigned to iterations by time";
	const struct um_capture_library *l = &r->capture->library;
	char text[256];
	int err = um_capture_note(r->capture, l->counters ? with_counters : about);

	if (!err && *l->why) {
		snprintf(text, sizeof text, "hints have no effect there: %s", l->why);
		err = um_capture_note(r->capture, text);
	}
	if (!err && cut)
		err = um_capture_note(r->capture, "the file ends inside a part: the program ended without closing "
						  "its log, or is still running");
	if (!err && r->sums) {
		snprintf(text, sizeof text, "of %" PRIu64 " iterations in the middle, the log has only sums", r->sums);
		err = um_capture_note(r->capture, text);
	}
	if (!err && l->left_out) {
		snprintf(text, sizeof text, "%" PRIu64 " events and hints were too many for the log", l->left_out);
		err = um_capture_note(r->capture, text);
	}
	if (!err && l->counts[UM_LIBRARY_SUMMED]) {
		snprintf(text, sizeof text,
			 "of %" PRIu64 " migrations and groups of faults only sums are known, "
			 "which are of no tensor",
			 l->counts[UM_LIBRARY_SUMMED]);
		err = um_capture_note(r->capture, text);
	}
	if (!err && l->counts[UM_LIBRARY_LOST]) {
		snprintf(text, sizeof text,
			 "CUPTI has dropped %" PRIu64 " records: this report lacks some migrations and faults",
			 l->counts[UM_LIBRARY_LOST]);
		err = um_capture_note(r->capture, text);
	}
	return err ? um_log_no_memory(r) : 0;
}

static int read_lines(struct um_log_reader *r)
{
	const char *text;
	struct um_json j;
	int cut = 0, err;
	size_t n;

	while ((err = um_lines_next(r->lines, &text, &n)) > 0) {
		r->line = um_lines_number(r->lines);
		if (um_log_is_counted(text, n))
			continue;
		err = um_json_parse(&j, text, n, r->line, r->diag);
		if (err)
			return err;
		err = read_line(r, &j);
		um_json_fini(&j);
		if (!err && r->o->progress && r->line % ROWS == 0 && r->o->progress(r->o->user, r->line, 0))
			err = -ECANCELED;
		if (err)
			return err;
	}
	if (err == -EINVAL && um_lines_truncated(r->lines) && r->line) {
		cut = 1;
		err = 0;
	}
	if (!err && !r->line)
		err = um_diag_set(r->diag, EINVAL, 0, "empty: want a umlog");
	if (!err && um_log_queue_counted(r, INT64_MAX))
		err = um_log_no_memory(r);
	if (!err)
		err = um_log_feed(r, INT64_MAX);
	r->capture->rows = r->line;
	if (!err)
		err = absences(r);
	return err ? err : notes(r, cut || r->in_part);
}

/* A compressed export is not a log; other errors in compressed files are left to the reader. */
int um_log_is(const char *path)
{
	static const char export[] = "SQLite format 3";
	unsigned char first[sizeof export] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), yes;
	gzFile z;

	if (fd < 0)
		return 0;
	yes = read(fd, first, 2) == 2 && first[0] == '{';
	if (first[0] != 0x1f || first[1] != 0x8b || lseek(fd, 0, SEEK_SET) || !(z = gzdopen(fd, "rb"))) {
		close(fd);
		return yes;
	}
	yes = gzread(z, first, sizeof first) != (int)sizeof first || memcmp(first, export, sizeof first) != 0;
	gzclose(z);
	return yes;
}

int um_log_read(const char *path, const struct um_log_read_options *options, struct um_activity_sink *sink,
		struct um_capture *capture, struct um_diag *diag)
{
	struct um_log_reader r = {.o = options,
				  .path = path,
				  .sink = sink,
				  .capture = capture,
				  .diag = diag,
				  .fed = INT64_MIN,
				  .end = INT64_MIN};
	int err;

	um_capture_init(capture);
	err = um_lines_open(&r.lines, path, diag);
	if (err)
		return err;
	err = read_lines(&r);
	um_lines_close(r.lines);
	um_log_defs_fini(&r.defs);
	um_arena_fini(&r.names);
	um_log_part_fini(&r.part);
	for (unsigned i = 0; i < UM_LOG_REFERRED; i++)
		um_log_part_fini(&r.kept[i]);
	um_vec_fini(&r.without);
	um_vec_fini(&r.queue);
	um_vec_fini(&r.counted);
	return err;
}
