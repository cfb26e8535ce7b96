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

/* What was recorded, and on what. */
static void header(const struct html *h)
{
	const struct um_capture *c = h->v->findings.capture;
	const struct um_report *r = h->v->findings.report;
	char a[HTML_ROOM];

	um_out_str(h->out, "<header>\n<p class=\"by\">umadvise report</p>\n<h1>");
	html_name(h, base_name(h->v->file), 80);
	um_out_str(h->out, "</h1>\n<p class=\"of\">");
	for (size_t i = 0; i < c->devices.n && i < 8; i++) {
		um_out_str(h->out, "<span>");
		html_name(h, c->devices.at[i].name ? c->devices.at[i].name : "a device", 60);
		if (c->devices.at[i].memory_bytes)
			html_f(h, ", %s", html_bytes(a, c->devices.at[i].memory_bytes));
		um_out_str(h->out, "</span>");
	}
	html_f(h, "<span>%s of activity</span>", html_ns(a, (uint64_t)r->last_ns - (uint64_t)r->first_ns));
	if (r->processes.n > 1)
		html_f(h, "<span>%zu processes</span>", r->processes.n);
	if (*c->product) {
		um_out_str(h->out, isdigit((unsigned char)*c->product) ? "<span>Nsight Systems " : "<span>");
		um_out_html(h->out, c->product, 64);
		um_out_str(h->out, "</span>");
	}
	um_out_str(h->out, "</p>\n");
}

/* In one sentence: how bad is it? */
static void in_short(const struct html *h)
{
	const struct um_report_sums *s = &h->v->findings.report->all;
	uint64_t demand =
		s->moves[UM_WAY_H2D][UM_CAUSE_DEMAND].bytes + s->moves[UM_WAY_H2D][UM_CAUSE_SPECULATIVE].bytes;
	uint64_t in = um_report_moved(s, UM_WAY_H2D), out = um_report_moved(s, UM_WAY_D2H);
	char a[HTML_ROOM], b[HTML_ROOM], c[HTML_ROOM];

	um_out_str(h->out, "<p class=\"short\">");
	if (s->work.fault_ns)
		html_f(h, "Kernels ran for %s, and for %.3g&nbsp;%% of that page faults were being served. ",
		       html_ns(a, s->work.ns), 100 * (double)s->work.fault_ns / (double)s->work.ns);
	else if (s->work.launches)
		html_f(h, "Kernels ran for %s; no page fault was seen to hold one up. ", html_ns(a, s->work.ns));
	if (in || out)
		html_f(h, "%s of managed memory came to the device, %s of it on demand, and %s went back.",
		       html_bytes(a, in), html_bytes(b, demand), html_bytes(c, out));
	else
		um_out_str(h->out, "No managed memory was seen to move.");
	um_out_str(h->out, "</p>\n");
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

/* `exact` is what the number is, to the last digit. */
static void tile(const struct html *h, const char *title, const char *value, uint64_t exact, const char *unit,
		 const char *below)
{
	html_f(h, "<li><span>%s</span><b title=\"%llu%s\">%s</b><small>%s</small></li>\n", title,
	       (unsigned long long)exact, unit, value, below);
}

static void tiles(const struct html *h)
{
	const struct um_report *r = h->v->findings.report;
	const struct um_report_sums *s = &r->all;
	const struct um_report_moves *in = s->moves[UM_WAY_H2D], *out = s->moves[UM_WAY_D2H];
	char a[HTML_ROOM], b[HTML_ROOM], below[3 * HTML_ROOM];

	um_out_str(h->out, "<ul class=\"tiles\">\n");
	if (r->iterations.n) {
		snprintf(below, sizeof below, "median of %zu, &plusmn;&nbsp;%s", r->iterations.n,
			 html_ns(b, r->mad_ns));
		tile(h, "An iteration", html_ns(a, r->median_ns), r->median_ns, " ns", below);
	}
	snprintf(below, sizeof below, "of %s in kernels", html_ns(b, s->work.ns));
	tile(h, "Faults being served", html_ns(a, s->work.fault_ns), s->work.fault_ns, " ns", below);
	snprintf(below, sizeof below, "in %s groups", html_count(b, s->fault_groups));
	tile(h, "GPU page faults", html_count(a, s->work.faults), s->work.faults, "", below);
	tile(h, "CPU page faults", html_count(a, s->cpu_faults), s->cpu_faults, "", "");
	snprintf(below, sizeof below, "%s prefetched", html_bytes(b, in[UM_CAUSE_PREFETCH].bytes));
	tile(h, "To the device", html_bytes(a, um_report_moved(s, UM_WAY_H2D)), um_report_moved(s, UM_WAY_H2D),
	     " bytes", below);
	snprintf(below, sizeof below, "%s evicted", html_bytes(b, out[UM_CAUSE_EVICTION].bytes));
	tile(h, "To the host", html_bytes(a, um_report_moved(s, UM_WAY_D2H)), um_report_moved(s, UM_WAY_D2H), " bytes",
	     below);
	um_out_str(h->out, "</ul>\n");
}

void report_html(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	const struct html h = {out, a, v};

	head(&h);
	header(&h);
	in_short(&h);
	notes(&h);
	um_out_str(out, "</header>\n<main>\n");
	html_findings(&h);
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
