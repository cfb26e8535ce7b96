/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include "paint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_TEXT 16 /* width to which a text column may shrink for a single block */
#define MOST_TEXT 32 /* its width if several blocks are needed */

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

/* --- characters --------------------------------------------------------------------------------------------------- */

static int begins(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (size_t)begins(*s);
	return n;
}

/* Offset of character n. */
static char *skip(char *s, size_t n)
{
	for (; *s && (!begins(*s) || n); s++)
		n -= (size_t)begins(*s);
	return s;
}

char *table_shorten(char *s, size_t most)
{
	size_t n = width_of(s), tail = (most - 3) / 2;
	char *from, *to;

	if (n <= most)
		return s;
	to = skip(s, most - 3 - tail);
	from = skip(s, n - tail);
	memmove(to + 3, from, strlen(from) + 1); /* leaves out more than three bytes */
	memcpy(to, "...", 3);
	return s;
}

void table_wrap(FILE *to, size_t column, size_t indent, const char *text)
{
	char word[4 * TABLE_WIDTH + 8];
	size_t start = column;

	while (*text) {
		size_t n = strcspn(text, " "), wide;
		char *copy = strndup(text, n);

		if (!copy)
			break;
		snprintf(word, sizeof word, "%s", table_shorten(copy, TABLE_WIDTH - indent));
		free(copy);
		wide = width_of(word);
		if (column + (column > start) + wide > TABLE_WIDTH && column > indent) {
			fprintf(to, "\n%*s", (int)indent, "");
			column = start = indent;
		}
		column += (size_t)fprintf(to, "%s", column > start ? " " : "") + wide;
		fputs(word, to);
		text += n + (text[n] == ' ');
	}
	fputc('\n', to);
}

void table_wrapf(FILE *to, size_t column, size_t indent, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	table_wrap(to, column, indent, s);
	free(s);
}

/* --- widths ------------------------------------------------------------------------------------------------------- */

/* How a table is laid out. */
struct layout {
	size_t width[TABLE_COLUMNS]; /* 0: the column is left out */
	size_t gap;
	unsigned lead; /* leading columns, repeated in each block */
	int wrapped; /* titles take several lines */
};

/* "", "-", or a number that is 0. */
static int is_empty(const char *s)
{
	return !s[strspn(s, "0.")] || strcmp(s, "-") == 0;
}

static size_t longest_word(const char *s)
{
	size_t most = 0;

	for (; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		most = n > most ? n : most;
		s += n;
	}
	return most;
}

static void measure(const struct table *t, struct layout *l)
{
	for (unsigned c = 0; c < t->n; c++) {
		size_t widest = t->no_titles ? 1
				: l->wrapped ? longest_word(t->columns[c].title)
					     : width_of(t->columns[c].title);
		int used = t->columns[c].keep;

		for (size_t i = c; i < t->cells.n; i += t->n) {
			size_t n = width_of(t->cells.at[i]);

			widest = n > widest ? n : widest;
			used |= !is_empty(t->cells.at[i]);
		}
		l->width[c] = used ? widest : 0;
	}
}

static size_t total(const struct table *t, const struct layout *l)
{
	size_t all = t->indent, shown = 0;

	for (unsigned c = 0; c < t->n; c++) {
		all += l->width[c];
		shown += l->width[c] != 0;
	}
	return all + (shown ? l->gap * (shown - 1) : 0);
}

/* Shrinks the widest text column, one character at a time. */
static void shrink(const struct table *t, struct layout *l, size_t least)
{
	while (total(t, l) > TABLE_WIDTH) {
		unsigned widest = t->n;

		for (unsigned c = 0; c < t->n; c++)
			if (t->columns[c].left && l->width[c] > least &&
			    (widest == t->n || l->width[c] > l->width[widest]))
				widest = c;
		if (widest == t->n)
			return;
		l->width[widest]--;
	}
}

/* Number of lines of the title in a column of that width; line `n` goes to `to`. */
static int title_line(const char *title, size_t width, int n, char *to, size_t size)
{
	int line = 0;

	*to = '\0';
	for (const char *s = title; *s; line++) {
		size_t len = 0;

		do {
			size_t word = strcspn(s + len + (len > 0), " ");

			if (len && len + 1 + word > width)
				break;
			len += (len > 0) + word;
		} while (s[len]);
		if (line == n)
			snprintf(to, size, "%.*s", (int)len, s);
		s += len + (s[len] == ' ');
	}
	return line;
}

