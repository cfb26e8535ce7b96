/* SPDX-License-Identifier: Apache-2.0 */
#include "report_load.h"

#include "base/clock.h"
#include "nsys_export.h"
#include "report_survey.h"
#include "tool.h"

#include "io/log.h"
#include "formats/nsys.h"
#include "report/merge.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reading {
	const struct report_source *source;
	struct um_report *report;
	struct um_iteration_spans *found; /* of this file */
	struct um_activity_sink *sink;
	struct um_capture *capture;
	void (*again)(void *user);
	void *user;
	int sort; /* rows are out of order */
	int nth, of; /* file */
	uint64_t begun_ns;
	int terminal, shown;
};

static int show_progress(void *user, uint64_t rows, uint64_t of)
{
	struct reading *r = user;

	if (!r->terminal || um_clock_ns(CLOCK_MONOTONIC) - r->begun_ns < 2000000000u)
		return 0;
	fprintf(stderr, "\r\033[K%s: ", tool_text(r->source->file));
	if (r->of)
		fprintf(stderr, "file %d of %d, ", r->nth + 1, r->of);
	if (of)
		fprintf(stderr, "%d %%", (int)(100.0 * (double)rows / (double)of));
	else
		fprintf(stderr, "%llu rows", (unsigned long long)rows);
	r->shown = 1;
	return 0;
}

/* 0, -ECANCELED (silent: the sink stopped reading), or -errno after an error message; `code` is the exit code. */
static int read_file(struct reading *r, int *code)
{
	const struct report_source *s = r->source;
	struct um_nsys_read_options ro = {.progress = show_progress, .again = r->again, .user = r, .sort = r->sort};
	struct um_log_read_options lo = {show_progress, r};
	const char *path = s->file;
	struct um_diag diag;
	char line[800];
	int err;

	r->begun_ns = r->begun_ns ? r->begun_ns : um_clock_ns(CLOCK_MONOTONIC);
	r->terminal = !s->quiet && isatty(2);
	*code = nsys_export_needed(path) ? nsys_export_make(s->verb, s->nsys, s->file, s->quiet, &path) : 0;
	if (*code)
		return -EINVAL;
	um_diag_init(&diag, path);
	if (um_log_is(path))
		err = um_log_read(path, &lo, r->sink, r->capture, &diag);
	else if ((err = report_survey(r->report, r->found, path, show_progress, r)) == 0)
		err = um_nsys_read(path, &ro, r->sink, r->capture, &diag);
	nsys_export_remove();
	if (r->shown)
		fputs("\r\033[K", stderr);
	*code = tool_exit_of(err);
	if (!err || err == -ECANCELED)
		return err;
	if (err == -ENOMEM)
		um_diag_set(&diag, ENOMEM, 0, "no memory");
	if (err == -ESPIPE)
		um_diag_set(&diag, ESPIPE, 0, "its rows are not in order of time: expected -o FILE");
	else
		um_diag_set(&diag, -err, 0, "%s", strerror(-err)); /* if no reason was set */
	um_diag_line(&diag, line, sizeof line);
	tool_say(s->verb, "%s", line);
	return err;
}

static int no_memory(const struct report_source *s)
{
	tool_say(s->verb, "no memory");
	return TOOL_INTERNAL;
}

static int room_for(struct report_loaded *l, int files)
{
	l->found = calloc((size_t)files, sizeof *l->found);
	l->n_found = l->found ? files : 0;
	return l->found ? 0 : -ENOMEM;
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

static void read_again(void *user)
{
	struct reading *r = user;
	const struct report_source *s = r->source;

	um_report_reset(r->report);
	if (s->again)
		s->again(s->user);
}

void report_load_init(struct report_loaded *l, const struct um_report_options *o)
{
	um_report_init(&l->report, o);
	l->found = NULL;
	l->n_found = 0;
	um_capture_init(&l->capture);
	l->report.o.capture = l->report.causes.capture = &l->capture;
}

int report_load(struct report_loaded *l, const struct report_source *s)
{
	struct reading r = {.source = s,
			    .report = &l->report,
			    .sink = s->sink ? s->sink : &l->report.sink,
			    .capture = &l->capture,
			    .again = read_again};
	int code, err;

	if (room_for(l, 1))
		return no_memory(s);
	r.found = l->found;
	err = read_file(&r, &code);
	if (!err && um_report_finish(&l->report))
		return no_memory(s);
	return code;
}

/* --- several as one ----------------------------------------------------------------------------------------------- */

struct several {
	struct reading r; /* first */
	struct um_activity_sink sink;
	struct um_merge merge;
	struct um_iteration_spans *found; /* by file */
	char *unordered; /* by file: its rows are out of order */
	int reread; /* rows are fed again; only the list of unordered files is kept */
};

static int pass_on(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct several *all = (struct several *)((char *)sink - offsetof(struct several, sink));

	return all->unordered[all->r.nth] != all->r.sort ? -ECANCELED
	       : all->reread				 ? 0
							 : um_activity_feed(&all->merge.sink, a);
}

/* Rows of earlier files cannot be removed from the report, so all files are read again. */
static void not_in_order(void *user)
{
	struct several *all = user;

	all->reread = all->unordered[all->r.nth] = 1;
}

static int add_file(struct several *all, const struct report_source *s)
{
	struct um_capture of;
	int code = 0, err;

	um_capture_init(&of);
	all->r.source = s;
	all->r.capture = &of;
	all->merge.report->causes.capture = &of;
	all->r.sort = all->unordered[all->r.nth];
	all->r.found = all->merge.found = &all->found[all->r.nth];
	if (um_merge_begin(&all->merge))
		return no_memory(s);
	err = read_file(&all->r, &code);
	if (err == -ECANCELED)
		code = 0;
	if (!err && !all->reread) {
		err = um_merge_end(&all->merge, &of, s->file);
		if (err == -EINVAL)
			tool_say(s->verb, "%s: --merge accepts logs of the library or exports, not both", s->file);
		code = err == -EINVAL ? TOOL_USAGE : err ? no_memory(s) : 0;
	}
	all->merge.report->causes.capture = NULL;
	um_capture_fini(&of);
	return code;
}

int report_load_merged(struct report_loaded *l, const struct report_source *s, char **files, int n)
{
	struct several all = {.r = {.report = &l->report, .again = not_in_order, .of = n}, .sink = {pass_on}};
	int code = 0;

	all.r.sink = &all.sink;
	all.unordered = calloc((size_t)n, 1);
	if (!all.unordered || room_for(l, n)) {
		free(all.unordered);
		return no_memory(s);
	}
	all.found = l->found;
	um_merge_init(&all.merge, &l->report, &l->capture);
	do {
		if (all.reread)
			um_merge_reset(&all.merge);
		all.reread = 0;
		for (all.r.nth = 0; all.r.nth < n && !code; all.r.nth++) {
			struct report_source one = *s;

			one.file = files[all.r.nth];
			code = add_file(&all, &one);
		}
	} while (!code && all.reread);
	um_merge_finish(&all.merge);
	if (!code && um_report_finish(&l->report))
		code = no_memory(s);
	um_merge_fini(&all.merge);
	free(all.unordered);
	return code;
}

void report_unload(struct report_loaded *l)
{
	um_capture_fini(&l->capture);
	um_report_fini(&l->report);
	for (int i = 0; i < l->n_found; i++)
		um_iteration_spans_fini(&l->found[i]);
	free(l->found);
}
