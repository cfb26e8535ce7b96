/* SPDX-License-Identifier: Apache-2.0
 *
 * Two panels over the number of GPUs: time of a step, of which a part passes with all data resident, and GPU-hours.
 */
#include "output.h"
#include "ranks.h"
#include "svg.h"
#include "tool.h"

#define LEFT 80.0
#define WIDE 480.0
#define BETWEEN 100.0
#define TOP 76.0
#define HIGH 320.0

enum { PAGE_WIDE = 1160, PAGE_HIGH = 470, COLOURS = 6 };
static const char *const colours[COLOURS] = {"#3366cc", "#e67300", "#8e5ac8", "#c9a400", "#2a9d6f", "#b8434e"};

struct drawing {
	FILE *to;
	const struct ranks_row *rows;
	size_t n, counts; /* rows; numbers of GPUs */
	size_t strategies;
};

static double ms_of(const struct ranks_row *r)
{
	return (double)r->ns / 1e6;
}

static double hours_of(const struct ranks_row *r)
{
	return r->gpu_hours;
}

static void draw_bar(const struct drawing *d, size_t i, double left, double most,
		     double (*value)(const struct ranks_row *), const char *unit)
{
	const struct ranks_row *r = &d->rows[i];
	double group = WIDE / (double)d->counts, wide = group * 0.8 / (double)d->strategies;
	double x = left + group * ((double)(i % d->counts) + 0.1) + wide * (double)(i / d->counts);
	double high = most > 0 ? HIGH * value(r) / most : 0;

	fprintf(d->to, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", x,
		TOP + HIGH - high, wide * 0.92, high, colours[i / d->counts % COLOURS]);
	svg_text(d->to, um_play_strategy_name(r->strategy));
	fprintf(d->to, " on %u: %.4g %s</title></rect>\n", r->n, value(r), unit);
}

/* The time with all data resident, as a line across the bar. */
static void draw_core(const struct drawing *d, size_t i, double left, double most)
{
	double group = WIDE / (double)d->counts, wide = group * 0.8 / (double)d->strategies;
	double x = left + group * ((double)(i % d->counts) + 0.1) + wide * (double)(i / d->counts);
	double high = most > 0 ? HIGH * (double)d->rows[i].in_core_ns / 1e6 / most : 0;

	fprintf(d->to, "<path d=\"M%.2f %.2fh%.2f\" stroke=\"#000\" stroke-width=\"2\"/>\n", x, TOP + HIGH - high,
		wide * 0.92);
}

static void draw_axes(const struct drawing *d, double left, double most, const char *title)
{
	double step = svg_step(most, 8), group = WIDE / (double)d->counts;

	fprintf(d->to, "<text x=\"%g\" y=\"%g\">%s</text>\n", left, TOP - 10, title);
	for (int i = 0; most > 0 && i * step <= most; i++) {
		double y = TOP + HIGH - HIGH * i * step / most;

		fprintf(d->to,
			"<path d=\"M%g %.1fH%g\" stroke=\"#ddd\"/>"
			"<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			left, y, left + WIDE, left - 6, y + 4, i * step);
	}
	for (size_t i = 0; i < d->counts; i++)
		fprintf(d->to, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%u GPU%s</text>\n",
			left + group * ((double)i + 0.5), TOP + HIGH + 20, d->rows[i].n, d->rows[i].n > 1 ? "s" : "");
}

static void draw_panel(const struct drawing *d, double left, double (*value)(const struct ranks_row *),
		       const char *unit, const char *title, int has_core)
{
	double most = 0;

	for (size_t i = 0; i < d->n; i++)
		most = value(&d->rows[i]) > most ? value(&d->rows[i]) : most;
	draw_axes(d, left, most, title);
	for (size_t i = 0; i < d->n; i++) {
		draw_bar(d, i, left, most, value, unit);
		if (has_core)
			draw_core(d, i, left, most);
	}
}

static void draw_head(const struct drawing *d, const char *title)
{
	double x = LEFT;

	svg_begin(d->to, PAGE_WIDE, PAGE_HIGH);
	fprintf(d->to, "<text x=\"%g\" y=\"24\" font-size=\"16\">", LEFT);
	svg_text(d->to, title);
	fputs("</text>\n", d->to);
	for (size_t i = 0; i < d->strategies; i++, x += 150) {
		fprintf(d->to,
			"<rect x=\"%g\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%g\" y=\"%d\">", x,
			PAGE_HIGH - 34, colours[i % COLOURS], x + 16, PAGE_HIGH - 24);
		svg_text(d->to, um_play_strategy_name(d->rows[i * d->counts].strategy));
		fputs("</text>\n", d->to);
	}
	fprintf(d->to,
		"<path d=\"M%g %dh12\" stroke=\"#000\" stroke-width=\"2\"/><text x=\"%g\" y=\"%d\">all data resident"
		"</text>\n",
		x, PAGE_HIGH - 28, x + 16, PAGE_HIGH - 24);
}

int ranks_svg_write(const char *path, const char *title, const struct ranks_row *rows, size_t n)
{
	struct drawing d = {.rows = rows, .n = n};
	struct tool_output file;
	char gpu_hours[64];
	int code = tool_output_open(&file, "simulate", path);

	if (code)
		return code;
	d.to = file.to;
	while (d.counts < n && rows[d.counts].strategy == rows[0].strategy)
		d.counts++;
	d.strategies = n / d.counts;
	snprintf(gpu_hours, sizeof gpu_hours, "GPU-hours of %d steps", RANKS_STEPS);
	draw_head(&d, title);
	draw_panel(&d, LEFT, ms_of, "ms", "time of a step, ms", 1);
	draw_panel(&d, LEFT + WIDE + BETWEEN, hours_of, "GPU-hours", gpu_hours, 0);
	fputs("</svg>\n", d.to);
	return tool_output_close(&file, 1);
}
