/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints any table of tables.h, from the descriptions of its columns.
 */
#include "report_html.h"

#include <stdio.h>
#include <string.h>

#define NAME 60 /* characters of a name in a table */

static double unit_ns(const struct html *h)
{
	return h->a->unit_ns;
}

/* A number in the unit of its column. */
static void value(const struct html *h, const struct um_column *c, struct um_value x)
{
	char text[HTML_ROOM];

	switch (c->kind) {
	case UM_COLUMN_TEXT:
		html_name(h, x.text, NAME);
		break;
	case UM_COLUMN_BYTES:
		html_f(h, "%.1f", (double)x.number / 1048576.0);
		break;
	case UM_COLUMN_NS:
	case UM_COLUMN_AT:
		html_f(h, unit_ns(h) > 1 ? "%.3f" : "%.0f", (double)x.number / unit_ns(h));
		break;
	default:
		/* Identifiers are printed without digit groups. */
		if (x.number < 0 || strcmp(c->key, "pid") == 0 || strcmp(c->key, "n") == 0)
			html_f(h, "%lld", (long long)x.number);
		else
			um_out_str(h->out, html_count(text, (uint64_t)x.number));
	}
}

/* By itself, with its unit. */
static void value_alone(const struct html *h, const struct um_column *c, struct um_value x)
{
	char text[HTML_ROOM];

	if (c->kind == UM_COLUMN_BYTES && x.number >= 0)
		um_out_str(h->out, html_bytes(text, (uint64_t)x.number));
	else if (c->kind == UM_COLUMN_NS && x.number >= 0)
		um_out_str(h->out, html_ns(text, (uint64_t)x.number));
	else
		value(h, c, x);
}

static void cell(const struct html *h, const struct um_column *c, struct um_value x, int alone)
{
	int text = c->kind == UM_COLUMN_TEXT;

	if (x.none) {
		html_f(h, "<td class=\"%sno\"%s>&ndash;</td>", text ? "t " : "",
		       x.none == UM_VALUE_NOT_RECORDED ? " title=\"not recorded: see the table missing\"" : "");
		return;
	}
	if (text) {
		um_out_str(h->out, "<td class=\"t\" data-v=\"");
		um_out_html(h->out, x.text, NAME);
		um_out_str(h->out, "\">");
	} else {
		html_f(h, "<td data-v=\"%lld\">", (long long)x.number);
	}
	(alone ? value_alone : value)(h, c, x);
	um_out_str(h->out, "</td>");
}

static void title(const struct html *h, const struct um_column *c)
{
	const char *unit = c->kind == UM_COLUMN_BYTES				? "MiB"
			   : c->kind == UM_COLUMN_NS || c->kind == UM_COLUMN_AT ? h->a->unit
										: NULL;

	html_f(h, "<th scope=\"col\"%s>%s", c->kind == UM_COLUMN_TEXT ? " class=\"t\"" : "", c->title);
	if (unit)
		html_f(h, " <small>%s</small>", unit);
	um_out_str(h->out, "</th>");
}

static void single(const struct html *h, const struct um_table *t)
{
	um_out_str(h->out, "<div class=\"scroll\"><table><tbody>\n");
	for (unsigned c = 0; c < t->n_columns; c++) {
		html_f(h, "<tr data-key=\"%s\"><th scope=\"row\">%s</th>", t->columns[c].key, t->columns[c].title);
		cell(h, &t->columns[c], um_table_cell(t, &h->v->findings, 0, c), 1);
		um_out_str(h->out, "</tr>\n");
	}
	um_out_str(h->out, "</tbody></table></div>\n");
}

static void rows(const struct html *h, const struct um_table *t, size_t n)
{
	unsigned first = !um_column_shown(&h->v->findings, &t->columns[0]);

	html_f(h,
	       "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table class=\"rows\"><thead>"
	       "<tr>",
	       t->name);
	for (unsigned c = first; c < t->n_columns; c++)
		title(h, &t->columns[c]);
	um_out_str(h->out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < n; i++) {
		um_out_str(h->out, "<tr>");
		for (unsigned c = first; c < t->n_columns; c++)
			cell(h, &t->columns[c], um_table_cell(t, &h->v->findings, i, c), 0);
		um_out_str(h->out, "</tr>\n");
	}
	um_out_str(h->out, "</tbody></table></div>\n");
}

/* The most important tables are open. */
static int is_open(const char *name)
{
	static const char *const open[] = {"iterations", "tensors", "ops", "missing"};

	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		if (strcmp(name, open[i]) == 0)
			return 1;
	return 0;
}

void html_tables(const struct html *h)
{
	html_heading(h, "Tables", NULL);
	for (unsigned i = 0; i < h->a->n_tables; i++) {
		const struct um_table *t = h->a->tables[i].table;
		size_t n = um_table_rows(t, &h->v->findings), most = h->a->tables[i].rows;
		size_t shown = most && most < n ? most : n;

		/* Findings are printed separately, before all tables. */
		if ((!n && !h->a->chosen) || t == um_tables[UM_TABLE_FINDINGS])
			continue;
		html_f(h, "<details id=\"%s\"%s><summary>%s <span>%s", t->name, is_open(t->name) ? " open" : "",
		       t->name, n ? t->about : "none");
		if (n && !t->single)
			html_f(h, " (%zu)", n);
		um_out_str(h->out, "</span></summary>\n");
		if (n && t->single)
			single(h, t);
		else if (n)
			rows(h, t, shown);
		if (shown < n)
			html_f(h, "<p class=\"more\">and %zu more: <code>--report %s:rows=%zu</code></p>\n", n - shown,
			       t->name, n);
		um_out_str(h->out, "</details>\n");
	}
}
