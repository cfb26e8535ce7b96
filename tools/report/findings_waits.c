/* SPDX-License-Identifier: Apache-2.0 */
#include "report/findings_waits.h"

#include "report/report.h"

#include <stdio.h>

#define NAME 48 /* bytes of a name that are shown */

/* The longest first. */
static void rank(struct um_finding *f, uint32_t tensor, uint64_t amount)
{
	f->tensors++;
	for (unsigned i = 0; i < UM_FINDING_WAITS; i++) {
		uint32_t lower = f->top[i];
		uint64_t less = f->top_ns[i];

		if (less >= amount)
			continue;
		f->top[i] = tensor;
		f->top_ns[i] = amount;
		tensor = lower;
		amount = less;
	}
}

static void begin(struct um_finding *f)
{
	f->tensors = 0;
	for (unsigned i = 0; i < UM_FINDING_WAITS; i++)
		f->top[i] = UM_CAUSES_NONE;
}

void um_finding_waits(struct um_finding *f, const struct um_cause_row *rows, size_t n, uint64_t of)
{
	uint64_t most = 0, by_op = 0, by_tensor = 0;

	begin(f);
	for (size_t i = 0; i < n; i++) {
		int same = i && rows[i].tensor == rows[i - 1].tensor;

		if (!same && by_tensor)
			rank(f, rows[i - 1].tensor, by_tensor / of);
		by_tensor = same ? by_tensor : 0;
		by_op = same && rows[i].op == rows[i - 1].op ? by_op : 0;
		if (rows[i].reason != UM_REASON_WAITED)
			continue;
		by_tensor += rows[i].ns;
		by_op += rows[i].ns;
		if (by_op > most) {
			most = by_op;
			f->op = rows[i].op;
		}
	}
	if (by_tensor)
		rank(f, rows[n - 1].tensor, by_tensor / of);
	if (f->tensors == 1)
		f->tensor = f->top[0];
}

int um_finding_planned_waits(struct um_finding *f, const struct um_report *r)
{
	const struct um_capture_library *l = r->o.capture ? &r->o.capture->library : NULL;
	const struct um_hints *h = &r->causes.hints;
	uint64_t plan, resident;

	if (!l || !l->is)
		return 0;
	plan = l->levels[UM_LIBRARY_PLAN_NS];
	resident = l->levels[UM_LIBRARY_IN_CORE_NS];
	if (!resident || plan <= resident)
		return 0;
	begin(f);
	for (size_t i = 0; i < h->rows.n; i++)
		if (h->rows.at[i].kind == UM_HINT_PREFETCH && h->rows.at[i].bytes)
			rank(f, h->rows.at[i].tensor, h->rows.at[i].bytes);
	f->waited_ns = plan - resident;
	f->resident_ns = resident;
	f->share = (double)(plan - resident) / (double)plan;
	return 1;
}

/* "x 1.200 ms, w 0.300 ms and 4 others"; of a run log, MiB. */
static void tops(const struct um_finding *f, const struct um_report *r, char *to, size_t size)
{
	size_t n = 0, named = 0;

	*to = '\0';
	for (unsigned i = 0; i < UM_FINDING_WAITS && f->top_ns[i] && n < size; i++, named++)
		n += (size_t)snprintf(to + n, size - n, f->resident_ns ? "%s%.*s %.1f MiB" : "%s%.*s %.3f ms",
				      i ? ", " : "", NAME,
				      f->top[i] == UM_CAUSES_NONE ? "(no name)" : um_report_tensor_name(r, f->top[i]),
				      (double)f->top_ns[i] / (f->resident_ns ? 1048576.0 : 1e6));
	if (f->tensors > named && n < size)
		snprintf(to + n, size - n, " and %llu others", (unsigned long long)(f->tensors - named));
}

int um_finding_waits_evidence(const struct um_finding *f, const struct um_report *r, char **out)
{
	const char *per = r->findings.iterations ? " an iteration" : "";
	double ms = (double)f->waited_ns / 1e6;
	char list[256];

	tops(f, r, list, sizeof list);
	if (f->resident_ns)
		return asprintf(out,
				"the plan takes %.3f ms per iteration, but %.3f ms with every tensor resident: it "
				"waits %.3f ms (%.1f %%) for copies; most prefetched: %s",
				(double)f->resident_ns / 1e6 + ms, (double)f->resident_ns / 1e6, ms, 100 * f->share,
				*list ? list : "nothing");
	return asprintf(out,
			"the device waited %.3f ms%s for prefetches of %.1f MiB; for %.3f ms of that the link had "
			"no earlier idle time; longest for %s",
			ms, per, (double)f->waited_bytes / 1048576.0,
			(double)(f->waited_ns - (f->spare_ns < f->waited_ns ? f->spare_ns : f->waited_ns)) / 1e6, list);
}

int um_finding_waits_estimate(const struct um_finding *f, const struct um_report *r, char **out)
{
	(void)r;
	if (f->resident_ns)
		return asprintf(out, "not a saving: the plan's own simulated times");
	return asprintf(out, "not a saving: time between kernels until the last prefetch for the next one was "
			     "complete");
}

int um_finding_waits_advice(const struct um_finding *f, const struct um_report *r, char **out)
{
	char distance[96] = "";
	int ours = f->resident_ns || r->causes.hints.rows.n;

	if (f->spare_ns && f->earlier)
		snprintf(distance, sizeof distance, "; prefetch up to %s%u kernels earlier if the link is idle",
			 f->earlier < UM_WAIT_KERNELS ? "" : "more than ", (unsigned)f->earlier);
	return asprintf(out,
			"move less: give it more device memory%s, free or discard dead tensors, set read-mostly for "
			"tensors that are not written%s%s",
			ours ? " (a larger UMADVISE_BUDGET)" : "",
			ours ? "; UMADVISE_PLAN_TIME=MS searches longer for a better plan" : "", distance);
}
