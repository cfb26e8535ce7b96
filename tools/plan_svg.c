/* SPDX-License-Identifier: Apache-2.0
 *
 * Time goes from left to right. Bars narrower than half a pixel are drawn together with the next ones, so that a
 * browser can show the drawing of a long iteration.
 */
#include "output.h"
#include "plan_view.h"
#include "svg.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define MIB(b) ((double)(b) / 1048576.0)
#define LEFT 80.0
#define WIDE 1100.0
#define TOP 84.0
#define HIGH 280.0
#define THIN 0.5 /* pixels */
#define FAR_APART 4.0 /* pixels between lines of ops */

enum { LANE_OPS = 376, LANE_IN = 412, LANE_OUT = 448, LANE_HIGH = 26, AXIS = 486, PAGE_WIDE = 1200, PAGE_HIGH = 520 };

static const char *const colours[UM_ROLES] = {
	[UM_ROLE_OTHER] = "#9aa0a6",	 [UM_ROLE_PARAM] = "#3366cc", [UM_ROLE_GRAD] = "#e67300",
	[UM_ROLE_OPTIM] = "#109618",	 [UM_ROLE_ACT] = "#8e5ac8",   [UM_ROLE_INPUT] = "#0099c6",
	[UM_ROLE_WORKSPACE] = "#c9a400", [UM_ROLE_COMM] = "#b82e2e",
};

static const char *const again = "#d9822b"; /* relaunches */

struct drawing {
	const struct plan_view *v;
	FILE *to;
	uint64_t most; /* bytes: the top of the chart */
};

static double x_of(const struct drawing *d, uint64_t ns)
{
	uint64_t all = d->v->figures.ns;

	return LEFT + (all ? WIDE * (double)(ns > all ? all : ns) / (double)all : 0);
}

static double y_of(const struct drawing *d, uint64_t bytes)
{
	return TOP + HIGH - (d->most ? HIGH * (double)bytes / (double)d->most : 0);
}

static void draw_head(const struct drawing *d)
{
	const struct um_plan *p = &d->v->plan;
	const struct um_plan_figures *f = &d->v->figures;

	svg_begin(d->to, PAGE_WIDE, PAGE_HIGH);
	fprintf(d->to, "<text x=\"%g\" y=\"24\" font-size=\"16\">", LEFT);
	svg_text(d->to, p->workload && *p->workload ? p->workload : "an iteration");
	if (p->profile) {
		fputs(" on ", d->to);
		svg_text(d->to, p->profile);
	}
	if (p->strategy) {
		fputs(", ", d->to);
		svg_text(d->to, p->strategy);
	}
	fprintf(d->to,
		"</text>\n<text x=\"%g\" y=\"44\">steady iteration %.3f ms, in core %.3f ms; %.1f MiB in, %.1f MiB "
		"out; %.1f of %.1f MiB resident at most, %.1f MiB alive</text>\n",
		LEFT, (double)f->ns / 1e6, (double)um_plan_core_ns(f) / 1e6, MIB(f->h2d_bytes), MIB(f->d2h_bytes),
		MIB(f->peak_bytes), MIB(p->budget), MIB(d->v->alive[d->v->fullest]));
}

/* --- residency --------------------------------------------------------------------------------------------------- */

static uint64_t below(const struct plan_sample *s, int role)
{
	uint64_t sum = 0;

	for (int r = 0; r < role; r++)
		sum += s->bytes[r];
	return sum;
}

/* Draws an area between two curves: along its top, then back along its bottom. */
static void draw_band(const struct drawing *d, int role)
{
	const struct plan_view *v = d->v;
	uint64_t most = 0;
	double y = -1;

	for (size_t i = 0; i < v->samples.n; i++)
		if (v->samples.at[i].bytes[role] > most)
			most = v->samples.at[i].bytes[role];
	if (!most)
		return;
	fprintf(d->to, "<path fill=\"%s\" d=\"M%.1f %.1f", colours[role], LEFT, y_of(d, 0));
	for (size_t i = 0; i < v->samples.n; i++) {
		double next = y_of(d, below(&v->samples.at[i], role + 1));

		if (next != y)
			fprintf(d->to, "H%.1fV%.1f", x_of(d, v->samples.at[i].at), next);
		y = next;
	}
	fprintf(d->to, "H%.1f", x_of(d, v->figures.ns));
	for (size_t i = v->samples.n; i-- > 0;) {
		double next = y_of(d, below(&v->samples.at[i], role));

		if (next != y)
			fprintf(d->to, "V%.1f", next);
		if (!i || below(&v->samples.at[i - 1], role) != below(&v->samples.at[i], role))
			fprintf(d->to, "H%.1f", x_of(d, v->samples.at[i].at));
		y = next;
	}
	fprintf(d->to, "Z\"><title>%s: %.1f MiB resident at most</title></path>\n", um_role_name((enum um_role)role),
		MIB(most));
}

