/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"
#include "report_form.h"
#include "report_verdict.h"
#include "table.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH 40 /* of names in a single table */
#define TITLE 80

/* Adds a formatted cell. Names are untrusted: control characters are escaped. */
static void show(struct table *t, const struct report_args *a, const struct um_column *c, struct um_value x)
{
	if (x.none)
		table_cell(t, "-");
	else if (c->kind == UM_COLUMN_TEXT)
		table_cell(t, "%s", tool_text(x.text));
	else if (c->kind == UM_COLUMN_BYTES)
		table_cell(t, "%.1f", (double)x.number / 1048576.0);
	else if (c->kind == UM_COLUMN_COUNT)
		table_cell(t, "%lld", (long long)x.number);
	else
		table_cell(t, a->unit_ns > 1 ? "%.3f" : "%.0f", (double)x.number / a->unit_ns);
}

static void title(const struct report_args *a, const struct um_column *c, char *to)
{
	const char *unit = c->kind == UM_COLUMN_BYTES				? " MiB"
			   : c->kind == UM_COLUMN_NS || c->kind == UM_COLUMN_AT ? a->unit
										: "";

	snprintf(to, TITLE, "%s%s%s", c->title, c->kind == UM_COLUMN_NS || c->kind == UM_COLUMN_AT ? " " : "", unit);
}

/* A list of names and values. */
static int show_single(FILE *to, const struct report_args *a, const struct um_table *t, const struct report_view *v)
{
	static const struct table_column columns[] = {{"", 1, 1}, {"", 0, 1}};
	struct table out = {.columns = columns, .n = 2, .indent = 2, .no_titles = 1};
	char name[TITLE];

	for (unsigned c = 0; c < t->n_columns; c++) {
		struct um_value x = um_table_cell(t, &v->findings, 0, c);

		title(a, &t->columns[c], name);
		table_cell(&out, "%-*s", NAME_WIDTH, name);
		show(&out, a, &t->columns[c], x);
		if (!out.err)
			table_shorten(out.cells.at[out.cells.n - 1], TABLE_WIDTH - NAME_WIDTH - 4);
	}
	return table_write(&out, to);
}

static int show_rows(FILE *to, const struct report_args *a, const struct um_table *t, size_t rows,
		     const struct report_view *v)
{
	unsigned first = !um_column_shown(&v->findings, &t->columns[0]);
	struct table_column columns[TABLE_COLUMNS];
	struct table out = {.columns = columns, .n = t->n_columns - first, .indent = 2, .no_titles = !a->header};
	char titles[TABLE_COLUMNS][TITLE];
	int named = 0; /* columns that identify a row stay, even if all are 0 */

	for (unsigned c = first; c < t->n_columns; c++) {
		title(a, &t->columns[c], titles[c]);
		columns[c - first] = (struct table_column){titles[c], t->columns[c].kind == UM_COLUMN_TEXT, !named};
		named |= columns[c - first].left;
	}
	for (size_t i = 0; i < rows; i++)
		for (unsigned c = first; c < t->n_columns; c++)
			show(&out, a, &t->columns[c], um_table_cell(t, &v->findings, i, c));
	return table_write(&out, to);
}

/* The default tables of the library's own log and of other recordings. */
static int fits(const struct um_table *t, const struct report_view *v)
{
	int log = v->findings.capture->library.is;

	if (t == um_tables[UM_TABLE_PROCESSES])
		return um_table_rows(t, &v->findings) > 1;
	if (t == um_tables[UM_TABLE_LIBRARY] || t == um_tables[UM_TABLE_ANNOUNCED] || t == um_tables[UM_TABLE_HINTS])
		return log;
	if (t == um_tables[UM_TABLE_FINDINGS])
		return !log || um_table_rows(t, &v->findings);
	return !log || v->findings.capture->library.counters || t != um_tables[UM_TABLE_SUMMARY];
}

static int show_table(FILE *to, const struct report_args *a, const struct report_choice *choice,
		      const struct report_view *v)
{
	const struct um_table *t = choice->table;
	size_t rows = um_table_rows(t, &v->findings);
	size_t shown = choice->rows && choice->rows < rows ? choice->rows : rows;
	int err = 0;

	if (t == um_tables[UM_TABLE_FINDINGS]) {
		report_findings(to, a, choice, v);
		return 0;
	}
	if (!rows && !a->chosen)
		return 0;
	fprintf(to, "\n%s%s%s: %s\n", paint(PAINT_HEADING), t->name, paint(PAINT_OFF), rows ? t->about : "none");
	if (rows)
		err = t->single ? show_single(to, a, t, v) : show_rows(to, a, t, shown, v);
	if (shown < rows)
		fprintf(to, "  and %zu more: --report %s:rows=%zu\n", rows - shown, t->name, rows);
	return err;
}

static void show_note(FILE *to, const char *text)
{
	fputs("note: ", to);
	table_wrap(to, 6, 6, tool_text(text));
}

static void show_file(FILE *to, const struct report_view *v)
{
	const struct um_capture *c = v->findings.capture;
	char name[800], product[200] = "", schema[200] = "";

	snprintf(name, sizeof name, "%s", tool_text(v->file));
	if (*c->product)
		snprintf(product, sizeof product, ": %s%s", c->library.is ? "" : "Nsight Systems ",
			 tool_text(c->product));
	if (*c->schema)
		snprintf(schema, sizeof schema, ", schema %s", tool_text(c->schema));
	table_wrapf(to, 0, 2, "%s%s%s", name, product, schema);
}

static int show_all(FILE *to, const struct report_args *a, const struct report_view *v)
{
	const struct um_capture *c = v->findings.capture;
	char line[900];
	int err = 0;

	show_file(to, v);
	if (!a->chosen && (!c->library.is || c->library.counters)) {
		report_short(v, line, sizeof line);
		table_wrap(to, 0, 0, line);
	}
	for (size_t i = 0; i < c->notes.n && !a->quiet; i++)
		show_note(to, c->notes.at[i]);
	for (unsigned i = 0; i < v->n_notes && !a->quiet; i++)
		show_note(to, v->notes[i]);
	report_verdict_show(to, a, v->findings.verdict);
	for (unsigned i = 0; i < a->n_tables && !err; i++)
		if (a->chosen || fits(a->tables[i].table, v))
			err = show_table(to, a, &a->tables[i], v);
	return err;
}

void report_text(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);
	int err = to ? show_all(to, a, v) : -ENOMEM;

	if ((to && fclose(to)) || err)
		um_out_fail(out, -ENOMEM);
	else
		um_out_write(out, text, n);
	free(text);
}
