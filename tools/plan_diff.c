/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the evictions of two plans by tensor and by the use that ends them.
 */
#include "plan_json.h"

#include "output.h"
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIB(b) ((double)(b) / 1048576.0)

/* The op of the program at a position, which may be that of none. */
static int32_t program_op(const struct plan_view *v, int32_t launch)
{
	if (launch < 0)
		return -1;
	return launch < (int32_t)v->plan.sched.ops.n ? v->op[launch] : v->n_ops;
}

/* Why the two plans are not of one schedule, or NULL. Times may differ. */
static const char *other_schedule(const struct plan_view *x, const struct plan_view *y)
{
	const struct um_schedule *a = &x->plan.sched, *b = &y->plan.sched;
	size_t j = 0;

	if (x->n_ops != y->n_ops)
		return "the same number of ops";
	if (x->n_slots != y->n_slots)
		return "the same number of slots";
	if (a->signature != b->signature)
		return "the same signature";
	for (size_t i = 0; i < x->n_slots; i++)
		if (a->slots.at[i].bytes != b->slots.at[i].bytes ||
		    program_op(x, a->slots.at[i].birth) != program_op(y, b->slots.at[i].birth) ||
		    program_op(x, a->slots.at[i].death) != program_op(y, b->slots.at[i].death))
			return "the same slots";
	for (size_t i = 0; i < a->ops.n; i++) {
		if (a->ops.at[i].again)
			continue;
		while (b->ops.at[j].again)
			j++;
		if (strcmp(a->ops.at[i].name, b->ops.at[j++].name) != 0)
			return "the same ops";
	}
	return NULL;
}

static int by_key(const void *a, const void *b)
{
	const struct plan_eviction *x = a, *y = b;

	if (x->next != y->next)
		return x->next < y->next ? -1 : 1;
	if (x->need != y->need)
		return x->need < y->need ? -1 : 1;
	return 0;
}

static struct plan_eviction *sorted(const struct plan_view *v)
{
	struct plan_eviction *l = malloc((v->evictions.n + 1) * sizeof *l);

	if (!l)
		return NULL;
	if (v->evictions.n)
		memcpy(l, v->evictions.at, v->evictions.n * sizeof *l);
	qsort(l, v->evictions.n, sizeof *l, by_key);
	return l;
}

static const struct table_column head_columns[] = {
	{"plan", 1, 1},	    {"time ms", 0, 1},	{"predicted ms", 0, 1}, {"in MiB", 0, 0},
	{"out MiB", 0, 0},  {"peak MiB", 0, 0}, {"budget MiB", 0, 0},	{"hints", 0, 0},
	{"strategy", 1, 1}, {"profile", 1, 1},	{"file", 1, 1},
};
static const struct table_column row_columns[] = {
	{"tensor", 1, 1}, {"role", 1, 1}, {"A MiB", 0, 1}, {"B MiB", 0, 1}, {"after op", 0, 1}, {"used by op", 0, 1},
};

static int head(const struct plan_view *a, const struct plan_view *b, FILE *to)
{
	struct table t = {.columns = head_columns, .n = sizeof head_columns / sizeof *head_columns};
	const struct plan_view *both[] = {a, b};

	for (int i = 0; i < 2; i++) {
		const struct plan_view *v = both[i];

		table_cell(&t, "%c", "AB"[i]);
		table_cell(&t, "%.3f", (double)v->figures.ns / 1e6);
		table_cell(&t, "%.3f", (double)um_plan_expected_ns(&v->plan) / 1e6);
		table_cell(&t, "%.1f", MIB(v->figures.h2d_bytes));
		table_cell(&t, "%.1f", MIB(v->figures.d2h_bytes));
		table_cell(&t, "%.1f", MIB(v->figures.peak_bytes));
		table_cell(&t, "%.1f", MIB(v->plan.budget));
		table_cell(&t, "%zu", v->n_hints);
		table_cell(&t, "%s", tool_text(v->plan.strategy ? v->plan.strategy : "?"));
		table_cell(&t, "%s", tool_text(v->plan.profile ? v->plan.profile : "?"));
		table_cell(&t, "%s", tool_text(v->path));
	}
	return table_write(&t, to);
}

