/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns are as wide as what is in them; texts to the left, numbers to the right.
 */
#include "base/text.h"
#include "paint.h"
#include "report_form.h"
#include "report_verdict.h"

#include <stdio.h>
#include <string.h>

#define WIDE 56 /* columns of a text; what is longer is cut */
#define CELL 80

/* A cell as it is shown. Names come from anywhere: nothing that a terminal would obey gets through. */
static void show(const struct report_args *a, const struct um_column *c, struct um_value x, char *to)
{
	char room[1024];
	const char *text;
	size_t n;

	if (x.none) {
		strcpy(to, "-");
		return;
	}
	switch (c->kind) {
	case UM_COLUMN_TEXT:
		text = um_text_visible(x.text, room, sizeof room);
		n = strlen(text) > WIDE ? WIDE - 3 : WIDE;
		while (n < WIDE && n && (text[n] & 0xc0) == 0x80)
			n--; /* between characters */
		snprintf(to, CELL, n < WIDE ? "%.*s..." : "%.*s", (int)n, text);
		break;
	case UM_COLUMN_BYTES:
		snprintf(to, CELL, "%.1f", (double)x.number / 1048576.0);
		break;
	case UM_COLUMN_NS:
	case UM_COLUMN_AT:
		snprintf(to, CELL, a->unit_ns > 1 ? "%.3f" : "%.0f", (double)x.number / a->unit_ns);
		break;
	case UM_COLUMN_COUNT:
		snprintf(to, CELL, "%lld", (long long)x.number);
		break;
	}
}

static void title(const struct report_args *a, const struct um_column *c, char *to)
{
	const char *unit = c->kind == UM_COLUMN_BYTES				? " MiB"
			   : c->kind == UM_COLUMN_NS || c->kind == UM_COLUMN_AT ? a->unit
										: "";

	snprintf(to, CELL, "%s%s%s", c->title, c->kind == UM_COLUMN_NS || c->kind == UM_COLUMN_AT ? " " : "", unit);
}

static void put(struct um_out *out, const char *s, size_t width, int left, int last)
{
	char line[2 * CELL + 8];

	if (left)
		snprintf(line, sizeof line, "%-*s%s", last ? 0 : (int)width, s, last ? "\n" : "  ");
	else
		snprintf(line, sizeof line, "%*s%s", (int)width, s, last ? "\n" : "  ");
	um_out_str(out, line);
}

/* Keys and values below each other. */
static void show_single(struct um_out *out, const struct report_args *a, const struct um_table *t,
			const struct report_view *v)
{
	char name[CELL], value[CELL];

	for (unsigned c = 0; c < t->n_columns; c++) {
		struct um_value x = um_table_cell(t, &v->findings, 0, c);

		title(a, &t->columns[c], name);
		show(a, &t->columns[c], x, value);
		um_out_str(out, "  ");
		put(out, name, 40, 1, 0);
		put(out, value, 16, 0, 1);
	}
}

static void show_rows(struct um_out *out, const struct report_args *a, const struct um_table *t, size_t rows,
		      const struct report_view *v)
{
	unsigned first = !um_column_shown(&v->findings, &t->columns[0]);
	size_t width[32] = {0};
	char cell[CELL];

	for (unsigned c = first; c < t->n_columns; c++) {
		title(a, &t->columns[c], cell);
		width[c] = a->header ? strlen(cell) : 0;
		for (size_t i = 0; i < rows; i++) {
			show(a, &t->columns[c], um_table_cell(t, &v->findings, i, c), cell);
			width[c] = strlen(cell) > width[c] ? strlen(cell) : width[c];
		}
	}
	for (unsigned c = first; c < t->n_columns && a->header; c++) {
		title(a, &t->columns[c], cell);
		um_out_str(out, c > first ? "" : "  ");
		put(out, cell, width[c], t->columns[c].kind == UM_COLUMN_TEXT, c + 1 == t->n_columns);
	}
	for (size_t i = 0; i < rows; i++)
		for (unsigned c = first; c < t->n_columns; c++) {
			show(a, &t->columns[c], um_table_cell(t, &v->findings, i, c), cell);
			um_out_str(out, c > first ? "" : "  ");
			put(out, cell, width[c], t->columns[c].kind == UM_COLUMN_TEXT, c + 1 == t->n_columns);
		}
}

/* Where nothing was asked for: what is of the library's own log only, or of other recordings only. */
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

static void show_table(struct um_out *out, const struct report_args *a, const struct report_choice *choice,
		       const struct report_view *v)
{
	const struct um_table *t = choice->table;
	size_t rows = um_table_rows(t, &v->findings), shown = choice->rows && choice->rows < rows ? choice->rows : rows;
	char line[160];

	if (t == um_tables[UM_TABLE_FINDINGS]) {
		report_findings(out, a, choice, v);
		return;
	}
	if (!rows && !a->chosen)
		return;
	um_out_str(out, "\n");
	snprintf(line, sizeof line, "%s%s%s: %s\n", paint(PAINT_HEADING), t->name, paint(PAINT_OFF),
		 rows ? t->about : "none");
	um_out_str(out, line);
	if (rows && t->single)
		show_single(out, a, t, v);
	else if (rows)
		show_rows(out, a, t, shown, v);
	if (shown < rows) {
		snprintf(line, sizeof line, "  and %zu more: --report %s:rows=%zu\n", rows - shown, t->name, rows);
		um_out_str(out, line);
	}
}

static void show_note(struct um_out *out, const char *text)
{
	um_out_str(out, "note: ");
	um_out_visible(out, text);
	um_out_str(out, "\n");
}

void report_text(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	const struct um_capture *c = v->findings.capture;
	char line[900];

	um_out_visible(out, v->file);
	if (*c->product) {
		um_out_str(out, c->library.is ? ": " : ": Nsight Systems ");
		um_out_visible(out, c->product);
	}
	if (*c->schema) {
		um_out_str(out, ", schema ");
		um_out_visible(out, c->schema);
	}
	um_out_str(out, "\n");
	if (!a->chosen && (!c->library.is || c->library.counters)) {
		report_short(v, line, sizeof line);
		um_out_str(out, line);
		um_out_str(out, "\n");
	}
	for (size_t i = 0; i < c->notes.n && !a->quiet; i++)
		show_note(out, c->notes.at[i]);
	for (unsigned i = 0; i < v->n_notes && !a->quiet; i++)
		show_note(out, v->notes[i]);
	report_verdict_show(out, a, v->findings.verdict);
	for (unsigned i = 0; i < a->n_tables; i++) {
		if (!a->chosen && !fits(a->tables[i].table, v))
			continue;
		show_table(out, a, &a->tables[i], v);
	}
}
