/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_report.c - umadvise report: page faults and migrations of a recorded run
 */
#include "report_form.h"
#include "report_load.h"
#include "report_verdict.h"
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define PROCESSES_TOLD 3 /* in notes */

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

/* The most frequent range name that could mark iterations. */
static const struct um_report_range *likely(const struct um_report *r)
{
	const struct um_report_range *best = NULL;

	for (size_t i = 0; i < r->ranges.n; i++)
		if (r->ranges.at[i].n > 1 && (!best || r->ranges.at[i].ns > best->ns))
			best = &r->ranges.at[i];
	return best;
}

/* Notes on repetitions that were taken as iterations. */
static void note_repetitions(struct report_view *v)
{
	const struct um_report *r = v->findings.report;
	unsigned told = 0, found = 0;

	for (size_t i = 0; i < r->processes.n; i++) {
		const struct um_iteration_spans_process *p = r->processes.at[i].found;
		unsigned long long pid =
			(unsigned long long)um_table_pid(&v->findings, r->processes.at[i].process).number;

		found += p && p->spans.n;
		if (!p || !p->spans.n || told == PROCESSES_TOLD)
			continue;
		told++;
		note(v,
		     "process %llu: no marked iterations: using %zu repetitions, most of %llu kernels, with %.1f %% "
		     "of the kernel time, each beginning with %s; confidence: %s",
		     pid, p->spans.n, (unsigned long long)p->kernels, 100 * p->covered, p->first,
		     um_period_trust_name(p->trust));
		if (p->other)
			note(v, "process %llu: a sequence of %llu kernels repeats, too, and may be the iteration", pid,
			     (unsigned long long)p->other);
	}
	if (found > told)
		note(v, "iterations of %u other processes are repetitions, too: see --report processes", found - told);
}

/* Notes on iterations that the program did not mark. */
static void note_found(struct report_view *v, const struct report_loaded *l)
{
	const char *before = "";
	uint64_t skipped = 0;

	note_repetitions(v);
	for (int i = 0; i < l->n_found; i++) {
		const struct um_iteration_spans *f = &l->found[i];

		skipped += f->skipped;
		if (!f->name || strcmp(f->name, before) == 0)
			continue;
		before = f->name;
		note(v,
		     "no --iteration given: using ranges '%s%s%s': %.1f %% of the kernel time begins in them%s%s%s; "
		     "--iteration selects others",
		     f->domain ? f->domain : "", f->domain ? ":" : "", f->name, 100 * f->covered,
		     f->rival ? "; nearly all begins in '" : "", f->rival ? f->rival : "", f->rival ? "', too" : "");
	}
	if (skipped)
		note(v, "the search for iterations left out the last %llu kernels", (unsigned long long)skipped);
}

static void note_no_iterations(struct report_view *v)
{
	const struct um_report *r = v->findings.report;
	const struct um_report_range *best = likely(r);
	int asked = r->o.seek == UM_SEEK_PATTERN;
	int kernels = r->o.found && r->all.work.launches;
	const char *why = asked	    ? "no NVTX range is called "
			  : kernels ? "kernels do not repeat regularly"
				    : "no NVTX range of the domain " UM_REPORT_DOMAIN;

	if (!best && !asked && !r->all.work.launches)
		return; /* no candidate */
	if (best)
		note(v, "no iterations: %s%s; perhaps --iteration '%s%s%s' (%llu ranges)?", why,
		     asked ? r->o.iteration : "", best->domain ? best->domain : "", best->domain ? ":" : "", best->name,
		     (unsigned long long)best->n);
	else
		note(v, "no iterations: %s%s", why, asked ? r->o.iteration : "");
}

static void add_notes(struct report_view *v, const struct report_loaded *l)
{
	const struct um_report *r = v->findings.report;

	note_found(v, l);
	if (!r->iterations.n && r->o.seek != UM_SEEK_NONE && !v->findings.capture->library.is)
		note_no_iterations(v);
	if (r->ranges_skipped)
		note(v, "%llu matching ranges lie inside an iteration or on another thread: not counted as iterations",
		     (unsigned long long)r->ranges_skipped);
	if (r->by_time)
		note(v,
		     "%llu kernels and copies are assigned to iterations by time: the calls that enqueued them were "
		     "not recorded",
		     (unsigned long long)r->by_time);
	if (v->findings.capture->marks_damaged)
		note(v, "%llu marks of the domain " UM_REPORT_DOMAIN " are not understood",
		     (unsigned long long)v->findings.capture->marks_damaged);
	if (r->cells_skipped)
		note(v, "op-iterations: too many rows, %llu launches are left out",
		     (unsigned long long)r->cells_skipped);
	if (r->tensors.cells_skipped)
		note(v, "tensor-iterations: too many rows, %llu faults and migrations are left out",
		     (unsigned long long)r->tensors.cells_skipped);
}

