/* SPDX-License-Identifier: Apache-2.0 */
#include "diff.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SIGMA 1.4826 /* of a normal distribution, per MAD */
#define MEDIAN_ERROR 1.2533 /* standard error of a median, per sigma and root of n */
#define SURE 2.0 /* standard errors; a smaller difference is noise */
#define ITERATIONS_MIN 3 /* fewest iterations for an estimate of noise */
#define SHARE 0.001 /* share of a column's sum; a smaller change is ignored */

const struct diff_table diff_tables[] = {
	{"summary",
	 {NULL},
	 {"kernel_ns", "gpu_page_faults", "cpu_page_faults", "fault_ns", "um_h2d_bytes", "um_d2h_bytes"}},
	{"findings", {"kind", "tensor", "op"}, {"cost_ns", "bytes", "faults"}},
	{"ops", {"name"}, {"ns", "gpu_page_faults", "fault_ns", "um_h2d_bytes", "um_d2h_bytes", "launches"}},
	{"causes", {"direction", "cause"}, {"bytes", "migrations", "copy_ns"}},
	{"tensors",
	 {"name"},
	 {"fault_ns", "gpu_page_faults", "cpu_page_faults", "um_h2d_bytes", "um_d2h_bytes", "evictions"}},
	{"reasons", {"reason", "tensor"}, {"cost_ns", "bytes", "faults", "events"}},
	{"hints", {"hint", "tensor"}, {"issued", "bytes", "useful", "late", "redundant", "refused"}},
};
const unsigned diff_n_tables = sizeof diff_tables / sizeof *diff_tables;

int diff_is_ns(const char *key)
{
	return strcmp(key, "ns") == 0 || um_text_ends(key, "_ns");
}

int diff_is_bytes(const char *key)
{
	return strcmp(key, "bytes") == 0 || um_text_ends(key, "_bytes");
}

const char *diff_word(const struct diff_row *row)
{
	int time = row->state != DIFF_NEW && row->state != DIFF_GONE && row->changed[0] &&
		   diff_is_ns(row->table->measures[0]);

	switch (row->state) {
	case DIFF_LESS:
		return time ? "faster" : "less";
	case DIFF_MORE:
		return time ? "slower" : "more";
	case DIFF_NEW:
		return "new";
	case DIFF_GONE:
		return "gone";
	default:
		return "same";
	}
}

void diff_fini(struct diff *d)
{
	for (size_t i = 0; i < d->rows.n; i++)
		free(d->rows.at[i].key);
	um_vec_fini(&d->rows);
	for (size_t i = 0; i < d->differences.n; i++) {
		free(d->differences.at[i].of[0]);
		free(d->differences.at[i].of[1]);
	}
	um_vec_fini(&d->differences);
	um_sheets_fini(&d->sheets[0]);
	um_sheets_fini(&d->sheets[1]);
}

/* --- iterations --------------------------------------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, order);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double number_of(const struct um_sheet *t, size_t row, const char *key)
{
	int c = t ? um_sheet_column(t, key) : -1;

	return c >= 0 && row < t->n_rows ? um_sheet_at(t, row, (size_t)c)->number : 0;
}

/* A null means that the value was not recorded. */
static int is_null(const struct um_sheet *t, size_t row, const char *key)
{
	int c = um_sheet_column(t, key);

	return c >= 0 && um_sheet_at(t, row, (size_t)c)->kind == UM_SHEET_NONE;
}

static const char *text_of(const struct um_sheet *t, size_t row, const char *key)
{
	int c = t ? um_sheet_column(t, key) : -1;

	return c >= 0 && row < t->n_rows ? um_sheet_at(t, row, (size_t)c)->text : NULL;
}

