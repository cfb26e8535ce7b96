/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations side by side, the heat map, and migrations by cause.
 */
#include "report_html.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BARS 160 /* bars at most: more iterations share a bar */
#define ROWS 16
#define COLUMNS 40

/* --- iterations --------------------------------------------------------------------------------------------------- */

struct bar {
	size_t first, n; /* iterations */
	uint64_t ns, fault_ns; /* of the slowest */
	enum um_report_mark mark; /* of the slowest */
};

static struct bar bar_of(const struct um_report *r, const struct um_report_process *p, size_t first, size_t each)
{
	struct bar b = {.first = first};

	for (size_t i = first; i < p->iterations.n && i < first + each; i++) {
		const struct um_report_iteration *it = &r->iterations.at[p->iterations.at[i]];

		b.n++;
		if (it->ns < b.ns)
			continue;
		b.ns = it->ns;
		b.fault_ns = it->sums.work.fault_ns < it->ns ? it->sums.work.fault_ns : it->ns;
		b.mark = it->mark;
	}
	return b;
}

/* Of the process with the most iterations. */
static size_t most_iterations(const struct um_report *r)
{
	size_t most = 0;

	for (size_t i = 0; i < r->processes.n; i++)
		most = r->processes.at[i].iterations.n > most ? r->processes.at[i].iterations.n : most;
	return most;
}

static void bar(const struct html *h, const struct bar *b, size_t at, double most)
{
	static const char *const marks[] = {"", ", cold", ", odd", ", unfinished"};
	double high = 100 * (double)b->ns / most, faults = 100 * (double)b->fault_ns / most;
	char ns[HTML_ROOM], fault_ns[HTML_ROOM], names[96], serving[96];

	if (b->n > 1)
		snprintf(names, sizeof names, "%zu to %zu, the slowest", b->first, b->first + b->n - 1);
	else
		snprintf(names, sizeof names, "%zu", b->first);
	if (um_table_recorded(&h->v->findings, UM_RECORDED_SERVING, NULL))
		snprintf(serving, sizeof serving, "%s of it while faults were served", html_ns(fault_ns, b->fault_ns));
	else
		snprintf(serving, sizeof serving, "page faults not recorded");
	html_f(h,
	       "<g><title>%s: %s, %s%s</title>"
	       "<path class=\"bar\" d=\"M%zu 100V%.4gh8V100Z\"/>",
	       names, html_ns(ns, b->ns), serving, marks[b->mark], 10 * at + 1, 100 - high);
	if (b->fault_ns)
		html_f(h, "<path class=\"demand\" d=\"M%zu 100V%.4gh8V100Z\"/>", 10 * at + 1, 100 - faults);
	um_out_str(h->out, "</g>\n");
}

/* Numbers of iterations, and marks of cold and odd ones. */
static void bar_names(const struct html *h, const struct um_report_process *p, size_t n, size_t each)
{
	static const char *const marks[] = {"", "cold", "odd", "unfinished"};
	size_t step = n > 16 ? (size_t)html_round_up((double)n / 12) : 1;

	um_out_str(h->out, "<div class=\"marks\">");
	for (size_t i = 0; i < n; i += step)
		html_f(h, "<span style=\"left:%.2f%%\">%zu</span>", 100 * ((double)i + 0.5) / (double)n, i * each);
	um_out_str(h->out, "</div>\n<div class=\"marks\">");
	for (size_t i = 0; i < n; i++) {
		struct bar b = bar_of(h->v->findings.report, p, i * each, each);

		if (b.mark != UM_MARK_NONE)
			html_f(h, "<span class=\"%s\" style=\"left:%.2f%%\">%s</span>", marks[b.mark],
			       100 * ((double)i + 0.5) / (double)n, n <= 16 ? marks[b.mark] : "&#9650;");
	}
	um_out_str(h->out, "</div>\n");
}

/* Of one process; `each` iterations share a bar. */
static void bars(const struct html *h, uint32_t process, size_t each, double most)
{
	const struct um_report *r = h->v->findings.report;
	const struct um_report_process *p = &r->processes.at[process];
	size_t n = (p->iterations.n + each - 1) / each;
	char a[HTML_ROOM], b[HTML_ROOM];
	uint64_t slowest = 0;

	html_f(h, "<div style=\"max-width:%zurem\"><figure class=\"lane\"><figcaption><b>", n < 4 ? 18 : 9 * n / 2);
	if (r->processes.n > 1)
		html_process(h, process);
	else
		um_out_str(h->out, "Time");
	html_f(h,
	       "</b><span>median %s, &plusmn;&nbsp;%s</span></figcaption>"
	       "<div class=\"plot tall\"><svg viewBox=\"0 0 %zu 100\" preserveAspectRatio=\"none\" role=\"img\" "
	       "aria-label=\"time of each iteration\">\n",
	       html_ns(a, p->median_ns), html_ns(b, p->mad_ns), 10 * n);
	for (size_t i = 0; i < n; i++) {
		struct bar one = bar_of(r, p, i * each, each);

		slowest = one.ns > slowest ? one.ns : slowest;
		bar(h, &one, i, most);
	}
	html_f(h,
	       "<path class=\"median\" d=\"M0 %.4gH%zu\"/></svg><span class=\"up\">slowest %s</span></div></figure>\n",
	       100 - 100 * (double)p->median_ns / most, 10 * n, html_ns(a, slowest));
	bar_names(h, p, n, each);
	um_out_str(h->out, "</div>\n");
}

