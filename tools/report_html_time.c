/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole run and three iterations over time, with common scales: memory in use, migrations, faults, kernels. In all
 * drawings x goes from 0 to 1000 and y from 0 to 100.
 */
#include "report_html.h"

#include <stdio.h>
#include <string.h>

#define TURNS 64 /* beginnings of iterations that are drawn, at most */

/* Colours of causes of migration. */
enum reason { DEMAND, PREFETCH, EVICT, OTHER, REASONS };

static const char *const reason_class[] = {"demand", "prefetch", "evict", "other"};

static enum reason reason_of(int cause)
{
	switch (cause) {
	case UM_CAUSE_PREFETCH:
		return PREFETCH;
	case UM_CAUSE_DEMAND:
	case UM_CAUSE_SPECULATIVE:
		return DEMAND;
	case UM_CAUSE_EVICTION:
		return EVICT;
	default:
		return OTHER;
	}
}

struct course {
	const struct um_bins *s;
	int64_t begin, end;
	uint64_t level; /* when it begins */
	unsigned file; /* of the merged files */
};

/* Maximum of each series, over all drawings that share a scale. */
struct scales {
	double level, moved, faults; /* bytes; bytes/ns; 1/ms */
};

static double width_of(const struct um_bins *s)
{
	return (double)(1ull << (s->shift < 63 ? s->shift : 63));
}

static double moved_in(const struct um_bin *b, enum um_activity_dir dir, int reason)
{
	uint64_t bytes = 0;

	for (int cause = 0; cause < UM_CAUSES; cause++)
		if (reason == REASONS || (int)reason_of(cause) == reason)
			bytes += b->sum[UM_BINS_MOVED(dir, cause)];
	return (double)bytes;
}

static void measure(struct scales *m, const struct course *c)
{
	double width = width_of(c->s);

	if (m->level < (double)c->level)
		m->level = (double)c->level;
	for (unsigned i = 0; i < c->s->n; i++) {
		const struct um_bin *b = &c->s->at[i];
		double in = moved_in(b, UM_DIR_H2D, REASONS) / width, out = moved_in(b, UM_DIR_D2H, REASONS) / width;
		double faults = (double)b->sum[UM_BINS_FAULTS] / width * 1e6;

		m->moved = in > m->moved ? in : m->moved;
		m->moved = out > m->moved ? out : m->moved;
		m->faults = faults > m->faults ? faults : m->faults;
		m->level = b->has_level && (double)b->most > m->level ? (double)b->most : m->level;
	}
}