/* Iterations that are neither cold nor unfinished; without a list of them, the report's summary. */
static int measure(struct diff *d, int side)
{
	const struct um_sheet *list = um_sheets_find(&d->sheets[side], "iterations");
	const struct um_sheet *summary = um_sheets_find(&d->sheets[side], "summary");
	double *v = malloc(((list ? list->n_rows : 0) + 1) * sizeof *v);
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; list && i < list->n_rows; i++) {
		const char *mark = text_of(list, i, "mark");

		if (!mark || (strcmp(mark, "cold") != 0 && strcmp(mark, "unfinished") != 0))
			v[n++] = number_of(list, i, "ns");
	}
	d->iterations[side] = (double)n;
	if (n) {
		d->ns[side] = median(v, n);
		for (size_t i = 0; i < n; i++)
			v[i] = fabs(v[i] - d->ns[side]);
		d->mad_ns[side] = median(v, n);
	} else {
		d->iterations[side] = number_of(summary, 0, "iterations");
		d->ns[side] = number_of(summary, 0, "iteration_median_ns");
		d->mad_ns[side] = number_of(summary, 0, "iteration_mad_ns");
	}
	free(v);
	return 0;
}

static void judge(struct diff *d)
{
	double error = 0, far;

	d->noise = -1;
	for (int s = 0; s < 2 && !(d->iterations[0] > 0 && d->iterations[1] > 0); s++)
		d->ns[s] = number_of(um_sheets_find(&d->sheets[s], "summary"), 0, "kernel_ns");
	if (!(d->iterations[0] > 0 && d->iterations[1] > 0))
		d->iterations[0] = d->iterations[1] = 0;
	if (!(d->ns[0] > 0 && d->ns[1] > 0)) {
		d->verdict = DIFF_UNKNOWN;
		return;
	}
	d->change = 100 * (d->ns[1] - d->ns[0]) / d->ns[0];
	for (int s = 0; s < 2 && d->iterations[0] >= ITERATIONS_MIN && d->iterations[1] >= ITERATIONS_MIN; s++) {
		double one = MEDIAN_ERROR * SIGMA * d->mad_ns[s];

		error += one * one / d->iterations[s];
		d->noise = 100 * SURE * sqrt(error) / d->ns[0];
	}
	far = d->noise > d->threshold ? d->noise : d->threshold;
	d->verdict = d->change >= far && d->change > 0	  ? DIFF_MORE
		     : d->change <= -far && d->change < 0 ? DIFF_LESS
							  : DIFF_SAME;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static char *key_of(const struct diff_table *t, const struct um_sheet *sheet, size_t row)
{
	char text[512] = "all";
	size_t n = 0;

	for (int k = 0; t->keys[k]; k++) {
		const char *part = text_of(sheet, row, t->keys[k]);

		if (!part)
			continue;
		n += (size_t)snprintf(text + n, sizeof text - n, n ? ", %s" : "%s", part);
		if (n >= sizeof text)
			break;
	}
	return strdup(text);
}

static int by_key(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	return strcmp(x->key, y->key);
}

/* Appends the rows of one side's table, per iteration if `times` is not 0. */
static int add_rows(struct diff *d, const struct diff_table *t, int side, double times)
{
	const struct um_sheet *sheet = um_sheets_find(&d->sheets[side], t->name);

	for (size_t i = 0; sheet && i < sheet->n_rows; i++) {
		struct diff_row row = {.table = t, .key = key_of(t, sheet, i)};

		row.in[side] = 1;
		for (int m = 0; m < DIFF_MEASURES && t->measures[m]; m++) {
			row.value[side][m] = number_of(sheet, i, t->measures[m]) / (times > 0 ? times : 1);
			row.unknown[side][m] = is_null(sheet, i, t->measures[m]);
		}
		if (!row.key || um_vec_push(&d->rows, row)) {
			free(row.key);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Joins rows of equal keys. */
static void join_rows(struct diff *d, size_t from)
{
	size_t to = from;

	if (from == d->rows.n)
		return;
	qsort(d->rows.at + from, d->rows.n - from, sizeof *d->rows.at, by_key);
	for (size_t i = from + 1; i < d->rows.n; i++) {
		struct diff_row *a = &d->rows.at[to], *b = &d->rows.at[i];

		if (strcmp(a->key, b->key) != 0) {
			d->rows.at[++to] = *b;
			continue;
		}
		for (int s = 0; s < 2; s++) {
			a->in[s] |= b->in[s];
			for (int m = 0; m < DIFF_MEASURES; m++) {
				a->value[s][m] += b->value[s][m];
				a->unknown[s][m] |= b->unknown[s][m];
			}
		}
		free(b->key);
	}
	d->rows.n = to + 1;
}

static void judge_row(const struct diff *d, struct diff_row *row, const double *sums)
{
	row->state = DIFF_SAME;
	for (int m = 0; m < DIFF_MEASURES; m++) {
		double a = row->value[0][m], b = row->value[1][m], by = fabs(b - a);

		row->changed[m] = !row->unknown[0][m] && !row->unknown[1][m] && by > d->threshold / 100 * fabs(a) &&
				  by > SHARE * sums[m];
		if (row->changed[m] && row->state == DIFF_SAME)
			row->state = b > a ? DIFF_MORE : DIFF_LESS;
	}
	if (!row->in[0] || !row->in[1])
		row->state = row->in[1] ? DIFF_NEW : DIFF_GONE;
}

static int larger(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	for (int m = 0; m < DIFF_MEASURES; m++) {
		double dx = fabs(x->value[1][m] - x->value[0][m]), dy = fabs(y->value[1][m] - y->value[0][m]);

		if (dx != dy)
			return dx < dy ? 1 : -1;
	}
	return strcmp(x->key, y->key);
}

static int compare_table(struct diff *d, const struct diff_table *t)
{
	size_t from = d->rows.n;
	double sums[DIFF_MEASURES] = {0};
	int err = 0;

	if (!um_sheets_find(&d->sheets[0], t->name) || !um_sheets_find(&d->sheets[1], t->name))
		return 0; /* a table of one side only is no change */
	for (int s = 0; s < 2 && !err; s++)
		err = add_rows(d, t, s, d->per_iteration ? d->recorded[s] : 0);
	if (err)
		return err;
	join_rows(d, from);
	for (size_t i = from; i < d->rows.n; i++)
		for (int m = 0; m < DIFF_MEASURES; m++)
			sums[m] += fmax(d->rows.at[i].value[0][m], d->rows.at[i].value[1][m]);
	for (size_t i = from; i < d->rows.n; i++) {
		judge_row(d, &d->rows.at[i], sums);
		for (int m = 0; m < DIFF_MEASURES && t->measures[m] && !err; m++)
			err = diff_unrecorded(d, &d->rows.at[i], m);
	}
	if (d->rows.n > from)
		qsort(d->rows.at + from, d->rows.n - from, sizeof *d->rows.at, larger);
	return err;
}

/* The kernel whose time changed most, in the direction of the verdict. */
static const struct diff_row *reason(const struct diff *d)
{
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct diff_row *row = &d->rows.at[i];
		double by = row->value[1][0] - row->value[0][0];

		if (strcmp(row->table->name, "ops") == 0 && row->changed[0] &&
		    (d->verdict == DIFF_MORE ? by > 0 : d->verdict == DIFF_LESS && by < 0))
			return row;
	}
	return NULL;
}

int diff_compare(struct diff *d)
{
	int err = measure(d, 0);

	if (!err)
		err = measure(d, 1);
	if (err)
		return err;
	judge(d);
	err = diff_differences(d);
	for (int s = 0; s < 2; s++)
		d->recorded[s] = number_of(um_sheets_find(&d->sheets[s], "summary"), 0, "iterations");
	d->per_iteration = d->recorded[0] > 0 && d->recorded[1] > 0 && d->recorded[0] != d->recorded[1];
	for (unsigned i = 0; i < diff_n_tables && !err; i++)
		err = compare_table(d, &diff_tables[i]);
	d->why = reason(d);
	return err;
}