void html_iterations(const struct html *h)
{
	const struct um_report *r = h->v->findings.report;
	size_t longest = most_iterations(r), each = (longest + BARS - 1) / BARS;
	uint64_t most = 1, drawn = 0;

	if (longest < 2)
		return;
	for (size_t i = 0; i < r->iterations.n; i++)
		most = r->iterations.at[i].ns > most ? r->iterations.at[i].ns : most;
	html_heading(h, "Iterations compared", "Time of each iteration. Cold and odd ones are far from the median.");
	html_f(h,
	       "<ul class=\"legend\"><li><i class=\"bar\"></i>time</li><li><i class=\"demand\"></i>of it, while "
	       "faults were served%s</li><li>dashed: median</li></ul>\n",
	       um_table_recorded(&h->v->findings, UM_RECORDED_SERVING, NULL) ? "" : " (not recorded)");
	for (uint32_t i = 0; i < r->processes.n && drawn < HTML_FILES; i++) {
		if (!r->processes.at[i].iterations.n)
			continue;
		bars(h, i, each, 1.15 * (double)most);
		drawn++;
	}
	if (um_table_rows(um_tables[UM_TABLE_SIDES], &h->v->findings) && r->processes.n > drawn)
		um_out_str(h->out, "<p class=\"more\">The table side-by-side has all processes.</p>\n");
}

/* --- heat map ----------------------------------------------------------------------------------------------------- */

/* Values by row and column, and their names. Columns are groups of iterations. */
struct heat {
	size_t n_rows, n_columns, each; /* each: iterations in a column */
	uint64_t *value; /* by row, then column */
	uint64_t *sum; /* by row */
	size_t *order; /* rows, the largest first */
	uint64_t most; /* of a value */
	const char *(*name)(const struct html *h, size_t row);
	const char *(*words)(char *to, uint64_t value);
};

static int heat_init(struct heat *m, size_t rows, size_t iterations)
{
	m->n_rows = rows;
	m->each = (iterations + COLUMNS - 1) / COLUMNS;
	m->n_columns = m->each ? (iterations + m->each - 1) / m->each : 0;
	m->value = calloc(rows * m->n_columns + 1, sizeof *m->value);
	m->sum = calloc(rows + 1, sizeof *m->sum);
	m->order = calloc(rows + 1, sizeof *m->order);
	return m->value && m->sum && m->order ? 0 : -ENOMEM;
}

static void heat_fini(struct heat *m)
{
	free(m->value);
	free(m->sum);
	free(m->order);
}

/* Iterations of several processes with the same number share a column. */
static void heat_add(const struct um_report *r, struct heat *m, size_t row, uint32_t iteration, uint64_t value)
{
	if (iteration == UM_REPORT_NONE)
		return;
	m->value[row * m->n_columns + r->iterations.at[iteration].n / m->each] += value;
	m->sum[row] += value;
}

static int larger(const void *a, const void *b, void *user)
{
	const uint64_t *sum = user;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return sum[x] != sum[y] ? sum[x] < sum[y] ? 1 : -1 : x > y ? 1 : -1;
}

/* The largest rows first, as many as fit; columns of several iterations show the mean. */
static void heat_sort(struct heat *m, size_t iterations)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_rows * m->n_columns; i++) {
		size_t first = i % m->n_columns * m->each, left = iterations - first;

		m->value[i] /= left < m->each ? left : m->each;
	}
	for (size_t i = 0; i < m->n_rows; i++)
		if (m->sum[i])
			m->order[n++] = i;
	qsort_r(m->order, n, sizeof *m->order, larger, m->sum);
	m->n_rows = n < ROWS ? n : ROWS;
	for (size_t i = 0; i < m->n_rows * m->n_columns; i++) {
		uint64_t x = m->value[m->order[i / m->n_columns] * m->n_columns + i % m->n_columns];

		m->most = x > m->most ? x : m->most;
	}
}

