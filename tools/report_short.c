/* SPDX-License-Identifier: Apache-2.0
 *
 * A run in one sentence about its steady iterations; cold ones warm up and are described separately.
 */
#include "report_form.h"

#include <stdio.h>

struct means {
	uint64_t steady, cold, unfinished, cold_ns; /* iterations; of the cold ones together */
	/* Sums over the steady ones; without any, over all. */
	uint64_t ns, kernel_ns, fault_ns, wait_ns, in, demand, out;
};

static void add_sums(struct means *m, const struct um_report_sums *s)
{
	const struct um_report_moves *in = s->moves[UM_DIR_H2D];

	m->kernel_ns += s->work.ns;
	m->fault_ns += s->work.fault_ns;
	m->wait_ns += s->work.wait_ns;
	m->in += um_report_moved(s, UM_DIR_H2D);
	m->out += um_report_moved(s, UM_DIR_D2H);
	m->demand += in[UM_CAUSE_DEMAND].bytes + in[UM_CAUSE_SPECULATIVE].bytes;
}

static void gather(struct means *m, const struct um_report *r)
{
	*m = (struct means){0};
	for (size_t i = 0; i < r->iterations.n; i++) {
		const struct um_report_iteration *it = &r->iterations.at[i];

		m->unfinished += it->mark == UM_MARK_UNFINISHED;
		m->cold += it->mark == UM_MARK_COLD;
		m->cold_ns += it->mark == UM_MARK_COLD ? it->ns : 0;
		if (it->mark == UM_MARK_UNFINISHED || it->mark == UM_MARK_COLD)
			continue;
		m->steady++;
		m->ns += it->ns;
		add_sums(m, &it->sums);
	}
	if (!m->steady)
		add_sums(m, &r->all);
}

static void what(const struct report_view *v, const struct means *m, char *to, size_t size)
{
	const struct um_findings *f = &v->findings;
	double n = m->steady ? (double)m->steady : 1;
	size_t at = 0;

	*to = '\0';
	if (um_table_recorded(f, UM_RECORDED_KERNELS, NULL))
		at += (size_t)snprintf(to, size, "kernels run for %.3f ms", (double)m->kernel_ns / n / 1e6);
	if (at && !um_table_recorded(f, UM_RECORDED_SERVING, NULL))
		at += (size_t)snprintf(to + at, size - at, ", page faults were not recorded");
	else if (at)
		at += (size_t)snprintf(to + at, size - at, ", %.3f ms of it while page faults are served",
				       (double)m->fault_ns / n / 1e6);
	if (at && um_table_recorded(f, UM_RECORDED_WAITS, NULL))
		at += (size_t)snprintf(to + at, size - at, ", and the device waits %.3f ms for prefetches%s",
				       (double)m->wait_ns / n / 1e6,
				       m->steady && m->wait_ns ? ", in the iteration and before it" : "");
	if (!um_table_recorded(f, UM_RECORDED_MIGRATIONS, NULL))
		snprintf(to + at, size - at, "%smigrations were not recorded", at ? "; " : "");
	else if (m->in || m->out)
		snprintf(to + at, size - at,
			 "%s%.1f MiB of managed memory migrate to the device, %.1f MiB of it on demand, and %.1f "
			 "MiB to the host",
			 at ? "; " : "", (double)m->in / n / 1048576, (double)m->demand / n / 1048576,
			 (double)m->out / n / 1048576);
	else
		snprintf(to + at, size - at, "%sno managed memory migrates", at ? "; " : "");
}

void report_short(const struct report_view *v, char *to, size_t size)
{
	const struct um_report *r = v->findings.report;
	struct means m;
	char does[400];
	size_t at = 0;

	gather(&m, r);
	what(v, &m, does, sizeof does);
	if (m.steady)
		at = (size_t)snprintf(to, size, "A steady iteration takes %.3f ms (mean of %llu): %s.",
				      (double)m.ns / (double)m.steady / 1e6, (unsigned long long)m.steady, does);
	else
		at = (size_t)snprintf(to, size, "In the whole recording, %s.", does);
	if (m.cold && at < size)
		at += (size_t)snprintf(to + at, size - at, " Before them, %llu cold iteration%s took %.3f ms%s.",
				       (unsigned long long)m.cold, m.cold > 1 ? "s" : "", (double)m.cold_ns / 1e6,
				       m.cold > 1 ? " together" : "");
	if (m.unfinished && at < size)
		snprintf(to + at, size - at, " The recording ended in %llu iteration%s.",
			 (unsigned long long)m.unfinished, m.unfinished > 1 ? "s" : "");
}
