/* SPDX-License-Identifier: Apache-2.0 */
#include "report_form.h"

void report_csv(struct um_out *out, const struct report_args *a, const struct report_view *v)
{
	const struct um_table *t = a->tables[0].table;
	unsigned first = !um_column_shown(&v->findings, &t->columns[0]);
	size_t rows = um_table_rows(t, &v->findings);

	if (a->tables[0].rows && a->tables[0].rows < rows)
		rows = a->tables[0].rows;
	for (unsigned c = first; c < t->n_columns && a->header; c++) {
		um_out_str(out, c > first ? "," : "");
		um_out_str(out, t->columns[c].key);
	}
	um_out_str(out, a->header ? "\r\n" : "");
	for (size_t i = 0; i < rows; i++) {
		for (unsigned c = first; c < t->n_columns; c++) {
			struct um_value x = um_table_cell(t, &v->findings, i, c);

			um_out_str(out, c > first ? "," : "");
			if (!x.none && t->columns[c].kind == UM_COLUMN_TEXT)
				um_out_csv(out, x.text, 0);
			else if (!x.none)
				um_out_i64(out, x.number);
		}
		um_out_str(out, "\r\n");
	}
}