/* Does the file have data of unified memory? Otherwise prints in one line how to record it. */
static int has_data(const struct report_view *v)
{
	const struct um_report *r = v->findings.report;
	const struct um_capture *c = v->findings.capture;
	char options[256] = "";
	size_t n = 0;

	if (c->library.is)
		return 1; /* a run log never has any and notes so itself */
	if (um_report_moved(&r->all, UM_DIR_H2D) || um_report_moved(&r->all, UM_DIR_D2H) ||
	    um_report_moved(&r->all, UM_DIR_D2D) || r->all.fault_groups || r->all.cpu_faults)
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

static int report_reason(const struct um_diag *diag, int code)
{
	char line[800];

	um_diag_line(diag, line, sizeof line);
	tool_say("report", "%s", line);
	return code;
}

static void perfetto_again(void *user)
{
	report_perfetto_again(user);
}

/* NULL: all files together */
static int report_file(const struct report_args *a, const char *file, const struct um_verdict *verdict,
		       struct um_out *out, int *shown)
{
	struct report_source source = {.verb = "report", .file = file, .nsys = a->nsys, .quiet = a->quiet};
	char title[32];
	struct report_view v = {.file = file ? file : title};
	struct um_verdict near;
	struct report_loaded l;
	struct report_perfetto timeline;
	struct um_diag diag;
	int timed = a->format == REPORT_PERFETTO, code, done;

	snprintf(title, sizeof title, "%d file%s", a->n_files, a->n_files == 1 ? "" : "s");
	report_load_init(&l, &a->o);
	if (timed && report_perfetto_open(&timeline, a->output, &l.report, &l.capture, &diag)) {
		report_unload(&l);
		return report_reason(&diag, TOOL_INTERNAL);
	}
	if (timed) {
		source.sink = &timeline.sink;
		source.again = perfetto_again;
		source.user = &timeline;
	}
	code = file ? report_load(&l, &source) : report_load_merged(&l, &source, a->files, a->n_files);
	done = !code;
	if (done) {
		near = *verdict;
		near.iteration_ns = l.report.findings.iterations ? l.report.findings.iteration_ns : 0;
		v.findings = (struct um_findings){&l.report, &l.capture, a->workload ? &near : NULL};
		add_notes(&v, &l);
		if (!timed)
			show(out, a, &v);
		*shown = 1;
		code = !has_data(&v) ? TOOL_REFUSED : report_fails(a, &l.report) ? TOOL_FAILED : TOOL_DONE;
	}
	if (timed && report_perfetto_close(&timeline, done, &diag))
		code = report_reason(&diag, TOOL_INTERNAL);
	report_unload(&l);
	return code;
}

/* A file given twice would be counted twice. */
static int same_twice(const struct report_args *a)
{
	struct stat one, other;

	for (int i = 0; i < a->n_files; i++)
		for (int k = 0; k < i; k++)
			if (!stat(a->files[i], &one) && !stat(a->files[k], &other) && one.st_ino == other.st_ino &&
			    one.st_dev == other.st_dev) {
				tool_say("report", "--merge: %s and %s are the same file", a->files[k], a->files[i]);
				return 1;
			}
	return 0;
}

static int run(int argc, char **argv)
{
	struct report_args a;
	struct um_verdict verdict = {0};
	struct um_out *out;
	struct um_diag diag;
	int code = report_args_read(&a, &verb_report, argc, argv), err, shown = 0;

	if (code != ARGS_GO_ON)
		return code;
	code = TOOL_DONE;
	if (a.merge && same_twice(&a))
		return TOOL_USAGE;
	if (a.workload)
		code = report_verdict_find(&a, &verdict);
	if (code)
		return code;
	if (a.format == REPORT_PERFETTO)
		return report_file(&a, a.files[0], &verdict, NULL, &shown);
	err = um_out_open(&out, a.output ? a.output : "-", &diag);
	for (int i = 0; i < (a.merge ? 1 : a.n_files) && !err; i++) {
		int one = report_file(&a, a.merge ? NULL : a.files[i], &verdict, out, &shown);

		code = one > code ? one : code;
		if (i + 1 < a.n_files && !a.merge && a.format == REPORT_TABLE)
			um_out_str(out, "\n");
	}
	if (!err)
		err = um_out_close(out, shown, &diag);
	return err ? report_reason(&diag, TOOL_INTERNAL) : code;
}

const struct tool_verb verb_report = {
	.name = "report",
	.run = run,
	.what = "show page faults and migrations of a recorded run, and their causes",
	.synopsis = "report FILE... [OPTION]...",
	.about = "Shows the page faults and migrations of a run by tensor, kernel, iteration and cause, from an "
		 "export of Nsight Systems (nsys export --type sqlite). The library's own log "
		 "(UMADVISE_RUN_LOG=FILE) has iterations, tensors, operations and hints.",
	.options = report_options,
	.modes = REPORT_VERB,
	.tail = "Examples:\n"
		"  umadvise report run.sqlite --iteration 'Train step *'\n"
		"  umadvise report run.sqlite --report ops:rows=50 --format csv -o ops.csv\n"
		"  umadvise report run.sqlite --fail-on medium >/dev/null || echo unified memory costs time\n"
		"  umadvise report --merge rank*.sqlite --iteration 'Train step *'\n"
		"  umadvise report run.sqlite --format html -o report.html\n"
		"  umadvise report run.sqlite --format perfetto -o run.json.gz\n",
};
