/* SPDX-License-Identifier: Apache-2.0 */
#include "diff.h"
#include "paint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS 20 /* of a table in a text */

static const char *const states[] = {"same", "faster", "slower", "", "", "unknown"};

/* A value with its unit. */
static void value_text(const char *key, double v, char *to, size_t size)
{
	if (diff_is_ns(key))
		snprintf(to, size, "%.3f ms", v / 1e6);
	else if (diff_is_bytes(key))
		snprintf(to, size, "%.1f MiB", v / 1048576);
	else
		snprintf(to, size, v == floor(v) ? "%.0f" : "%.1f", v);
}

/* "faults 0 -> 18220" */
static void change_text(const struct diff_row *row, int m, char *to, size_t size)
{
	char a[64], b[64];

	value_text(row->table->measures[m], row->value[0][m], a, sizeof a);
	value_text(row->table->measures[m], row->value[1][m], b, sizeof b);
	snprintf(to, size, "%s %s -> %s", row->table->measures[m], a, b);
}

static void verdict(const struct diff *d, char *to, size_t size)
{
	const char *what = d->iterations[0] > 0 ? "median" : "kernels together";
	char noise[48] = "noise not known", why[900] = "", change[160];
	size_t n = 0;
	int m = 0;

	if (d->verdict == DIFF_UNKNOWN) {
		snprintf(to, size, "no verdict: the runs share neither iterations nor kernels");
		return;
	}
	if (d->noise >= 0)
		snprintf(noise, sizeof noise, "noise %.1f %%", d->noise);
	if (d->why) {
		/* Prefers a row of faults, which explains the time, to the time itself. */
		for (int i = 1; i < DIFF_MEASURES && d->why->table->measures[i] && !m; i++)
			if (d->why->changed[i] && (d->why->value[1][i] > d->why->value[0][i]) == (d->change > 0))
				m = i;
		change_text(d->why, m, change, sizeof change);
		snprintf(why, sizeof why, ": %s: %s", d->why->key, change);
	}
	if (d->verdict == DIFF_SAME)
		n = (size_t)snprintf(to, size, "B is as fast as A");
	else
		n = (size_t)snprintf(to, size, "B is %.1f %% %s", fabs(d->change), states[d->verdict]);
	if (n < size)
		snprintf(to + n, size - n, " (%s %.3f -> %.3f ms, %s)%s", what, d->ns[0] / 1e6, d->ns[1] / 1e6, noise,
			 why);
}

static void text_row(struct um_out *out, const struct diff_row *row)
{
	char line[200], change[160];
	int shown_changes = 0;

	snprintf(line, sizeof line, "  %-6s  ", diff_word(row));
	um_out_str(out, line);
	um_out_visible(out, row->key);
	for (int m = 0; m < DIFF_MEASURES && row->table->measures[m]; m++) {
		double a = row->value[0][m], b = row->value[1][m];

		if (!row->changed[m])
			continue;
		change_text(row, m, change, sizeof change);
		snprintf(line, sizeof line, "%s %s", shown_changes++ ? "," : ":", change);
		um_out_str(out, line);
		snprintf(line, sizeof line, " (%+.1f %%)", a != 0 ? 100 * (b - a) / a : 0);
		um_out_str(out, a != 0 ? line : "");
	}
	um_out_str(out, "\n");
}

void diff_text(struct um_out *out, const struct diff *d)
{
	const struct diff_table *table = NULL;
	size_t shown = 0, hidden = 0;
	char line[1200];

	for (size_t i = 0; i < d->differences.n; i++) {
		const struct diff_difference *one = &d->differences.at[i];

		snprintf(line, sizeof line, "note: %s differ: A: %.400s, B: %.400s", one->what, one->of[0], one->of[1]);
		um_out_visible(out, line);
		um_out_str(out, "\n");
	}
	verdict(d, line, sizeof line);
	um_out_str(out, paint(d->verdict == DIFF_MORE ? PAINT_HIGH : d->verdict == DIFF_LESS ? PAINT_GOOD : PAINT_OFF));
	um_out_visible(out, line);
	um_out_str(out, paint(PAINT_OFF));
	for (int s = 0; s < 2; s++) {
		um_out_str(out, s ? "\nB: " : "\nA: ");
		um_out_visible(out, d->file[s]);
		snprintf(line, sizeof line, ", %.0f iterations", d->recorded[s]);
		um_out_str(out, line);
	}
	um_out_str(out, d->per_iteration ? "\nnote: the numbers of iterations differ: sums are per iteration\n" : "\n");
	for (size_t i = 0; i <= d->rows.n; i++) {
		const struct diff_row *row = i < d->rows.n ? &d->rows.at[i] : NULL;

		if (hidden && (!row || row->table != table)) {
			snprintf(line, sizeof line, "  and %zu more: see --format json\n", hidden);
			um_out_str(out, line);
			hidden = 0;
		}
		if (!row || row->state == DIFF_SAME)
			continue;
		if (row->table != table) {
			snprintf(line, sizeof line, "\n%s:\n", row->table->name);
			um_out_str(out, line);
			table = row->table;
			shown = 0;
		}
		if (shown++ < ROWS)
			text_row(out, row);
		else
			hidden++;
	}
}

/* --- csv ---------------------------------------------------------------------------------------------------------- */

