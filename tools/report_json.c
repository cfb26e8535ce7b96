/* SPDX-License-Identifier: Apache-2.0 */
#include "report_form.h"

#include <string.h>

static void key(struct um_out *out, const char *name)
{
	um_out_json_str(out, name);
	um_out_str(out, ": ");
}

/* Tables have hyphens in their names, keys have underscores. */
static void table_key(struct um_out *out, const char *name)
{
	char text[64];
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof text; n++)
		text[n] = name[n] == '-' ? '_' : name[n];
	text[n] = '\0';
	key(out, text);
}

static void row(struct um_out *out, const struct um_table *t, const struct report_view *v, size_t i)
{
	unsigned first = !um_column_shown(&v->findings, &t->columns[0]);

	for (unsigned c = first; c < t->n_columns; c++) {
		struct um_value x = um_table_cell(t, &v->findings, i, c);

		um_out_str(out, c > first ? ", " : "");
		key(out, t->columns[c].key);
		if (x.none)
			um_out_str(out, "null");
		else if (t->columns[c].kind == UM_COLUMN_TEXT)
			um_out_json_str(out, x.text);
		else
			um_out_i64(out, x.number);
	}
}

/* Sums, and the names of missing tables, whose sums are 0. */
static void summary(struct um_out *out, const struct report_view *v)
{
	const struct um_capture *c = v->findings.capture;

	um_out_str(out, " \"summary\": {");
	row(out, um_tables[UM_TABLE_SUMMARY], v, 0);
	um_out_str(out, ", \"missing\": [");
	for (size_t i = 0; i < c->missing.n; i++) {
		size_t before = 0;

		while (before < i && strcmp(c->missing.at[before].table, c->missing.at[i].table) != 0)
			before++;
		if (before < i)
			continue;
		um_out_str(out, i ? ", " : "");
		um_out_json_str(out, c->missing.at[i].table);
	}
	um_out_str(out, "]}");
}

static void notes(struct um_out *out, const struct report_view *v)
{
	const struct um_capture *c = v->findings.capture;

	um_out_str(out, ",\n \"notes\": [");
	for (size_t i = 0; i < c->notes.n + v->n_notes; i++) {
		um_out_str(out, i ? ", " : "");
		um_out_json_str(out, i < c->notes.n ? c->notes.at[i] : v->notes[i - c->notes.n]);
	}
	um_out_str(out, "]");
}

static void table(struct um_out *out, const struct report_choice *choice, const struct report_view *v)
{
	const struct um_table *t = choice->table;
	size_t rows = um_table_rows(t, &v->findings);

	if (choice->rows && choice->rows < rows)
		rows = choice->rows;
	um_out_str(out, ",\n ");
	table_key(out, t->name);
	um_out_str(out, "[");
	for (size_t i = 0; i < rows; i++) {
		um_out_str(out, i ? ",\n  {" : "\n  {");
		row(out, t, v, i);
		um_out_str(out, "}");
	}
	um_out_str(out, "]");
}

/* A merged report has no single file. */
static void files(struct um_out *out, const struct report_args *a)
{
	um_out_str(out, "null,\n \"files\": [");
	for (int i = 0; i < a->n_files; i++) {
		um_out_str(out, i ? ", " : "");
		um_out_json_str(out, a->files[i]);
	}
	um_out_str(out, "]");
}

void report_json(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	const struct report_choice missing = {um_tables[UM_TABLE_MISSING], 0};

	um_out_str(out, "{\"schema\": \"umreport/1\",\n \"file\": ");
	if (a->merge)
		files(out, a);
	else
		um_out_json_str(out, v->file);
	um_out_str(out, ",\n \"product_version\": ");
	um_out_json_str(out, v->findings.capture->product);
	um_out_str(out, ",\n \"schema_version\": ");
	um_out_json_str(out, v->findings.capture->schema);
	um_out_str(out, ",\n");
	summary(out, v);
	if (v->findings.capture->library.is) {
		um_out_str(out, ",\n \"library\": {");
		row(out, um_tables[UM_TABLE_LIBRARY], v, 0);
		um_out_str(out, "}");
	}
	if (v->findings.verdict) {
		um_out_str(out, ",\n \"verdict\": {");
		row(out, um_tables[UM_TABLE_VERDICT], v, 0);
		um_out_str(out, "}");
	}
	table(out, &missing, v);
	notes(out, v);
	for (unsigned i = 0; i < a->n_tables; i++)
		if (!a->tables[i].table->single && a->tables[i].table != missing.table)
			table(out, &a->tables[i], v);
	um_out_str(out, "}\n");
}
