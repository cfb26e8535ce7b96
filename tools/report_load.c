/* SPDX-License-Identifier: Apache-2.0 */
#include "report_load.h"

#include "nsys_export.h"
#include "tool.h"

#include "io/log.h"
#include "io/nsys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct reading {
	struct um_report *report;
	const struct report_source *source;
	time_t begun; /* s */
	int terminal, shown;
};

static time_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static int show_progress(void *user, uint64_t rows, uint64_t of)
{
	struct reading *r = user;

	if (!r->terminal || now_s() - r->begun < 2)
		return 0;
	if (of)
		fprintf(stderr, "\r\033[K%s: %d %%", r->source->file, (int)(100.0 * (double)rows / (double)of));
	else
		fprintf(stderr, "\r\033[K%s: %llu rows", r->source->file, (unsigned long long)rows);
	r->shown = 1;
	return 0;
}

static void read_again(void *user)
{
	struct reading *r = user;

	um_report_reset(r->report);
	if (r->source->again)
		r->source->again(r->source->user);
}

void report_load_init(struct report_loaded *l, const struct um_report_options *o)
{
	um_report_init(&l->report, o);
	um_capture_init(&l->capture);
}

int report_load(struct report_loaded *l, const struct report_source *s)
{
	struct reading r = {.report = &l->report, .source = s, .begun = now_s(), .terminal = !s->quiet && isatty(2)};
	struct um_activity_sink *sink = s->sink ? s->sink : &l->report.sink;
	struct um_nsys_read_options ro = {.progress = show_progress, .again = read_again, .user = &r};
	struct um_log_read_options lo = {show_progress, &r};
	const char *path = s->file;
	struct um_diag diag;
	char line[800];
	int err, code;

	code = nsys_export_needed(path) ? nsys_export_make(s->verb, s->nsys, s->file, s->quiet, &path) : 0;
	if (code)
		return code;
	if (um_log_is(path))
		err = um_log_read(path, &lo, sink, &l->capture, &diag);
	else
		err = um_nsys_read(path, &ro, sink, &l->capture, &diag);
	nsys_export_remove();
	if (r.shown)
		fputs("\r\033[K", stderr);
	if (!err)
		err = um_report_finish(&l->report);
	if (err == -ENOMEM)
		um_diag_set(&diag, ENOMEM, 0, "no memory");
	if (err == -ESPIPE)
		um_diag_set(&diag, ESPIPE, 0, "its rows are in no order of time: expected -o FILE");
	else if (err)
		um_diag_set(&diag, -err, 0, "%s", strerror(-err)); /* where nothing was said yet */
	if (err) {
		um_diag_line(&diag, line, sizeof line);
		tool_say(s->verb, "%s", line);
	}
	return tool_exit_of(err);
}

void report_unload(struct report_loaded *l)
{
	um_capture_fini(&l->capture);
	um_report_fini(&l->report);
}
