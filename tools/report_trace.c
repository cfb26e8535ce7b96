/* SPDX-License-Identifier: Apache-2.0
 *
 * What the report leaves out is not drawn, either. Rows that turn out to be in no order of time are read again, and the
 * file is begun anew.
 */
#include "report_form.h"

#include <errno.h>

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct report_trace *t = (struct report_trace *)sink;
	uint64_t before = t->report->activities;
	int err = um_activity_feed(&t->report->sink, a);

	if (err || t->report->activities == before)
		return err;
	return t->err ? t->err : um_activity_feed(um_perfetto_sink(t->file), a);
}

static int begin(struct report_trace *t, struct um_diag *diag)
{
	struct um_perfetto_options o = {.capture = t->capture};

	return um_perfetto_open(&t->file, t->path, &o, diag);
}

int report_trace_open(struct report_trace *t, const struct report_args *a, struct um_report *report,
                      const struct um_capture *capture, struct um_diag *diag)
{
	*t = (struct report_trace){.sink = {feed}, .report = report, .capture = capture, .path = a->output};
	return begin(t, diag);
}

void report_trace_again(struct report_trace *t)
{
	um_perfetto_close(t->file, 0, NULL);
	t->file = NULL;
	t->err = strcmp(t->path, "-") == 0 ? -ESPIPE : begin(t, NULL);
}

int report_trace_close(struct report_trace *t, int keep, struct um_diag *diag)
{
	return um_perfetto_close(t->file, keep, diag);
}