static void heat_cells(const struct html *h, const struct heat *m)
{
	char words[HTML_ROOM];

	html_f(h,
	       "<div class=\"cells\"><svg viewBox=\"0 0 %zu %zu\" preserveAspectRatio=\"none\" role=\"img\" "
	       "aria-label=\"heat map\">\n",
	       10 * m->n_columns, 10 * m->n_rows);
	for (size_t i = 0; i < m->n_rows; i++) {
		html_f(h, "<path class=\"none\" d=\"M0 %zu.5h%zuv9H0z\"/>", 10 * i, 10 * m->n_columns);
		for (size_t k = 0; k < m->n_columns; k++) {
			uint64_t x = m->value[m->order[i] * m->n_columns + k];
			int shade = x ? 1 + (int)(5.999 * (double)x / (double)m->most) : 0;

			if (!x)
				continue;
			html_f(h, "<path class=\"c%d\" d=\"M%zu %zu.5h10v9h-10z\"><title>%s %zu: %s</title></path>",
			       shade > 6 ? 6 : shade, 10 * k, 10 * i, m->each > 1 ? "iterations from" : "iteration",
			       k * m->each, m->words(words, x));
		}
		um_out_str(h->out, "\n");
	}
	um_out_str(h->out, "</svg></div>\n");
}

static void heat_draw(const struct html *h, const struct heat *m)
{
	size_t step = m->n_columns > 16 ? (size_t)html_round_up((double)m->n_columns / 12) : 1;
	char words[HTML_ROOM];

	html_f(h, "<p class=\"about key\">none <span class=\"ramp\"></span> %s%s</p>\n", m->words(words, m->most),
	       m->each > 1 ? "; a column is the mean of several iterations" : "");
	um_out_str(h->out, "<div class=\"heat\"><ol>\n");
	for (size_t i = 0; i < m->n_rows; i++) {
		um_out_str(h->out, "<li>");
		html_name(h, m->name(h, m->order[i]), 44);
		um_out_str(h->out, "</li>\n");
	}
	um_out_str(h->out, "</ol>");
	heat_cells(h, m);
	um_out_str(h->out, "<ol class=\"sums\">");
	for (size_t i = 0; i < m->n_rows; i++)
		html_f(h, "<li>%s</li>", m->words(words, m->sum[m->order[i]]));
	um_out_str(h->out, "</ol><div class=\"axis\" aria-hidden=\"true\">");
	for (size_t k = 0; k < m->n_columns; k += step)
		html_f(h, "<span style=\"left:%.2f%%\">%zu</span>", 100 * ((double)k + 0.5) / (double)m->n_columns,
		       k * m->each);
	um_out_str(h->out, "</div></div>\n");
}

/* Kinds of maps: rows and values. */
struct heat_of {
	const char *title, *about;
	const char *(*name)(const struct html *h, size_t row);
	const char *(*words)(char *to, uint64_t value);
	void (*fill)(const struct um_report *r, struct heat *m);
};

static const char *op_name(const struct html *h, size_t row)
{
	return h->v->findings.report->ops.at[row].name;
}

static const char *tensor_name(const struct html *h, size_t row)
{
	return h->v->findings.report->tensors.rows.at[row].name;
}

static void fill_ops(const struct um_report *r, struct heat *m)
{
	for (size_t i = 0; i < r->cells.n; i++)
		heat_add(r, m, r->cells.at[i].op, r->cells.at[i].iteration, r->cells.at[i].work.fault_ns);
}

static void fill_waits(const struct um_report *r, struct heat *m)
{
	for (size_t i = 0; i < r->tensors.cells.n; i++) {
		const struct um_report_tensor_cell *c = &r->tensors.cells.at[i];

		heat_add(r, m, c->tensor, c->iteration, c->sums.fault_ns);
	}
}

static void fill_moves(const struct um_report *r, struct heat *m)
{
	for (size_t i = 0; i < r->tensors.cells.n; i++) {
		const struct um_report_tensor_cell *c = &r->tensors.cells.at[i];

		heat_add(r, m, c->tensor, c->iteration,
			 um_report_tensor_moved(c->sums.h2d_bytes) + um_report_tensor_moved(c->sums.d2h_bytes));
	}
}

static void heat(const struct html *h, const struct heat_of *of, size_t rows)
{
	const struct um_report *r = h->v->findings.report;
	struct heat m = {.name = of->name, .words = of->words};
	size_t iterations = most_iterations(r);
	int any = 0;

	if (heat_init(&m, rows, iterations)) {
		um_out_fail(h->out, -ENOMEM);
	} else {
		of->fill(r, &m);
		heat_sort(&m, iterations);
		any = m.n_rows > 0;
	}
	if (any) {
		html_f(h, "<div class=\"panel\"><h3>%s</h3>\n<p class=\"about\">%s</p>\n", of->title, of->about);
		heat_draw(h, &m);
		um_out_str(h->out, "</div>\n");
	}
	heat_fini(&m);
}