static void row(struct plan_differ *d, const struct plan_view *v, const struct plan_eviction *x,
		const struct plan_eviction *y)
{
	const struct plan_eviction *l = x ? x : y;
	int32_t after = l->after < -1 ? l->after + v->n_ops : l->after;
	char room[PLAN_SLOT_NAME];

	table_cell(d->table, "%s", tool_text(plan_slot_name(v, l->slot, room, sizeof room)));
	table_cell(d->table, "%s", um_role_name(v->plan.sched.slots.at[l->slot].role));
	table_cell(d->table, "%.1f", MIB(x ? x->bytes : 0));
	table_cell(d->table, "%.1f", MIB(y ? y->bytes : 0));
	table_cell(d->table, "%d", after);
	if (l->need == PLAN_NEVER_USED)
		table_cell(d->table, "-");
	else
		table_cell(d->table, "%s%d", l->after < -1 ? "+" : "", l->need);
}

/* Calls `each` for evictions that differ, and counts all. */
static void compare(const struct plan_view *a, const struct plan_view *b, const struct plan_eviction *x,
		    const struct plan_eviction *y, struct plan_differ *d)
{
	size_t i = 0, j = 0;

	while (i < a->evictions.n || j < b->evictions.n) {
		int c = i == a->evictions.n ? 1 : j == b->evictions.n ? -1 : by_key(&x[i], &y[j]);

		if (c || x[i].bytes != y[j].bytes)
			d->row(d, c > 0 ? b : a, c > 0 ? NULL : &x[i], c < 0 ? NULL : &y[j]);
		d->only_a += c < 0;
		d->only_b += c > 0;
		d->both += !c && x[i].bytes != y[j].bytes;
		d->same += !c && x[i].bytes == y[j].bytes;
		i += c <= 0;
		j += c >= 0;
	}
}

static int show_text(const struct plan_view *a, const struct plan_view *b, const struct plan_eviction *x,
		     const struct plan_eviction *y, FILE *to)
{
	struct table t = {.columns = row_columns, .n = sizeof row_columns / sizeof *row_columns};
	struct plan_differ d = {.row = row, .table = &t};
	int err = head(a, b, to);

	compare(a, b, x, y, &d);
	if (t.cells.n)
		fputs("\nEvictions that differ (+: used in the next iteration):\n", to);
	err = table_write(&t, to) ? -ENOMEM : err;
	fprintf(to, "%s%zu evicted in A only, %zu in B only, %zu in both with different bytes, %zu equal\n",
		d.only_a || d.only_b || d.both ? "" : "\n", d.only_a, d.only_b, d.both, d.same);
	return err;
}

static int show_json(const struct plan_view *a, const struct plan_view *b, const struct plan_eviction *x,
		     const struct plan_eviction *y, FILE *to)
{
	struct plan_differ d = {.row = plan_json_differ, .list = json_array()};
	json_t *doc;
	int err;

	compare(a, b, x, y, &d);
	doc = json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:o}", "schema", "umplan-diff/1", "a",
			plan_json_figures(a), "b", plan_json_figures(b), "only_a", (json_int_t)d.only_a, "only_b",
			(json_int_t)d.only_b, "both", (json_int_t)d.both, "alike", (json_int_t)d.same, "differences",
			d.list);
	err = d.err || tool_json(to, doc, 0);
	json_decref(doc);
	return err;
}

int plan_diff(const struct plan_view *a, const struct plan_view *b, int json, FILE *to)
{
	const char *why = other_schedule(a, b);
	struct plan_eviction *x, *y;
	int err = 1;

	if (why) {
		tool_say("plan",
			 "%s and %s are of different schedules: expected %s (%d ops, %zu slots, signature %016" PRIx64
			 "; %d ops, %zu slots, signature %016" PRIx64 ")",
			 a->path, b->path, why, a->n_ops, a->n_slots, a->plan.sched.signature, b->n_ops, b->n_slots,
			 b->plan.sched.signature);
		return TOOL_FAILED;
	}
	x = sorted(a);
	y = sorted(b);
	if (x && y)
		err = (json ? show_json : show_text)(a, b, x, y, to);
	free(x);
	free(y);
	return err ? TOOL_INTERNAL : TOOL_DONE;
}