static void csv_values(struct um_out *out, double a, double b)
{
	um_out_double(out, a);
	um_out_str(out, ",");
	um_out_double(out, b);
	um_out_str(out, ",");
	if (a != 0)
		um_out_double(out, 100 * (b - a) / a);
	um_out_str(out, "\r\n");
}

void diff_csv(struct um_out *out, const struct diff *d)
{
	um_out_str(out, "table,row,state,column,a,b,change_percent\r\n");
	um_out_str(out, d->iterations[0] > 0 ? "iterations,median," : "kernels,all,");
	um_out_str(out, states[d->verdict]);
	um_out_str(out, ",ns,");
	csv_values(out, d->ns[0], d->ns[1]);
	for (size_t i = 0; i < d->differences.n; i++) {
		um_out_str(out, "differences,");
		um_out_csv(out, d->differences.at[i].what, 1);
		um_out_str(out, ",differ,,");
		um_out_csv(out, d->differences.at[i].of[0], 1);
		um_out_str(out, ",");
		um_out_csv(out, d->differences.at[i].of[1], 1);
		um_out_str(out, ",\r\n");
	}
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct diff_row *row = &d->rows.at[i];

		for (int m = 0; m < DIFF_MEASURES && row->table->measures[m]; m++) {
			if (!row->changed[m])
				continue;
			um_out_str(out, row->table->name);
			um_out_str(out, ",");
			um_out_csv(out, row->key, 1);
			um_out_str(out, ",");
			um_out_str(out, diff_word(row));
			um_out_str(out, ",");
			um_out_str(out, row->table->measures[m]);
			um_out_str(out, ",");
			csv_values(out, row->value[0][m], row->value[1][m]);
		}
	}
}

/* --- json --------------------------------------------------------------------------------------------------------- */

static void key(struct um_out *out, const char *name)
{
	um_out_json_str(out, name);
	um_out_str(out, ": ");
}

static void number(struct um_out *out, const char *name, double v, int there)
{
	um_out_str(out, ", ");
	key(out, name);
	if (there)
		um_out_double(out, v);
	else
		um_out_str(out, "null");
}

static void json_verdict(struct um_out *out, const struct diff *d)
{
	int known = d->verdict != DIFF_UNKNOWN;
	char text[1200];

	verdict(d, text, sizeof text);
	um_out_str(out, " \"verdict\": {\"state\": ");
	um_out_json_str(out, states[d->verdict]);
	um_out_str(out, ", \"text\": ");
	um_out_json_str(out, text);
	um_out_str(out, ", \"measured\": ");
	um_out_str(out, !known ? "null" : d->iterations[0] > 0 ? "\"iterations\"" : "\"kernels\"");
	number(out, "a_iterations", d->iterations[0], 1);
	number(out, "b_iterations", d->iterations[1], 1);
	number(out, "a_ns", d->ns[0], known);
	number(out, "b_ns", d->ns[1], known);
	number(out, "change_percent", d->change, known);
	number(out, "noise_percent", d->noise, d->noise >= 0);
	um_out_str(out, "}");
}

static void json_row(struct um_out *out, const struct diff_row *row)
{
	um_out_str(out, "{\"table\": ");
	um_out_json_str(out, row->table->name);
	um_out_str(out, ", \"row\": ");
	um_out_json_str(out, row->key);
	um_out_str(out, ", \"state\": ");
	um_out_json_str(out, diff_word(row));
	for (int m = 0; m < DIFF_MEASURES && row->table->measures[m]; m++) {
		um_out_str(out, ", ");
		key(out, row->table->measures[m]);
		for (int s = 0; s < 2; s++) {
			um_out_str(out, s ? ", " : "[");
			if (row->unknown[s][m])
				um_out_str(out, "null");
			else
				um_out_double(out, row->value[s][m]);
		}
		um_out_str(out, "]");
	}
	um_out_str(out, "}");
}

static void json_differences(struct um_out *out, const struct diff *d)
{
	um_out_str(out, " \"differences\": [");
	for (size_t i = 0; i < d->differences.n; i++) {
		const struct diff_difference *one = &d->differences.at[i];

		um_out_str(out, i ? ",\n  {\"what\": " : "\n  {\"what\": ");
		um_out_json_str(out, one->what);
		um_out_str(out, ", \"a\": ");
		um_out_json_str(out, one->of[0]);
		um_out_str(out, ", \"b\": ");
		um_out_json_str(out, one->of[1]);
		um_out_str(out, "}");
	}
	um_out_str(out, "],\n");
}

void diff_json(struct um_out *out, const struct diff *d)
{
	int rows = 0;

	um_out_str(out, "{\"schema\": \"umdiff/1\",\n \"a\": ");
	um_out_json_str(out, d->file[0]);
	um_out_str(out, ",\n \"b\": ");
	um_out_json_str(out, d->file[1]);
	um_out_str(out, ",\n \"threshold_percent\": ");
	um_out_double(out, d->threshold);
	um_out_str(out, d->per_iteration ? ",\n \"per_iteration\": true,\n" : ",\n \"per_iteration\": false,\n");
	json_differences(out, d);
	json_verdict(out, d);
	um_out_str(out, ",\n \"changes\": [");
	for (size_t i = 0; i < d->rows.n; i++)
		if (d->rows.at[i].state != DIFF_SAME) {
			um_out_str(out, rows++ ? ",\n  " : "\n  ");
			json_row(out, &d->rows.at[i]);
		}
	um_out_str(out, "]}\n");
}
