/* SPDX-License-Identifier: Apache-2.0 */
#include "report_html.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void lines(const struct html *h, const char *const *line)
{
	while (*line)
		um_out_str(h->out, *line++);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void head(const struct html *h)
{
	um_out_str(h->out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
			   "<meta name=\"color-scheme\" content=\"light dark\">\n"
			   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
			   "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>");
	um_out_html(h->out, base_name(h->v->file), 120);
	um_out_str(h->out, " - umadvise report</title>\n<style>\n");
	lines(h, html_css);
	um_out_str(h->out, "</style>\n</head>\n<body>\n");
}

/* The recorded program, device and time. */
static void header(const struct html *h)
{
	const struct um_capture *c = h->v->findings.capture;
	const struct um_report *r = h->v->findings.report;
	char a[HTML_ROOM];

	um_out_str(h->out, "<header>\n<p class=\"by\">umadvise report</p>\n<h1>");
	html_name(h, base_name(h->v->file), 80);
	um_out_str(h->out, "</h1>\n<p class=\"of\">");
	for (int i = 0; h->a->merge && i < h->a->n_files && i < HTML_FILES; i++) {
		um_out_str(h->out, "<span>");
		html_name(h, base_name(h->a->files[i]), 60);
		um_out_str(h->out, "</span>");
	}
	if (h->a->merge)
		um_out_str(h->out, h->a->n_files > HTML_FILES ? "<span>...</span></p>\n<p class=\"of\">"
							      : "</p>\n<p class=\"of\">");
	for (size_t i = 0; i < c->devices.n && i < 8; i++) {
		um_out_str(h->out, "<span>");
		html_name(h, c->devices.at[i].name ? c->devices.at[i].name : "a device", 60);
		if (c->devices.at[i].memory_bytes)
			html_f(h, ", %s", html_bytes(a, c->devices.at[i].memory_bytes));
		um_out_str(h->out, "</span>");
	}
	html_f(h, "<span>%s of activity</span>", html_ns(a, um_report_longest(r)));
	if (r->processes.n > 1)
		html_f(h, "<span>%zu processes</span>", r->processes.n);
	if (*c->product) {
		um_out_str(h->out, isdigit((unsigned char)*c->product) ? "<span>Nsight Systems " : "<span>");
		um_out_html(h->out, c->product, 64);
		um_out_str(h->out, "</span>");
	}
	um_out_str(h->out, "</p>\n");
}

/* Why a table has no data: "not recorded", "unknown"; NULL: it has. */
static const char *unseen(const struct html *h, const char *table)
{
	const struct um_capture *c = h->v->findings.capture;

	for (size_t i = 0; i < c->missing.n; i++)
		if (strcmp(c->missing.at[i].table, table) == 0 && c->missing.at[i].state != UM_ABSENT_NONE)
			return um_absence_word(c->missing.at[i].state);
	return NULL;
}

#define GPU_FAULTS "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
#define CPU_FAULTS "CUDA_UM_CPU_PAGE_FAULT_EVENTS"

/* The summary sentence. */
static void in_short(const struct html *h)
{
	char text[900];

	report_short(h->v, text, sizeof text);
	um_out_str(h->out, "<p class=\"short\">");
	um_out_html(h->out, text, sizeof text);
	um_out_str(h->out, "</p>\n");
}

static void library_in_short(const struct html *h, const struct um_capture_library *l)
{
	char a[HTML_ROOM], b[HTML_ROOM], c[HTML_ROOM];

	html_f(h,
	       "<p class=\"short\">In %s iterations the program announced %s operations and the library issued "
	       "%s hints.</p>\n",
	       html_count(a, l->iterations), html_count(b, l->counts[UM_LIBRARY_OPS]),
	       html_count(c, l->counts[UM_LIBRARY_ISSUED]));
}

/* The verdict, if there is one. */
static void verdict(const struct html *h)
{
	const struct um_verdict *v = h->v->findings.verdict;
	char a[HTML_ROOM], b[HTML_ROOM], c[HTML_ROOM], d[HTML_ROOM];

	if (!v || !v->iteration_ns || !v->bound_ns)
		return;
	html_f(h,
	       "<p class=\"short\">An iteration takes %s, <b>%.2f times</b> the lower bound of %s for any plan with "
	       "%s (without recomputation); the library plans %s.</p>\n",
	       html_ns(a, v->iteration_ns), (double)v->iteration_ns / (double)v->bound_ns, html_ns(b, v->bound_ns),
	       html_bytes(c, v->budget_bytes), html_ns(d, v->plan_ns));
}

static void notes(const struct html *h)
{
	const struct um_capture *c = h->v->findings.capture;
	size_t n = c->notes.n + h->v->n_notes;

	if (!n)
		return;
	um_out_str(h->out, "<aside class=\"notes\">\n");
	for (size_t i = 0; i < n; i++) {
		um_out_str(h->out, "<p>");
		html_name(h, i < c->notes.n ? c->notes.at[i] : h->v->notes[i - c->notes.n], 600);
		um_out_str(h->out, "</p>\n");
	}
	um_out_str(h->out, "</aside>\n");
}

/* `exact` is the unrounded number. */
static void tile(const struct html *h, const char *title, const char *value, uint64_t exact, const char *unit,
		 const char *below)
{
	html_f(h, "<li><span>%s</span><b title=\"%llu%s\">%s</b><small>%s</small></li>\n", title,
	       (unsigned long long)exact, unit, value, below);
}

static void iteration_tile(const struct html *h)
{
	const struct um_report *r = h->v->findings.report;
	char a[HTML_ROOM], b[HTML_ROOM], below[3 * HTML_ROOM];

	if (!r->iterations.n)
		return;
	snprintf(below, sizeof below, "median of %zu, &plusmn;&nbsp;%s", r->iterations.n, html_ns(b, r->mad_ns));
	tile(h, "An iteration", html_ns(a, r->median_ns), r->median_ns, " ns", below);
}

/* A number of faults, if they were recorded. */
static void fault_tile(const struct html *h, const char *title, const char *table, uint64_t n, const char *below)
{
	const char *why = unseen(h, table);
	char a[HTML_ROOM];

	if (why && !n)
		html_f(h, "<li><span>%s</span><b>&ndash;</b><small>%s</small></li>\n", title, why);
	else
		tile(h, title, html_count(a, n), n, "", below);
}

static void tiles(const struct html *h)
{
	const struct um_report_sums *s = &h->v->findings.report->all;
	const struct um_report_moves *in = s->moves[UM_DIR_H2D], *out = s->moves[UM_DIR_D2H];
	char a[HTML_ROOM], b[HTML_ROOM], below[3 * HTML_ROOM];

	um_out_str(h->out, "<ul class=\"tiles\">\n");
	iteration_tile(h);
	snprintf(below, sizeof below, "of %s in kernels", html_ns(b, s->work.ns));
	if (s->work.fault_ns || !unseen(h, GPU_FAULTS))
		tile(h, "Faults being served", html_ns(a, s->work.fault_ns), s->work.fault_ns, " ns", below);
	else
		tile(h, "In kernels", html_ns(a, s->work.ns), s->work.ns, " ns", "");
	snprintf(below, sizeof below, "in %s groups", html_count(b, s->fault_groups));
	fault_tile(h, "GPU page faults", GPU_FAULTS, s->work.faults, below);
	fault_tile(h, "CPU page faults", CPU_FAULTS, s->cpu_faults, "");
	snprintf(below, sizeof below, "%s prefetched", html_bytes(b, in[UM_CAUSE_PREFETCH].bytes));
	tile(h, "To the device", html_bytes(a, um_report_moved(s, UM_DIR_H2D)), um_report_moved(s, UM_DIR_H2D),
	     " bytes", below);
	snprintf(below, sizeof below, "%s evicted", html_bytes(b, out[UM_CAUSE_EVICTION].bytes));
	tile(h, "To the host", html_bytes(a, um_report_moved(s, UM_DIR_D2H)), um_report_moved(s, UM_DIR_D2H), " bytes",
	     below);
	um_out_str(h->out, "</ul>\n");
}

/* The library's own counters. */
static void library_tiles(const struct html *h, const struct um_capture_library *l)
{
	const uint64_t *n = l->counts;
	char a[HTML_ROOM], b[HTML_ROOM], below[3 * HTML_ROOM];

	um_out_str(h->out, "<ul class=\"tiles\">\n");
	iteration_tile(h);
	snprintf(below, sizeof below, "of %s iterations", html_count(b, l->iterations));
	tile(h, "Off the schedule", html_count(a, n[UM_LIBRARY_LEFT]), n[UM_LIBRARY_LEFT], "", below);
	snprintf(below, sizeof below, "%s refused", html_count(b, n[UM_LIBRARY_REFUSED]));
	tile(h, "Hints given", html_count(a, n[UM_LIBRARY_ISSUED]), n[UM_LIBRARY_ISSUED], "", below);
	tile(h, "Prefetched", html_bytes(a, n[UM_LIBRARY_PREFETCH]), n[UM_LIBRARY_PREFETCH], " bytes", "");
	snprintf(below, sizeof below, "%s dropped", html_bytes(b, n[UM_LIBRARY_DISCARD]));
	tile(h, "Evicted", html_bytes(a, n[UM_LIBRARY_EVICT]), n[UM_LIBRARY_EVICT], " bytes", below);
	snprintf(below, sizeof below, "budget %s", html_bytes(b, l->budget_bytes));
	tile(h, "Alive at most", html_bytes(a, l->levels[UM_LIBRARY_LIVE_PEAK]), l->levels[UM_LIBRARY_LIVE_PEAK],
	     " bytes", below);
	um_out_str(h->out, "</ul>\n");
}

void report_html(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	const struct um_capture_library *l = &v->findings.capture->library;
	const struct html h = {out, a, v};

	head(&h);
	header(&h);
	if (l->is)
		library_in_short(&h, l);
	else
		in_short(&h);
	verdict(&h);
	notes(&h);
	um_out_str(out, "</header>\n<main>\n");
	html_findings(&h);
	if (l->is)
		library_tiles(&h, l);
	else
		tiles(&h);
	html_time(&h);
	html_iterations(&h);
	html_heat(&h);
	html_causes(&h);
	html_tables(&h);
	um_out_str(out, "</main>\n<footer>Made by umadvise report. This file fetches nothing.</footer>\n<script>\n");
	lines(&h, html_js);
	um_out_str(out, "</script>\n</body>\n</html>\n");
}