void html_heat(const struct html *h)
{
	static const struct heat_of maps[] = {
		{"Stalls by tensor", "Kernel time while faults on the tensor were served.", tensor_name, html_ns,
		 fill_waits},
		{"Migrations by tensor", "To the device and to the host, all causes.", tensor_name, html_bytes,
		 fill_moves},
		{"Stalls by kernel", "Kernel time while its faults were served.", op_name, html_ns, fill_ops},
	};
	static const char of_one[] = "Largest rows first; each column is an iteration; the last column is the sum.";
	static const char of_all[] = "Largest rows first; each column is the iteration of that number in all "
				     "processes; the last column is the sum.";
	const struct um_report *r = h->v->findings.report;

	if (most_iterations(r) < 2 || !r->ops.n)
		return;
	html_heading(h, "Iteration by iteration", r->processes.n > 1 ? of_all : of_one);
	um_out_str(h->out, "<div class=\"maps\">\n");
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
		heat(h, &maps[i], maps[i].name == op_name ? r->ops.n : r->tensors.rows.n);
	um_out_str(h->out, "</div>\n");
}

/* --- causes ------------------------------------------------------------------------------------------------------- */

static void share(const struct html *h, const char *title, const struct um_report_moves *moves, uint64_t most)
{
	static const struct {
		const char *class, *name;
		enum um_activity_cause cause[2];
	} parts[] = {{"demand", "on demand", {UM_CAUSE_DEMAND, UM_CAUSE_SPECULATIVE}},
		     {"prefetch", "prefetched", {UM_CAUSE_PREFETCH, UM_CAUSE_PREFETCH}},
		     {"evict", "evicted", {UM_CAUSE_EVICTION, UM_CAUSE_EVICTION}},
		     {"other", "other", {UM_CAUSE_UNKNOWN, UM_CAUSE_COUNTERS}}};
	double at = 0;
	uint64_t sum = 0;
	char a[HTML_ROOM];

	html_f(h,
	       "<span>%s</span>"
	       "<svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">"
	       "<path class=\"room\" d=\"M0 0h1000v10H0z\"/>",
	       title, title);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		uint64_t bytes = moves[parts[i].cause[0]].bytes;
		double wide;

		if (parts[i].cause[1] != parts[i].cause[0])
			bytes += moves[parts[i].cause[1]].bytes;
		wide = most ? 1000 * (double)bytes / (double)most : 0;
		if (bytes)
			html_f(h, "<path class=\"%s\" d=\"M%.4g 0h%.4gv10h-%.4gz\"><title>%s: %s</title></path>",
			       parts[i].class, at, wide, wide, parts[i].name, html_bytes(a, bytes));
		at += wide;
		sum += bytes;
	}
	html_f(h, "</svg><span>%s</span>\n", html_bytes(a, sum));
}

void html_legend(const struct html *h)
{
	static const struct {
		const char *class, *name;
		unsigned causes; /* bits */
	} parts[] = {{"demand", "on demand: page faults", 1u << UM_CAUSE_DEMAND | 1u << UM_CAUSE_SPECULATIVE},
		     {"prefetch", "prefetched", 1u << UM_CAUSE_PREFETCH},
		     {"evict", "evicted to free memory", 1u << UM_CAUSE_EVICTION},
		     {"other", "other", 1u << UM_CAUSE_UNKNOWN | 1u << UM_CAUSE_COUNTERS}};
	const struct um_report_sums *s = &h->v->findings.report->all;

	um_out_str(h->out, "<ul class=\"legend\">");
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		uint64_t n = 0;

		for (int k = 0; k < (UM_DIR_D2D + 1) * UM_CAUSES; k++)
			n += parts[i].causes >> k % UM_CAUSES & 1 ? s->moves[k / UM_CAUSES][k % UM_CAUSES].n : 0;
		if (n)
			html_f(h, "<li><i class=\"%s\"></i>%s</li>", parts[i].class, parts[i].name);
	}
	um_out_str(h->out, "</ul>\n");
}

void html_causes(const struct html *h)
{
	const struct um_report_sums *s = &h->v->findings.report->all;
	uint64_t in = um_report_moved(s, UM_DIR_H2D), out = um_report_moved(s, UM_DIR_D2H), between;

	between = um_report_moved(s, UM_DIR_D2D);
	if (!in && !out && !between)
		return;
	html_heading(h, "Why memory moved", NULL);
	html_legend(h);
	um_out_str(h->out, "<div class=\"share\">\n");
	in = in > out ? in : out;
	in = in > between ? in : between;
	share(h, "to the device", s->moves[UM_DIR_H2D], in);
	share(h, "to the host", s->moves[UM_DIR_D2H], in);
	if (between)
		share(h, "between devices", s->moves[UM_DIR_D2D], in);
	um_out_str(h->out, "</div>\n");
}
