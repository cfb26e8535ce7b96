/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include "paint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 100

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n >= 0 && !um_vec_push(&t->cells, s))
		return;
	if (n >= 0)
		free(s);
	t->err = -ENOMEM;
}

void table_end_row(struct table *t)
{
	while (!t->err && t->cells.n % t->n)
		table_cell(t, "%s", "");
}

/* "", "-", or a number that is 0. */
static int is_empty(const char *s)
{
	return !s[strspn(s, "0.")] || strcmp(s, "-") == 0;
}

/* By column; 0: it is left out. */
static void measure(const struct table *t, size_t *width)
{
	for (unsigned c = 0; c < t->n; c++) {
		size_t widest = strlen(t->columns[c].title);
		int used = t->columns[c].keep;

		for (size_t i = c; i < t->cells.n; i += t->n) {
			widest = strlen(t->cells.at[i]) > widest ? strlen(t->cells.at[i]) : widest;
			used |= !is_empty(t->cells.at[i]);
		}
		width[c] = used ? widest : 0;
	}
}

/* Nothing is padded at the end of a line. */
static void write_cell(const struct table *t, unsigned c, const char *s, size_t width, size_t *pending, FILE *to)
{
	size_t fill = width - strlen(s);

	if (t->columns[c].left) {
		if (*s)
			fprintf(to, "%*s%s", (int)*pending, "", s);
		*pending = *s ? fill : *pending + fill;
	} else {
		fprintf(to, "%*s%s", (int)(*pending + fill), "", s);
		*pending = 0;
	}
}

static void write_row(const struct table *t, const char *const *cells, const size_t *width, size_t gap, FILE *to)
{
	size_t pending = 0;
	int first = 1;

	for (unsigned c = 0; c < t->n; c++) {
		if (!width[c])
			continue;
		pending += first ? 0 : gap;
		first = 0;
		write_cell(t, c, cells ? cells[c] : t->columns[c].title, width[c], &pending, to);
	}
}

int table_write(struct table *t, FILE *to)
{
	size_t width[TABLE_COLUMNS], all = 0, shown = 0;
	int err = t->err;

	measure(t, width);
	for (unsigned c = 0; c < t->n; c++) {
		all += width[c];
		shown += width[c] != 0;
	}
	size_t gap = all + 2 * (shown - 1) > WIDTH ? 1 : 2;

	if (!err && t->cells.n) {
		fputs(paint(PAINT_HEADING), to);
		write_row(t, NULL, width, gap, to);
		fprintf(to, "%s\n", paint(PAINT_OFF));
	}
	for (size_t i = 0; !err && i + t->n <= t->cells.n; i += t->n) {
		write_row(t, (const char *const *)&t->cells.at[i], width, gap, to);
		fputc('\n', to);
	}
	for (size_t i = 0; i < t->cells.n; i++)
		free(t->cells.at[i]);
	um_vec_fini(&t->cells);
	*t = (struct table){.columns = t->columns, .n = t->n};
	return err;
}