static void lay_out(const struct table *t, struct layout *l)
{
	*l = (struct layout){.gap = 2};
	measure(t, l);
	if (total(t, l) > TABLE_WIDTH)
		l->gap = 1;
	if (total(t, l) > TABLE_WIDTH) {
		l->gap = 2;
		l->wrapped = 1;
		measure(t, l);
		shrink(t, l, SHORT_TEXT);
	}
	if (total(t, l) > TABLE_WIDTH) {
		measure(t, l);
		for (unsigned c = 0; c < t->n; c++)
			if (t->columns[c].left && l->width[c] > MOST_TEXT)
				l->width[c] = MOST_TEXT;
	}
	for (unsigned c = 0; c < t->n && !l->lead; c++)
		l->lead = t->columns[c].left && l->width[c] ? c + 1 : 0;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Columns [0, lead) and [from, to). */
struct block {
	unsigned lead, from, to;
	int titles; /* lines of the titles */
};

static int is_in(const struct layout *l, const struct block *b, unsigned c)
{
	return l->width[c] && (c < b->lead || (c >= b->from && c < b->to));
}

/* Ends a line without padding. */
static void write_cell(const struct table *t, unsigned c, char *s, size_t width, size_t *pending, FILE *to)
{
	size_t fill;

	table_shorten(s, t->columns[c].left && width > 5 ? width : width_of(s) + 5);
	fill = width - width_of(s);
	if (t->columns[c].left) {
		if (*s)
			fprintf(to, "%*s%s", (int)*pending, "", s);
		*pending = *s ? fill : *pending + fill;
	} else if (*s) {
		fprintf(to, "%*s%s", (int)(*pending + fill), "", s);
		*pending = 0;
	} else {
		*pending += width;
	}
}

/* A row, or with `cells` NULL a line of the titles, which are aligned to the bottom. */
static void write_row(const struct table *t, const struct layout *l, const struct block *b, char *const *cells,
		      int line, FILE *to)
{
	size_t pending = t->indent;
	int first = 1;
	char title[128];

	for (unsigned c = 0; c < b->to; c++) {
		const char *whole = t->columns[c].title;

		if (!is_in(l, b, c))
			continue;
		pending += first ? 0 : l->gap;
		first = 0;
		if (!cells)
			title_line(whole, l->width[c],
				   line - b->titles + title_line(whole, l->width[c], -1, title, sizeof title), title,
				   sizeof title);
		write_cell(t, c, cells ? cells[c] : title, l->width[c], &pending, to);
	}
}

static void write_block(const struct table *t, const struct layout *l, struct block *b, FILE *to)
{
	char room[8];

	for (unsigned c = 0; c < b->to; c++) {
		int lines = is_in(l, b, c) ? title_line(t->columns[c].title, l->width[c], -1, room, sizeof room) : 0;

		b->titles = lines > b->titles ? lines : b->titles;
	}
	for (int line = 0; line < b->titles && !t->no_titles; line++) {
		fputs(paint(PAINT_HEADING), to);
		write_row(t, l, b, NULL, line, to);
		fprintf(to, "%s\n", paint(PAINT_OFF));
	}
	for (size_t i = 0; i + t->n <= t->cells.n; i += t->n) {
		write_row(t, l, b, &t->cells.at[i], 0, to);
		fputc('\n', to);
	}
}

/* The end of a block that begins at a column. */
static unsigned block_end(const struct table *t, const struct layout *l, unsigned lead, unsigned from)
{
	size_t wide = t->indent;
	unsigned c = from;

	for (unsigned k = 0; k < lead; k++)
		wide += l->width[k] ? l->width[k] + l->gap : 0;
	for (; c < t->n; c++) {
		if (!l->width[c])
			continue;
		wide += l->width[c];
		if (wide > TABLE_WIDTH && c > from)
			break;
		wide += l->gap;
	}
	return c;
}

int table_write(struct table *t, FILE *to)
{
	struct layout l;
	struct block b = {0};
	int err = t->err;

	lay_out(t, &l);
	while (!err && t->cells.n && b.to < t->n) {
		if (b.to)
			fputc('\n', to);
		b = (struct block){.lead = l.lead, .from = b.to ? b.to : l.lead};
		b.to = block_end(t, &l, b.lead, b.from);
		write_block(t, &l, &b, to);
	}
	for (size_t i = 0; i < t->cells.n; i++)
		free(t->cells.at[i]);
	um_vec_fini(&t->cells);
	*t = (struct table){.columns = t->columns, .n = t->n, .indent = t->indent, .no_titles = t->no_titles};
	return err;
}
