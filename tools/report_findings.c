/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings for a terminal: a line with the problem, then the observation and the advice.
 */
#include "paint.h"
#include "report_form.h"
#include "table.h"
#include "tool.h"

#include <stdio.h>
#include <string.h>

#define INDENT 13 /* columns of a label */

static void paragraph(FILE *to, enum paint label_paint, const char *label, const char *text)
{
	fprintf(to, "%s  %-*s%s", label_paint ? paint(label_paint) : "", INDENT - 2, label,
		label_paint ? paint(PAINT_OFF) : "");
	table_wrap(to, INDENT, INDENT, tool_text(text)); /* names are untrusted */
}

/* The processes that are affected, if not all are. */
static void whose(const struct report_view *v, const struct um_finding *f, char *to, size_t size)
{
	const struct um_report *r = v->findings.report;
	const char *file;

	*to = '\0';
	if (r->processes.n < 2 || f->process == UM_CAUSES_NONE || f->processes == r->processes.n)
		return;
	file = um_table_file(&v->findings, r->processes.at[f->process].process).text;
	snprintf(to, size, ", in %llu of %zu processes (%spid %lld%s%.80s)", (unsigned long long)f->processes,
		 r->processes.n, f->processes > 1 ? "most in " : "",
		 (long long)um_table_pid(&v->findings, r->processes.at[f->process].process).number, file ? " of " : "",
		 file ? file : "");
}

static void show(FILE *to, const struct report_args *a, const struct report_view *v, const struct um_finding *f)
{
	const struct um_report *r = v->findings.report;
	char label[16], line[600], saves[96] = "", where[320] = "", in[160];

	if (f->saving_ns)
		snprintf(saves, sizeof saves,
			 ": would save %.3f %s%s (%.1f "
			 "%%)",
			 (double)f->saving_ns / a->unit_ns, a->unit, r->findings.iterations ? " an iteration" : "",
			 100 * f->share);
	else if (f->reason == UM_REASON_WAITED)
		snprintf(saves, sizeof saves, ": %.1f %% of %s", 100 * f->share,
			 r->findings.iterations || f->resident_ns ? "the time of an iteration" : "the run");
	whose(v, f, in, sizeof in);
	if (f->iterations)
		snprintf(where, sizeof where, ", iterations %llu to %llu%s", (unsigned long long)f->first,
			 (unsigned long long)f->last, in);
	if (f->tensors > 1)
		snprintf(line, sizeof line, "%s: %llu tensors%s%s", um_reason_name(f->reason),
			 (unsigned long long)f->tensors, where, saves);
	else
		snprintf(line, sizeof line, "%s%s%.80s%s%.80s%s%s", um_reason_name(f->reason),
			 f->tensor == UM_CAUSES_NONE ? "" : ": ",
			 f->tensor == UM_CAUSES_NONE ? "" : um_report_tensor_name(r, f->tensor),
			 f->op == UM_CAUSES_NONE ? ""
						 : " in "
						   "",
			 f->op == UM_CAUSES_NONE ? "" : r->ops.at[f->op].name, where, saves);
	snprintf(label, sizeof label, "%s", um_severity_name(f->severity));
	paragraph(to, PAINT_LOW - (enum paint)f->severity, label, line);
	paragraph(to, PAINT_OFF, "", f->evidence);
	paragraph(to, PAINT_OFF, "do", f->advice);
	paragraph(to, PAINT_OFF, "estimated", f->estimate);
}

void report_findings(FILE *to, const struct report_args *a, const struct report_choice *choice,
		     const struct report_view *v)
{
	const struct um_report *r = v->findings.report;
	const struct um_finding_list *f = &r->findings;
	size_t n = f->list.n, shown = choice->rows && choice->rows < n ? choice->rows : n;

	fprintf(to, "\n%sfindings%s: %s%s", paint(PAINT_HEADING), paint(PAINT_OFF), n ? "what costs time" : "none",
		f->iterations ? " in " : "");
	if (f->iterations)
		fprintf(to, "the later half of the iterations (%llu)%s\n", (unsigned long long)f->iterations,
			n ? ", and what to do" : "");
	else
		fprintf(to, ", over the whole recording: it has no iterations\n");
	for (size_t i = 0; i < shown; i++)
		show(to, a, v, &f->list.at[i]);
	if (shown < n)
		fprintf(to, "  and %zu more: --report findings:rows=%zu\n", n - shown, n);
}

int report_fails(const struct report_args *a, const struct um_report *r)
{
	for (size_t i = 0; i < r->findings.list.n && a->fail_on >= 0; i++)
		if ((int)r->findings.list.at[i].severity >= a->fail_on)
			return 1;
	return 0;
}