static void draw_legend(const struct drawing *d)
{
	double x = LEFT;

	for (int role = 0; role < UM_ROLES; role++) {
		int any = 0;

		for (size_t i = 0; i < d->v->plan.sched.slots.n && !any; i++)
			any = (int)d->v->plan.sched.slots.at[i].role == role;
		if (!any)
			continue;
		fprintf(d->to,
			"<rect x=\"%g\" y=\"58\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%g\" y=\"68\">%s</text>\n",
			x, colours[role], x + 16, um_role_name((enum um_role)role));
		x += 100;
	}
	fprintf(d->to,
		"<path d=\"M%g 64h20\" stroke=\"#d00\" stroke-width=\"2\"/><text x=\"%g\" y=\"68\">budget</text>\n"
		"<path d=\"M%g 64h20\" stroke=\"#555\" stroke-dasharray=\"3 2\"/>"
		"<text x=\"%g\" y=\"68\">alive</text>\n",
		x, x + 24, x + 100, x + 124);
	if (d->v->relaunches)
		fprintf(d->to,
			"<rect x=\"%g\" y=\"58\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%g\" y=\"68\">launched again</text>\n",
			x + 200, again, x + 216);
}

static void draw_lines(const struct drawing *d)
{
	const struct plan_view *v = d->v;
	size_t n = v->plan.sched.ops.n;
	double y = y_of(d, v->plan.budget), last = -1;

	fputs("<path fill=\"none\" stroke=\"#555\" stroke-dasharray=\"3 2\" d=\"", d->to);
	for (size_t i = 0; i < n; i++)
		if (!i || v->alive[i] != v->alive[i - 1]) {
			double x = x_of(d, v->op_begin[i]);

			if (i && x - last < THIN && i + 1 < n)
				continue;
			fprintf(d->to, i ? "H%.1fV%.1f" : "M%.1f %.1f", i ? x : LEFT, y_of(d, v->alive[i]));
			last = x;
		}
	fprintf(d->to,
		"H%.1f\"><title>alive: %.1f MiB at most, at op %d</title></path>\n"
		"<path stroke=\"#d00\" stroke-width=\"2\" d=\"M%.1f %.1fH%.1f\"><title>budget: %.1f MiB</title>"
		"</path>\n",
		x_of(d, v->figures.ns), MIB(v->alive[v->fullest]), v->op[v->fullest], LEFT, y, LEFT + WIDE,
		MIB(v->plan.budget));
}

static void draw_axes(const struct drawing *d)
{
	double ms = (double)d->v->figures.ns / 1e6, mib = MIB(d->most);
	double dt = svg_step(ms, 12), db = svg_step(mib, 7);

	for (int i = 0; mib > 0 && i * db <= mib; i++) {
		double y = TOP + HIGH - HIGH * i * db / mib;

		fprintf(d->to,
			"<path d=\"M%g %.1fH%g\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%.1f\" "
			"text-anchor=\"end\">%g MiB</text>\n",
			LEFT, y, LEFT + WIDE, LEFT - 6, y + 4, i * db);
	}
	for (int i = 0; ms > 0 && i * dt <= ms; i++) {
		double x = LEFT + WIDE * i * dt / ms;

		fprintf(d->to,
			"<path d=\"M%.1f %dv6\" stroke=\"#333\"/><text x=\"%.1f\" y=\"%d\" "
			"text-anchor=\"middle\">%g ms</text>\n",
			x, AXIS, x, AXIS + 20, i * dt);
	}
	fprintf(d->to, "<path d=\"M%g %dH%g\" stroke=\"#333\"/>\n", LEFT, AXIS, LEFT + WIDE);
}

/* --- lanes ------------------------------------------------------------------------------------------------------- */

/* The current bar, which may still grow; n == 0: none. */
struct bar {
	double from, to;
	const char *colour;
	uint64_t begin, end, bytes; /* ns, ns */
	uint32_t what, last, n; /* first and last slot or op, and their number */
};

