/* SPDX-License-Identifier: Apache-2.0 */
#include "report_form.h"

#include <string.h>

static void field(struct um_out *out, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		um_out_str(out, s);
		return;
	}
	um_out_str(out, "\"");
	for (; *s; s++) {
		um_out_write(out, s, 1);
		if (*s == '"')
			um_out_str(out, "\"");
	}
	um_out_str(out, "\"");
}

void report_csv(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	const struct um_table *t = a->tables[0].table;
	unsigned first = !um_column_shown(&v->findings, &t->columns[0]);
	size_t rows = t->rows(&v->findings);

	if (a->tables[0].rows && a->tables[0].rows < rows)
		rows = a->tables[0].rows;
	for (unsigned c = first; c < t->n_columns && a->header; c++) {
		um_out_str(out, c > first ? "," : "");
		um_out_str(out, t->columns[c].key);
	}
	um_out_str(out, a->header ? "\r\n" : "");
	for (size_t i = 0; i < rows; i++) {
		for (unsigned c = first; c < t->n_columns; c++) {
			struct um_value x = t->cell(&v->findings, i, c);

			um_out_str(out, c > first ? "," : "");
			if (!x.none && t->columns[c].kind == UM_COLUMN_TEXT)
				field(out, x.text);
			else if (!x.none)
				um_out_i64(out, x.number);
		}
		um_out_str(out, "\r\n");
	}
}
