/* SPDX-License-Identifier: Apache-2.0
 *
 * Activities that the report filters out are not drawn. Rows that are out of order are read again, and the output
 * restarts.
 */
#include "report_form.h"

#include "formats/nsys.h"

#include <errno.h>
#include <stdio.h>

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct report_perfetto *t = (struct report_perfetto *)sink;
	uint64_t before = t->report->activities;
	int err = um_activity_feed(&t->report->sink, a);

	if (err || t->report->activities == before)
		return err;
	return t->err ? t->err : um_activity_feed(um_perfetto_sink(t->file), a);
}

/* The CPU's address map finds migrations that the CPU caused. */
static const char *tensor(void *user, const struct um_activity *a)
{
	struct report_perfetto *t = user;
	int asked = a->kind == UM_ACT_HINT || a->kind == UM_ACT_CPU_FAULT ||
		    (a->kind == UM_ACT_MIGRATION && a->cause == UM_CAUSE_PREFETCH);

	return !a->address ? NULL : um_report_tensor_at(t->report, a->process, a->address, !asked);
}

static int begin(struct report_perfetto *t, struct um_diag *diag)
{
	struct um_perfetto_options o = {.capture = t->capture, .tensor = tensor, .user = t};

	return um_perfetto_open(&t->file, t->path, &o, diag);
}

int report_perfetto_open(struct report_perfetto *t, const char *path, struct um_report *report,
			 const struct um_capture *capture, struct um_diag *diag)
{
	*t = (struct report_perfetto){.sink = {feed}, .report = report, .capture = capture, .path = path};
	return begin(t, diag);
}

void report_perfetto_again(struct report_perfetto *t)
{
	um_perfetto_close(t->file, 0, NULL);
	t->file = NULL;
	t->err = strcmp(t->path, "-") == 0 ? -ESPIPE : begin(t, NULL);
}

int report_perfetto_close(struct report_perfetto *t, int keep, struct um_diag *diag)
{
	return um_perfetto_close(t->file, keep, diag);
}

int report_perfetto_convert(const char *from, const char *to, int (*progress)(void *user, uint64_t rows, uint64_t of),
			    void *user, struct um_diag *diag)
{
	struct um_nsys_read_options ro = {.progress = progress, .user = user};
	struct um_report_options o = {0};
	struct um_report report;
	struct um_capture capture;
	struct report_perfetto t;
	int err;

	um_report_init(&report, &o);
	um_capture_init(&capture);
	err = report_perfetto_open(&t, to, &report, &capture, diag);
	if (!err) {
		err = um_nsys_read(from, &ro, &t.sink, &capture, diag);
		if (err)
			um_diag_set(diag, -err, 0, "%s", strerror(-err)); /* if no reason was set */
		if (report_perfetto_close(&t, !err, diag) && !err)
			err = -EIO;
	}
	um_capture_fini(&capture);
	um_report_fini(&report);
	return err;
}