static void draw_bar(const struct drawing *d, const struct bar *b, int y, int ops)
{
	const struct plan_view *v = d->v;
	double wide = b->to - b->from;
	uint32_t first = ops && b->n == 1 && v->plan.sched.ops.at[b->what].again
				 ? v->plan.sched.ops.at[b->what].again - 1
				 : b->what;
	char room[PLAN_SLOT_NAME];

	if (!b->n)
		return;
	fprintf(d->to, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>", b->from, y,
		wide > 0.2 ? wide : 0.2, LANE_HIGH, b->colour);
	if (ops)
		fprintf(d->to, b->n > 1 ? "ops %d to %d, from " : "op %d ", v->op[first], v->op[b->last]);
	svg_text(d->to, ops ? v->plan.sched.ops.at[b->what].name : plan_slot_name(v, b->what, room, sizeof room));
	if (ops && v->plan.sched.ops.at[b->what].again)
		fputs(" again", d->to);
	if (!ops && b->what != b->last)
		fputs(" and others", d->to);
	if (!ops)
		fprintf(d->to, ", %.1f MiB", MIB(b->bytes));
	fprintf(d->to, ": %.3f to %.3f ms</title></rect>\n", (double)b->begin / 1e6, (double)b->end / 1e6);
}

/* Extends the bar if the next one is too thin, or continues it for the same slot or op. */
static void put_bar(const struct drawing *d, struct bar *b, const struct bar *next, int y, int ops)
{
	int same = !ops && b->n && b->last == next->what && b->what == b->last && next->from - b->to < THIN;

	if (b->n && (same || next->to - b->from < THIN)) {
		b->to = next->to;
		b->end = next->end;
		b->bytes += next->bytes;
		b->last = next->what;
		b->n++;
		return;
	}
	draw_bar(d, b, y, ops);
	*b = *next;
}

static void draw_copies(const struct drawing *d, int out)
{
	const struct plan_view *v = d->v;
	int y = out ? LANE_OUT : LANE_IN;
	struct bar b = {0};

	for (size_t i = 0; i < v->copies.n; i++) {
		const struct plan_copy *c = &v->copies.at[i];
		struct bar next = {x_of(d, c->begin), x_of(d, c->end), colours[v->plan.sched.slots.at[c->slot].role],
				   c->begin,	      c->end,	       c->bytes,
				   c->slot,	      c->slot,	       1};

		if (c->out == out)
			put_bar(d, &b, &next, y, 0);
	}
	draw_bar(d, &b, y, 0);
}

static void draw_ops(const struct drawing *d)
{
	static const char *const shades[2] = {"#7a8793", "#a9b4be"};
	const struct plan_view *v = d->v;
	double last = -FAR_APART;
	struct bar b = {0};

	for (uint32_t i = 0; i < v->plan.sched.ops.n; i++) {
		uint64_t from = v->op_begin[i], to = from + v->plan.sched.ops.at[i].ns;
		const char *colour = v->plan.sched.ops.at[i].again ? again : shades[i % 2];
		struct bar next = {x_of(d, from), x_of(d, to), colour, from, to, 0, i, i, 1};

		if (next.from - last >= FAR_APART) {
			fprintf(d->to, "<path d=\"M%.1f %gV%d\" stroke=\"#000\" stroke-opacity=\".12\"/>\n", next.from,
				TOP, AXIS);
			last = next.from;
		}
		put_bar(d, &b, &next, LANE_OPS, 1);
	}
	draw_bar(d, &b, LANE_OPS, 1);
}

static void draw(const struct drawing *d)
{
	draw_head(d);
	draw_axes(d);
	for (int role = 0; role < UM_ROLES; role++)
		draw_band(d, role);
	draw_ops(d);
	draw_lines(d);
	draw_legend(d);
	draw_copies(d, 0);
	draw_copies(d, 1);
	fprintf(d->to,
		"<g text-anchor=\"end\"><text x=\"%g\" y=\"%d\">ops</text><text x=\"%g\" y=\"%d\">to device</text>"
		"<text x=\"%g\" y=\"%d\">to host</text></g>\n</svg>\n",
		LEFT - 6, LANE_OPS + 17, LEFT - 6, LANE_IN + 17, LEFT - 6, LANE_OUT + 17);
}

int plan_svg_write(const struct plan_view *v, const char *path)
{
	struct drawing d = {.v = v};
	struct tool_output file;
	int code = tool_output_open(&file, "plan", path);

	if (code)
		return code;
	d.to = file.to;
	d.most = v->alive[v->fullest] > v->plan.budget ? v->alive[v->fullest] : v->plan.budget;
	d.most += d.most / 20;
	draw(&d);
	return tool_output_close(&file, 1);
}
