/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_report.c - umadvise report: what unified memory did in a recorded run
 */
#include "report_form.h"
#include "tool.h"

#include "io/log.h"
#include "io/nsys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct reading {
	struct um_report report;
	struct report_trace *trace; /* or NULL */
	const char *file;
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
		fprintf(stderr, "\r\033[K%s: %d %%", r->file, (int)(100.0 * (double)rows / (double)of));
	else
		fprintf(stderr, "\r\033[K%s: %llu rows", r->file, (unsigned long long)rows);
	r->shown = 1;
	return 0;
}

static void read_again(void *user)
{
	struct reading *r = user;

	um_report_reset(&r->report);
	if (r->trace)
		report_trace_again(r->trace);
}

/* --- what a reader should know before trusting it ----------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) note(struct report_view *v, const char *fmt, ...)
{
	va_list ap;

	if (v->n_notes == REPORT_NOTES)
		return;
	va_start(ap, fmt);
	vsnprintf(v->notes[v->n_notes++], sizeof v->notes[0], fmt, ap);
	va_end(ap);
}

/* The commonest name that could be an iteration's. */
static const struct um_report_range *likely(const struct um_report *r)
{
	const struct um_report_range *best = NULL;

	for (size_t i = 0; i < r->ranges.n; i++)
		if (r->ranges.at[i].n > 1 && (!best || r->ranges.at[i].ns > best->ns))
			best = &r->ranges.at[i];
	return best;
}

static void add_notes(struct report_view *v, const struct report_args *a)
{
	const struct um_report *r = v->findings.report;
	const struct um_report_range *best = r->iterations.n ? NULL : likely(r);

	if (best)
		note(v, "no iterations: no NVTX range %s%s; perhaps --iteration '%s%s%s' (%llu ranges)?",
		     a->o.iteration ? "is called " : "of the domain ",
		     a->o.iteration ? a->o.iteration : UM_REPORT_DOMAIN, best->domain ? best->domain : "",
		     best->domain ? ":" : "", best->name, (unsigned long long)best->n);
	else if (!r->iterations.n && a->o.iteration)
		note(v, "no iterations: no NVTX range is called %s", a->o.iteration);
	if (r->ranges_skipped)
		note(v, "%llu ranges that match lie inside an iteration, or on another thread: they are none",
		     (unsigned long long)r->ranges_skipped);
	if (r->by_time)
		note(v, "%llu kernels and copies are assigned to iterations by time: which calls enqueued them was not "
		     "recorded", (unsigned long long)r->by_time);
	if (v->findings.capture->marks_damaged)
		note(v, "%llu marks of the domain " UM_REPORT_DOMAIN " are not understood",
		     (unsigned long long)v->findings.capture->marks_damaged);
	if (r->cells_skipped)
		note(v, "op-iterations: too many, %llu launches are in no row", (unsigned long long)r->cells_skipped);
	if (r->tensors.cells_skipped)
		note(v, "tensor-iterations: too many, %llu faults and migrations are in no row",
		     (unsigned long long)r->tensors.cells_skipped);
}