static unsigned file_of(const struct um_report *r, uint32_t process)
{
	return r->processes.at[process].file;
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

static double x_at(const struct course *c, int64_t t)
{
	double x = 1000 * ((double)t - (double)c->begin) / ((double)c->end - (double)c->begin);

	return x < 0 ? 0 : x > 1000 ? 1000 : x;
}

/* Draws steps from `base` with height `full` for `most`. `edge`: only their upper line. */
static void steps(const struct html *h, const struct course *c, const char *class, const double *v, double most,
		  double base, double full, int edge)
{
	double last = 0;

	if (edge && c->s->n && most > 0)
		last = v[0] / most;
	html_f(h, "<path class=\"%s\" d=\"M0 %.4g", class, base + full * last);
	for (unsigned i = 0; i < c->s->n; i++) {
		double y = most > 0 ? v[i] / most : 0;

		if (y == last)
			continue;
		html_f(h, "H%.4gV%.4g", x_at(c, um_bins_at(c->s, i)), base + full * y);
		last = y;
	}
	html_f(h, edge ? "H1000\"/>" : "H1000V%gZ\"/>", base);
}

static void open_lane(const struct html *h, const char *title, const char *figure, const char *size)
{
	html_f(h,
	       "<figure class=\"lane\"><figcaption><b>%s</b><span>%s</span></figcaption><div class=\"plot %s\">"
	       "<svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s: %s\">",
	       title, figure, size, title, figure);
}

/* Draws values and the beginnings of iterations. */
static void close_lane(const struct html *h, const struct course *c, int turns, const char *up, const char *down)
{
	const struct um_report *r = h->v->findings.report;
	size_t each = (r->iterations.n + TURNS - 1) / TURNS;

	for (size_t i = 0; turns && i < r->iterations.n; i += each)
		if (r->iterations.at[i].has_gpu && file_of(r, r->iterations.at[i].process) == c->file)
			html_f(h, "<path class=\"turn\" d=\"M%.5g 0V100\"/>", x_at(c, r->iterations.at[i].gpu_begin));
	um_out_str(h->out, "</svg>");
	if (up)
		html_f(h, "<span class=\"up\">%s</span>", up);
	if (down)
		html_f(h, "<span class=\"down\">%s</span>", down);
	um_out_str(h->out, "</div></figure>\n");
}

/* Of all devices of the file; 0: unknown. */
static uint64_t memory_of(const struct html *h, const struct course *of)
{
	const struct um_capture *c = h->v->findings.capture;
	uint64_t memory = 0;

	for (size_t i = 0; i < c->devices.n; i++)
		if (!h->a->merge || c->devices.at[i].file == h->a->files[of->file])
			memory += c->devices.at[i].memory_bytes;
	return memory;
}

/* By bin. Estimates are limited by the capacity. */
static void levels(const struct course *c, uint64_t memory, double *v)
{
	uint64_t now = c->level;

	for (unsigned i = 0; i < c->s->n; i++) {
		const struct um_bin *b = &c->s->at[i];
		uint64_t level = b->has_level ? b->most : now;

		v[i] = (double)(memory && level > memory ? memory : level);
		now = b->has_level ? b->last : now;
	}
}

static void level_lane(const struct html *h, const struct course *c, const struct scales *m, int turns)
{
	uint64_t memory = memory_of(h, c);
	char a[HTML_ROOM], b[HTML_ROOM], figure[3 * HTML_ROOM];
	double v[UM_VIEWS_BINS] = {0}, full = m->level, most = 0;

	levels(c, memory, v);
	for (unsigned i = 0; i < c->s->n; i++)
		most = v[i] > most ? v[i] : most;
	/* The capacity is drawn only if use comes near it. */
	full = memory && (double)memory < 4 * full ? (double)memory : full;
	full *= 1.06;
	snprintf(figure, sizeof figure, memory ? "at most %s of %s" : "at most %s", html_bytes(a, (uint64_t)most),
		 html_bytes(b, memory));
	open_lane(h, "Memory in use", figure, "");
	steps(h, c, "level", v, full, 100, -100, 0);
	steps(h, c, "edge", v, full, 100, -100, 1);
	if (memory && (double)memory <= full)
		html_f(h, "<path class=\"cap\" d=\"M0 %.4gH1000\"/>", 100 - 100 * (double)memory / full);
	close_lane(h, c, turns, NULL, NULL);
}

/* To the device upwards, to the host downwards, causes stacked; with space for a line of text above and below. */
static void moved_lane(const struct html *h, const struct course *c, const struct scales *m, int turns)
{
	double v[UM_VIEWS_BINS] = {0}, width = width_of(c->s), peak[2] = {0};
	char a[HTML_ROOM], b[HTML_ROOM], figure[3 * HTML_ROOM], label[2][HTML_ROOM];
	uint64_t bytes[2] = {0};

	for (int dir = 0; dir < 2; dir++)
		for (int cause = 0; cause < UM_CAUSES; cause++)
			bytes[dir] += um_bins_total(c->s, UM_BINS_MOVED(dir ? UM_DIR_D2H : UM_DIR_H2D, cause));
	snprintf(figure, sizeof figure, "%s in, %s out", html_bytes(a, bytes[0]), html_bytes(b, bytes[1]));
	open_lane(h, "Migration", figure, "both");
	for (int dir = 0; dir < 2; dir++) {
		enum um_activity_dir which = dir ? UM_DIR_D2H : UM_DIR_H2D;

		for (int top = REASONS; top > 0; top--) {
			double sum = 0;

			for (unsigned i = 0; i < c->s->n; i++) {
				v[i] = 0;
				for (int k = 0; k < top; k++)
					v[i] += moved_in(&c->s->at[i], which, k) / width;
				sum += moved_in(&c->s->at[i], which, top - 1);
				peak[dir] = v[i] > peak[dir] ? v[i] : peak[dir];
			}
			if (sum > 0)
				steps(h, c, reason_class[top - 1], v, 1.3 * m->moved, 50, dir ? 50 : -50, 0);
		}
		snprintf(label[dir], sizeof label[dir], peak[dir] > 0 ? "to the %s, peak %s" : "to the %s",
			 dir ? "host" : "device", html_scaled(a, peak[dir], "GB/s"));
	}
	um_out_str(h->out, "<path class=\"zero\" d=\"M0 50H1000\"/>");
	close_lane(h, c, turns, label[0], label[1]);
}

static void fault_lane(const struct html *h, const struct course *c, const struct scales *m, int turns)
{
	double v[UM_VIEWS_BINS] = {0}, width = width_of(c->s), peak = 0;
	char a[HTML_ROOM], up[HTML_ROOM];

	for (unsigned i = 0; i < c->s->n; i++) {
		v[i] = (double)c->s->at[i].sum[UM_BINS_FAULTS] / width * 1e6;
		peak = v[i] > peak ? v[i] : peak;
	}
	open_lane(h, "GPU page faults", html_count(a, um_bins_total(c->s, UM_BINS_FAULTS)), "");
	steps(h, c, "demand", v, 1.3 * m->faults, 100, -100, 0);
	snprintf(up, sizeof up, "peak %s", html_scaled(a, peak, "per ms"));
	close_lane(h, c, turns, peak > 0 ? up : NULL, NULL);
}

static void busy_lane(const struct html *h, const struct course *c, int turns)
{
	const struct um_report *r = h->v->findings.report;
	double v[UM_VIEWS_BINS] = {0}, width = width_of(c->s), all = (double)c->end - (double)c->begin;
	double busy = (double)um_bins_total(c->s, UM_BINS_BUSY);
	size_t lanes = 0;
	char figure[HTML_ROOM];

	for (size_t i = 0; i < r->views.lanes.n; i++)
		lanes += file_of(r, r->views.lanes.at[i].process) == c->file;
	for (unsigned i = 0; i < c->s->n; i++)
		v[i] = (double)c->s->at[i].sum[UM_BINS_BUSY] / width / (double)(turns && lanes ? lanes : 1);
	snprintf(figure, sizeof figure, "%.0f&nbsp;%% of the time",
		 100 * busy / all / (double)(turns && lanes ? lanes : 1));
	open_lane(h, "Kernels running", figure, "low");
	steps(h, c, "busy", v, 1, 100, -100, 0);
	close_lane(h, c, turns, NULL, NULL);
}

static void axis(const struct html *h, const struct course *c)
{
	double all = (double)c->end - (double)c->begin, step = html_round_up(all / 5);
	char a[HTML_ROOM];

	um_out_str(h->out, "<div class=\"axis\" aria-hidden=\"true\"><span class=\"edge\">0</span>");
	for (double t = step; t < 0.95 * all; t += step)
		html_f(h, "<span style=\"left:%.2f%%\">%s</span>", 100 * t / all, html_ns(a, (uint64_t)(t + 0.5)));
	um_out_str(h->out, "</div>\n");
}

static void lanes(const struct html *h, const struct course *c, const struct scales *m, int whole)
{
	if (!h->v->findings.report->views.resident.lost && m->level > 0)
		level_lane(h, c, m, whole);
	if (m->moved > 0)
		moved_lane(h, c, m, whole);
	if (m->faults > 0)
		fault_lane(h, c, m, whole);
	else if (whole && !um_table_recorded(&h->v->findings, UM_RECORDED_GPU_FAULTS, NULL))
		um_out_str(h->out, "<p class=\"about\">GPU page faults: not recorded.</p>\n");
	busy_lane(h, c, whole);
	axis(h, c);
}

/* Data for the script's tooltip: by bin MiB, GB/s in and out, faults per ms; 0 is left empty. */
static void open_panel(const struct html *h, const struct course *c)
{
	static const char *const names[] = {"level", "in", "out", "faults"};
	double width = width_of(c->s), level[UM_VIEWS_BINS];

	html_f(h, "<div class=\"panel\" data-first=\"%.0f\" data-width=\"%.0f\" data-span=\"%.0f\"",
	       (double)um_bins_at(c->s, 0) - (double)c->begin, width, (double)c->end - (double)c->begin);
	levels(c, memory_of(h, c), level);
	for (int k = h->v->findings.report->views.resident.lost; k < 4; k++) {
		html_f(h, " data-%s=\"", names[k]);
		for (unsigned i = 0; i < c->s->n; i++) {
			const struct um_bin *b = &c->s->at[i];
			double x = k == 0   ? level[i] / 1048576
				   : k == 1 ? moved_in(b, UM_DIR_H2D, REASONS) / width
				   : k == 2 ? moved_in(b, UM_DIR_D2H, REASONS) / width
					    : (double)b->sum[UM_BINS_FAULTS] / width * 1e6;

			um_out_str(h->out, i ? "," : "");
			if (x > 0)
				html_f(h, x < 99.5 ? "%.3g" : "%.0f", x);
		}
		um_out_str(h->out, "\"");
	}
	um_out_str(h->out, ">\n");
}

/* --- what is drawn ------------------------------------------------------------------------------------------------ */

static void iteration(const struct html *h, const struct um_view *view, enum um_view_role role, const struct scales *m)
{
	static const char *const roles[] = {"the first", "near the median", "the slowest of the others"};
	const struct um_report *r = h->v->findings.report;
	const struct um_report_iteration *it = &r->iterations.at[view->iteration];
	const struct course c = {&view->series, um_bins_at(&view->series, 0), it->gpu_end, view->level,
				 file_of(r, it->process)};
	char a[HTML_ROOM];

	if (!view->series.n || c.end <= c.begin)
		return;
	open_panel(h, &c);
	html_f(h, "<h3>Iteration %u</h3>\n<p class=\"about\">%s: %s%s", (unsigned)it->n, roles[role],
	       html_ns(a, it->ns),
	       it->mark == UM_MARK_COLD	 ? ", cold"
	       : it->mark == UM_MARK_ODD ? ", odd"
					 : "");
	if (r->processes.n > 1) {
		um_out_str(h->out, ", ");
		html_process(h, it->process);
	}
	um_out_str(h->out, "</p>\n");
	lanes(h, &c, m, 0);
	um_out_str(h->out, "</div>\n");
}

/* The whole run of a file, without bins if it has no activity. */
static struct course whole(const struct um_report *r, unsigned file)
{
	const struct um_bins *s = file < r->views.files.n ? &r->views.files.at[file] : &r->views.all;

	return (struct course){s, s->n ? um_bins_at(s, 0) : 0, s->n ? um_bins_at(s, s->n) : 0, 0, file};
}

/* Each file with its own clock, one below the other, with one vertical scale. 0: nothing to draw. */
static int runs(const struct html *h)
{
	const struct um_report *r = h->v->findings.report;
	unsigned n = r->file + 1 < HTML_FILES ? r->file + 1 : HTML_FILES, drawn = 0;
	char about[160] = "Thin lines: iterations begin on the device.";
	struct scales m = {0};

	for (unsigned i = 0; i < n; i++) {
		struct course c = whole(r, i);

		if (c.s->n)
			measure(&m, &c);
		drawn += c.s->n > 0;
	}
	if (!drawn)
		return 0;
	if (r->iterations.n > TURNS)
		snprintf(about, sizeof about, "Thin lines: one in %zu iterations begins on the device.",
			 (r->iterations.n + TURNS - 1) / TURNS);
	if (r->file)
		snprintf(about + strlen(about), sizeof about - strlen(about), " Each file has a clock of its own%s.",
			 n <= r->file ? "; the first of them are drawn" : "");
	html_heading(h, r->file ? "The whole runs" : "The whole run", r->iterations.n || r->file ? about : NULL);
	html_legend(h);
	for (unsigned i = 0; i < n; i++) {
		struct course c = whole(r, i);

		if (!c.s->n)
			continue;
		open_panel(h, &c);
		if (r->file) {
			um_out_str(h->out, "<h3>");
			html_name(h, h->a->files[i], 80);
			um_out_str(h->out, "</h3>\n");
		}
		lanes(h, &c, &m, 1);
		um_out_str(h->out, "</div>\n");
	}
	return 1;
}

void html_time(const struct html *h)
{
	const struct um_report *r = h->v->findings.report;
	const struct um_view *chosen[UM_VIEW_ROLES];
	enum um_view_role roles[UM_VIEW_ROLES];
	unsigned n = um_views_choose(r, chosen, roles);
	struct scales shared = {0};

	if (!runs(h))
		return;
	for (unsigned i = 0; i < n; i++)
		measure(&shared, &(struct course){.s = &chosen[i]->series, .level = chosen[i]->level});
	if (n) {
		html_heading(h, n > 1 ? "Iterations up close" : "An iteration up close",
			     n > 1 ? "All share one vertical scale; each has the full width." : NULL);
		um_out_str(h->out, "<div class=\"panels\">\n");
		for (unsigned i = 0; i < n; i++)
			iteration(h, chosen[i], roles[i], &shared);
		um_out_str(h->out, "</div>\n");
	}
}
