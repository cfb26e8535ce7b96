/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings as cards: the problem and its saving, the observation, the advice.
 */
#include "report_html.h"

#include <stdio.h>

#define FIRST 4 /* cards that are open */
#define MOST 50
#define NAME 80

/* The problem, its place and its iterations. */
static void what(const struct html *h, const struct um_finding *f)
{
	const struct um_report *r = h->v->findings.report;
	char a[HTML_ROOM];

	um_out_html(h->out, um_reason_name(f->reason), 80);
	if (f->tensors > 1)
		html_f(h, ": %s tensors", html_count(a, f->tensors));
	if (f->tensors <= 1 && f->tensor != UM_CAUSES_NONE) {
		um_out_str(h->out, ": ");
		html_name(h, um_report_tensor_name(r, f->tensor), NAME);
	}
	if (f->tensors <= 1 && f->op != UM_CAUSES_NONE) {
		um_out_str(h->out, " in ");
		html_name(h, r->ops.at[f->op].name, NAME);
	}
}

static void figures(const struct html *h, const struct um_finding *f)
{
	char a[HTML_ROOM];

	um_out_str(h->out, "<p class=\"figures\">");
	if (f->saving_ns)
		html_f(h, "<span><b>would save %s</b>%s, %.1f&nbsp;%%</span>", html_ns(a, f->saving_ns),
		       h->v->findings.report->findings.iterations ? " an iteration" : "", 100 * f->share);
	else if (f->reason == UM_REASON_WAITED)
		html_f(h, "<span><b>waits %.1f&nbsp;%%</b> of %s</span>", 100 * f->share,
		       h->v->findings.report->findings.iterations || f->resident_ns ? "the time of an iteration"
										    : "the run");
	if (f->iterations)
		html_f(h, "<span>iterations %llu to %llu</span>", (unsigned long long)f->first,
		       (unsigned long long)f->last);
	if (f->process != UM_CAUSES_NONE && f->processes < h->v->findings.report->processes.n) {
		html_f(h, "<span>in %llu of %zu processes: %s", (unsigned long long)f->processes,
		       h->v->findings.report->processes.n, f->processes > 1 ? "most in " : "");
		html_process(h, f->process);
		um_out_str(h->out, "</span>");
	}
	um_out_str(h->out, "</p>\n");
}

static void paragraph(const struct html *h, const char *class, const char *label, const char *text)
{
	html_f(h, "<p%s>%s", class, label);
	html_name(h, text, 2000);
	um_out_str(h->out, "</p>\n");
}

static void card(const struct html *h, const struct um_finding *f)
{
	html_f(h, "<article class=\"finding %s\">\n<h3><span class=\"badge\">%s</span>", um_severity_name(f->severity),
	       um_severity_name(f->severity));
	what(h, f);
	um_out_str(h->out, "</h3>\n");
	figures(h, f);
	paragraph(h, "", "", f->evidence);
	paragraph(h, " class=\"do\"", "<b>Do:</b> ", f->advice);
	paragraph(h, " class=\"how\"", "Estimated: ", f->estimate);
	um_out_str(h->out, "</article>\n");
}

void html_findings(const struct html *h)
{
	const struct um_finding_list *f = &h->v->findings.report->findings;
	char about[160];

	if (f->iterations)
		snprintf(about, sizeof about, "%sIn the later half of the iterations (%llu), after warm-up.",
			 f->list.n ? "" : "None. ", (unsigned long long)f->iterations);
	else
		snprintf(about, sizeof about, "%sIn the whole recording: it has no iterations.",
			 f->list.n ? "" : "None. ");
	html_heading(h, "Findings", about);
	for (size_t i = 0; i < f->list.n && i < MOST; i++) {
		if (i == FIRST)
			html_f(h, "<details class=\"rest\"><summary>%zu more</summary>\n", f->list.n - FIRST);
		card(h, &f->list.at[i]);
	}
	if (f->list.n > MOST)
		html_f(h, "<p class=\"more\">and %zu more: <code>--report findings:rows=%zu</code></p>\n",
		       f->list.n - MOST, f->list.n);
	um_out_str(h->out, f->list.n > FIRST ? "</details>\n" : "");
}
