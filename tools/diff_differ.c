/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions in which two runs differ, such as devices and programs. The runs are compared all the same, and each
 * difference is printed first.
 */
#include "diff.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *cell_text(const struct um_sheet *t, size_t row, const char *key, char *room, size_t size)
{
	int c = um_sheet_column(t, key);
	const struct um_sheet_value *v = c < 0 ? NULL : um_sheet_at(t, row, (size_t)c);

	if (!v || v->kind == UM_SHEET_NONE)
		return NULL;
	if (v->kind == UM_SHEET_TEXT)
		return v->text;
	snprintf(room, size, "%.1f MiB", v->number / 1048576);
	return room;
}

/* "sgemm step 17" and "sgemm step 3" count as the same mark. */
static void without_number(char *text)
{
	size_t n = strlen(text);

	while (n && isdigit((unsigned char)text[n - 1]))
		n--;
	if (text[n])
		strcpy(text + n, "*");
}

/* The distinct texts of some columns, in order, joined; empty: unknown. */
static char *listed(const struct um_sheet *t, const char *const *keys, int numbered)
{
	char **all = t ? calloc(t->n_rows + 1, sizeof *all) : NULL, *out = NULL, text[256], room[32];
	struct um_out *o = NULL;
	void *taken = NULL;
	size_t n = 0, bytes;

	for (size_t i = 0; all && i < t->n_rows; i++) {
		size_t at = 0;

		*text = '\0';
		for (int k = 0; keys[k] && at < sizeof text - 1; k++) {
			const char *part = cell_text(t, i, keys[k], room, sizeof room);

			at += part && *part ? (size_t)snprintf(text + at, sizeof text - at, at ? ", %s" : "%s", part)
					    : 0;
		}
		if (numbered)
			without_number(text);
		if (*text && (all[n] = strdup(text)))
			n++;
	}
	if (n)
		qsort(all, n, sizeof *all, by_text);
	if (um_out_open_mem(&o, 0) == 0) {
		for (size_t i = 0; i < n; i++)
			if (!i || strcmp(all[i], all[i - 1]) != 0) {
				um_out_str(o, i ? "; " : "");
				um_out_str(o, all[i]);
			}
		if (um_out_take(o, &taken, &bytes) == 0)
			out = strndup(taken ? taken : "", bytes);
		free(taken);
	}
	for (size_t i = 0; i < n; i++)
		free(all[i]);
	free(all);
	return out;
}

static int differ(struct diff *d, const char *what, char *a, char *b)
{
	struct diff_difference one = {what, {a, b}};
	int err = !a || !b ? -ENOMEM : 0;

	if (!err && *a && *b && strcmp(a, b) != 0 && um_vec_push(&d->differences, one) == 0)
		return 0;
	err = !err && *a && *b && strcmp(a, b) != 0 ? -ENOMEM : err;
	free(a);
	free(b);
	return err;
}

int diff_differences(struct diff *d)
{
	static const struct {
		const char *what, *table, *keys[3];
		int numbered;
	} list[] = {
		{"devices", "devices", {"name", "memory_bytes"}, 0},
		{"drivers", "devices", {"driver"}, 0},
		{"programs", "processes", {"name"}, 0},
		{"source of iterations", "summary", {"iterations_by"}, 0},
		{"iteration marks", "iterations", {"name"}, 1},
		{"strategies", "library", {"strategy"}, 0},
		{"budgets", "library", {"budget_bytes"}, 0},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof list / sizeof *list && !err; i++) {
		char *of[2];

		for (int s = 0; s < 2; s++)
			of[s] = listed(um_sheets_find(&d->sheets[s], list[i].table), list[i].keys, list[i].numbered);
		err = differ(d, list[i].what, of[0], of[1]);
	}
	return err;
}

/* Values that only one of the two has recorded are not compared. */
int diff_unrecorded(struct diff *d, const struct diff_row *row, int m)
{
	static const char *const words[] = {"recorded", "not recorded"};

	if (strcmp(row->table->name, "summary") != 0 || !row->in[0] || !row->in[1] ||
	    row->unknown[0][m] == row->unknown[1][m])
		return 0;
	return differ(d, row->table->measures[m], strdup(words[row->unknown[0][m]]), strdup(words[row->unknown[1][m]]));
}
