/* SPDX-License-Identifier: Apache-2.0
 *
 * Any table of tables.h, whichever there are: its columns say what they are.
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
		if (x.number < 0)
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
		html_f(h, "<td class=\"%sno\">&ndash;</td>", text ? "t " : "");
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
	const char *unit = c->kind == UM_COLUMN_BYTES                           ? "MiB"
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
		cell(h, &t->columns[c], t->cell(&h->v->findings, 0, c), 1);
		um_out_str(h->out, "</tr>\n");
	}
	um_out_str(h->out, "</tbody></table></div>\n");
}

static void rows(const struct html *h, const struct um_table *t, size_t n)
{
	html_f(h,
	       "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table class=\"rows\"><thead>"
	       "<tr>",
	       t->name);
	for (unsigned c = 0; c < t->n_columns; c++)
		title(h, &t->columns[c]);
	um_out_str(h->out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < n; i++) {
		um_out_str(h->out, "<tr>");
		for (unsigned c = 0; c < t->n_columns; c++)
			cell(h, &t->columns[c], t->cell(&h->v->findings, i, c), 0);
		um_out_str(h->out, "</tr>\n");
	}
	um_out_str(h->out, "</tbody></table></div>\n");
}

/* Those one looks at first are open. */
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
		size_t n = t->rows(&h->v->findings), most = h->a->tables[i].rows;
		size_t shown = most && most < n ? most : n;

		if (!n && !h->a->chosen)
			continue;
		html_f(h, "<details id=\"%s\"%s><summary>%s <span>%s", t->name, is_open(t->name) ? " open" : "",
		       t->name, n ? t->about : "none");
		html_f(h, n && !t->single ? " (%zu)" : "", n);
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

/* --- findings ----------------------------------------------------------------------------------------------------- */

static const struct um_table *table_named(const char *name)
{
	for (int i = 0; i < UM_TABLES; i++)
		if (strcmp(um_tables[i].name, name) == 0)
			return &um_tables[i];
	return NULL;
}

static struct um_value text_of(const struct html *h, const struct um_table *t, size_t row, const char *key)
{
	for (unsigned c = 0; c < t->n_columns; c++)
		if (strcmp(t->columns[c].key, key) == 0 && t->columns[c].kind == UM_COLUMN_TEXT)
			return t->cell(&h->v->findings, row, c);
	return (struct um_value){.none = 1};
}

/* Texts below each other, the first of them as the heading; then the numbers. */
static void finding(const struct html *h, const struct um_table *t, size_t row)
{
	struct um_value severity = text_of(h, t, row, "severity");
	int texts = 0, numbers = 0;

	um_out_str(h->out, "<article class=\"finding ");
	um_out_html(h->out, severity.none ? "" : severity.text, 16);
	um_out_str(h->out, "\">\n");
	for (unsigned c = 0; c < t->n_columns; c++) {
		struct um_value x = t->cell(&h->v->findings, row, c);

		numbers += !x.none && t->columns[c].kind != UM_COLUMN_TEXT;
		if (x.none || t->columns[c].kind != UM_COLUMN_TEXT || strcmp(t->columns[c].key, "severity") == 0)
			continue;
		um_out_str(h->out, texts ? "<p>" : "<h3>");
		if (!texts && !severity.none) {
			um_out_str(h->out, "<span class=\"badge\">");
			um_out_html(h->out, severity.text, 16);
			um_out_str(h->out, "</span>");
		}
		html_name(h, x.text, 400);
		um_out_str(h->out, texts++ ? "</p>\n" : "</h3>\n");
	}
	um_out_str(h->out, numbers ? "<dl>" : "");
	for (unsigned c = 0; c < t->n_columns; c++) {
		struct um_value x = t->cell(&h->v->findings, row, c);

		if (x.none || t->columns[c].kind == UM_COLUMN_TEXT)
			continue;
		html_f(h, "<div><dt>%s</dt><dd>", t->columns[c].title);
		value_alone(h, &t->columns[c], x);
		um_out_str(h->out, "</dd></div>");
	}
	um_out_str(h->out, numbers ? "</dl>\n</article>\n" : "</article>\n");
}

void html_findings(const struct html *h)
{
	const struct um_table *t = table_named("findings");
	size_t n = t ? t->rows(&h->v->findings) : 0;

	if (!t)
		return;
	html_heading(h, "Findings", n ? NULL : "None.");
	for (size_t i = 0; i < n && i < 50; i++)
		finding(h, t, i);
}