/* Was anything of unified memory looked at? Else, in a line, what would have to be recorded. */
static int has_data(const struct report_view *v)
{
	const struct um_report *r = v->findings.report;
	const struct um_capture *c = v->findings.capture;
	char options[256] = "";
	size_t n = 0;

	if (c->library.is)
		return 1; /* it never has any, and says so */
	if (um_report_moved(&r->all, UM_WAY_H2D) || um_report_moved(&r->all, UM_WAY_D2H) ||
	    um_report_moved(&r->all, UM_WAY_D2D) || r->all.fault_groups || r->all.cpu_faults)
		return 1;
	for (size_t i = 0; i < c->missing.n; i++) {
		const struct um_absence *m = &c->missing.at[i];

		if (!strstr(m->option, "-um-") || m->state == UM_ABSENT_NONE)
			continue;
		n += (size_t)snprintf(options + n, sizeof options - n, " %s", m->option);
	}
	if (c->has_cuda && !n)
		return 1;
	tool_say("report", "%s: no data of unified memory%s: record with nsys profile --trace=cuda,nvtx%s", v->file,
	         c->has_cuda ? ": no migration, and page faults were not recorded" : "", options);
	return 0;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void show(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	if (a->format == REPORT_JSON)
		report_json(out, a, v);
	else if (a->format == REPORT_CSV)
		report_csv(out, a, v);
	else if (a->format == REPORT_HTML)
		report_html(out, a, v);
	else
		report_text(out, a, v);
}

static int say_why(const struct um_diag *diag, int code)
{
	char line[800];

	um_diag_line(diag, line, sizeof line);
	tool_say("report", "%s", line);
	return code;
}

static int report_file(const struct report_args *a, const char *file, struct um_out *out, int *shown)
{
	struct reading r = {.file = file, .begun = now_s(), .terminal = !a->quiet && isatty(2)};
	struct um_nsys_read_options ro = {.progress = show_progress, .again = read_again, .user = &r};
	struct um_log_read_options lo = {show_progress, &r};
	struct report_view v = {.file = file};
	struct um_activity_sink *sink = &r.report.sink;
	struct report_trace trace;
	struct um_capture capture;
	struct um_diag diag;
	int err, code = TOOL_DONE;

	um_report_init(&r.report, &a->o);
	um_capture_init(&capture);
	if (a->format == REPORT_TRACE) {
		err = report_trace_open(&trace, a->output, &r.report, &capture, &diag);
		if (err)
			return say_why(&diag, TOOL_INTERNAL);
		r.trace = &trace;
		sink = &trace.sink;
	}
	if (um_log_is(file))
		err = um_log_read(file, &lo, sink, &capture, &diag);
	else
		err = um_nsys_read(file, &ro, sink, &capture, &diag);
	if (r.shown)
		fputs("\r\033[K", stderr);
	if (!err)
		err = um_report_finish(&r.report);
	if (err == -ENOMEM)
		um_diag_set(&diag, ENOMEM, 0, "no memory");
	if (err == -ESPIPE)
		um_diag_set(&diag, ESPIPE, 0, "its rows are in no order of time: expected -o FILE");
	else if (err)
		um_diag_set(&diag, -err, 0, "%s", strerror(-err)); /* where nothing was said yet */
	if (err) {
		code = say_why(&diag, tool_exit_of(err));
	} else {
		v.findings = (struct um_findings){&r.report, &capture};
		add_notes(&v, a);
		if (!r.trace)
			show(out, a, &v);
		*shown = 1;
		code = !has_data(&v) ? TOOL_REFUSED : report_fails(a, &r.report) ? TOOL_FAILED : TOOL_DONE;
	}
	if (r.trace && report_trace_close(&trace, !err, &diag))
		code = say_why(&diag, TOOL_INTERNAL);
	um_capture_fini(&capture);
	um_report_fini(&r.report);
	return code;
}

int cmd_report(int argc, char **argv)
{
	struct report_args a;
	struct um_out *out;
	struct um_diag diag;
	struct stat st;
	int code = report_args_read(&a, argc, argv), err, shown = 0;

	if (code)
		return code - 1;
	if (a.output && strcmp(a.output, "-") != 0 && !a.force && !stat(a.output, &st) && S_ISREG(st.st_mode)) {
		tool_say("report", "%s is there already: --force-overwrite writes over it", a.output);
		return TOOL_USAGE;
	}
	if (a.format == REPORT_TRACE)
		return report_file(&a, a.files[0], NULL, &shown);
	err = um_out_open(&out, a.output ? a.output : "-", &diag);
	for (int i = 0; i < a.n_files && !err; i++) {
		int one = report_file(&a, a.files[i], out, &shown);

		code = one > code ? one : code;
		if (i + 1 < a.n_files && a.format == REPORT_TABLE)
			um_out_str(out, "\n");
	}
	if (!err)
		err = um_out_close(out, shown, &diag);
	return err ? say_why(&diag, TOOL_INTERNAL) : code;
}
