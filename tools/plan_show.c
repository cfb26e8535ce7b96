/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"
#include "plan_view.h"
#include "table.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define MIB(b) ((double)(b) / 1048576.0)
#define MOST_COSTLY 10

/* Prints advice that is given once, before the first planned iteration. */
static void show_advice(FILE *to, const struct um_plan *p)
{
	uint64_t mostly = 0, far = 0;

	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		if (h->kind != UM_HINT_ADVISE)
			continue;
		mostly += h->advice == UM_ADVICE_READ_MOSTLY ? h->bytes : 0;
		far += h->advice == UM_ADVICE_ACCESSED_BY && p->remote ? h->bytes : 0;
	}
	if (mostly)
		table_wrapf(to, 0, 11, "advice     %.1f MiB are read-mostly and evicted without a copy", MIB(mostly));
	if (far)
		table_wrapf(to, 0, 11, "advice     %.1f MiB stay on the host and are read over the link at %.2f GB/s",
			    MIB(far), (double)p->remote / 1e9);
}

/* Ops that use more than the budget. */
static void show_paged(const struct plan_view *v, FILE *to)
{
	const struct um_plan *p = &v->plan;
	char op[PLAN_OP_NAME];
	size_t n = 0, first = 0;

	for (size_t i = p->sched.ops.n; i-- > 0;)
		if (p->sched.ops.at[i].paged) {
			first = i;
			n++;
		}
	if (n == 1)
		table_wrapf(to, 0, 11, "paged      op %s uses more than the budget: the driver pages it",
			    tool_text(plan_op_name(v, first, op, sizeof op)));
	else if (n)
		table_wrapf(to, 0, 11,
			    "paged      %zu ops use more than the budget, first op %s: the driver pages them", n,
			    tool_text(plan_op_name(v, first, op, sizeof op)));
}

static void show_again(const struct plan_view *v, FILE *to)
{
	uint64_t core = um_plan_core_ns(&v->figures);

	if (v->relaunches)
		table_wrapf(
			to, 0, 11,
			"again      %zu ops are launched again, %.3f ms (%.1f %% of in core), for %.1f MiB that are "
			"dropped",
			v->relaunches, (double)v->figures.again_ns / 1e6,
			core ? 100.0 * (double)v->figures.again_ns / (double)core : 0, MIB(plan_dropped_bytes(v)));
}

static void show_workspaces(const struct plan_view *v, FILE *to)
{
	const struct um_schedule *s = &v->plan.sched;
	uint64_t most = 0;
	size_t n = 0, with = 0;

	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];
		uint64_t bytes = op->n_ws ? s->ws.at[op->first_ws + op->choice].bytes : 0;

		n += op->n_ws != 0;
		with += bytes != 0;
		most = bytes > most ? bytes : most;
	}
	if (n)
		table_wrapf(
			to, 0, 11,
			"workspaces %zu ops choose an algorithm: %zu with a workspace, %.1f MiB at most; %.3f ms more "
			"than with the fastest",
			n, with, MIB(most), (double)v->figures.slower_ns / 1e6);
}

static void show_header(const struct plan_view *v, FILE *to)
{
	const struct um_plan *p = &v->plan;
	const struct um_plan_figures *f = &v->figures;
	uint64_t core = um_plan_core_ns(f);
	char op[PLAN_OP_NAME];

	fputs(paint(PAINT_HEADING), to);
	table_wrapf(to, 0, 11, "%s: %s on %s, by %s%s", tool_text(v->path), tool_text(p->workload ? p->workload : "?"),
		    tool_text(p->profile ? p->profile : "?"), tool_text(p->strategy ? p->strategy : "?"),
		    paint(PAINT_OFF));
	table_wrapf(to, 0, 11, "schedule   %d ops, %zu slots, %zu hints, signature %016llx", v->n_ops, v->n_slots,
		    v->n_hints, (unsigned long long)p->sched.signature);
	table_wrapf(to, 0, 11,
		    "memory     %.1f MiB budget, %.1f MiB resident at most, %.1f MiB alive at most (%.2fx) at op %s",
		    MIB(p->budget), MIB(f->peak_bytes), MIB(v->alive[v->fullest]),
		    p->budget ? (double)v->alive[v->fullest] / (double)p->budget : 0,
		    tool_text(plan_op_name(v, v->fullest, op, sizeof op)));
	if (p->host_budget)
		fprintf(to, "host       %.1f MiB of host memory for evicted blocks, %.1f MiB allowed\n",
			MIB(f->host_bytes), MIB(p->host_budget));
	table_wrapf(to, 0, 11, "link       %.2f GB/s in, %.2f GB/s out; copied %.1f MiB in, %.1f MiB out",
		    (double)p->h2d / 1e9, (double)p->d2h / 1e9, MIB(f->h2d_bytes), MIB(f->d2h_bytes));
	show_advice(to, p);
	show_paged(v, to);
	show_again(v, to);
	show_workspaces(v, to);
	table_wrapf(to, 0, 11,
		    "time       %.3f ms for ops and copies, %.3f ms predicted%s; in core %.3f ms (x %.3f), stalls "
		    "%.3f ms",
		    (double)f->ns / 1e6, (double)um_plan_expected_ns(p) / 1e6,
		    p->rehearsed_ns ? " with the driver's work" : "", (double)core / 1e6,
		    core ? (double)f->ns / (double)core : 0, (double)f->stall_ns / 1e6);
	if (p->bound_ns)
		fprintf(to, "bound      %.3f ms (x %.3f)\n", (double)p->bound_ns / 1e6,
			(double)f->ns / (double)p->bound_ns);
}

struct cost {
	double ns;
	uint32_t slot;
};

static int by_cost(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static const struct table_column costly_columns[] = {{"tensor", 1, 1}, {"role", 1, 1},	  {"link ms", 0, 1},
						     {"in MiB", 0, 1}, {"out MiB", 0, 1}, {"size MiB", 0, 1}};

static int show_costly(const struct plan_view *v, FILE *to)
{
	const struct um_plan *p = &v->plan;
	size_t n = p->sched.slots.n;
	struct cost *c = malloc((n + 1) * sizeof *c);
	struct table t = {.columns = costly_columns, .n = 6};
	char room[PLAN_SLOT_NAME];

	if (!c)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		c[i] = (struct cost){plan_copy_ns(v->in[i], p->h2d) + plan_copy_ns(v->out[i], p->d2h), i};
	qsort(c, n, sizeof *c, by_cost);
	if (n && c[0].ns > 0)
		fprintf(to, "\nTensors that take most of the link's time:\n");
	for (size_t i = 0; i < n && i < MOST_COSTLY && c[i].ns > 0; i++) {
		table_cell(&t, "%s", tool_text(plan_slot_name(v, c[i].slot, room, sizeof room)));
		table_cell(&t, "%s", um_role_name(p->sched.slots.at[c[i].slot].role));
		table_cell(&t, "%.3f", c[i].ns / 1e6);
		table_cell(&t, "%.1f", MIB(v->in[c[i].slot]));
		table_cell(&t, "%.1f", MIB(v->out[c[i].slot]));
		table_cell(&t, "%.1f", MIB(p->sched.slots.at[c[i].slot].bytes));
	}
	free(c);
	return table_write(&t, to);
}

/* An op, counted from the iteration in which an eviction begins: "12", or "+3" in the next one. */
static const char *position(int32_t op, int wraps, int32_t n, char *room, size_t size)
{
	int32_t at = op + (wraps ? n : 0);

	if (at >= n)
		snprintf(room, size, "+%d", at - n);
	else
		snprintf(room, size, "%d", at);
	return room;
}

static const struct table_column eviction_columns[] = {
	{"tensor", 1, 1},    {"role", 1, 1},	 {"evicted MiB", 0, 1}, {"out MiB", 0, 0},
	{"in MiB", 0, 0},    {"after op", 0, 1}, {"before op", 0, 0},	{"used by op", 0, 0},
	{"discarded", 1, 0}, {"ops over", 0, 0}, {"over MiB", 0, 0},	{"at op", 1, 0},
};

static void show_eviction(const struct plan_view *v, const struct plan_eviction *l, struct table *t)
{
	int32_t n = v->n_ops;
	int wraps = l->after < -1;
	char after[16], back[16] = "-", need[16] = "-", room[PLAN_SLOT_NAME], op[PLAN_OP_NAME];

	position(l->after, wraps, n, after, sizeof after);
	if (l->back != INT32_MAX)
		position(l->back, wraps, n, back, sizeof back);
	if (l->need != PLAN_NEVER_USED)
		position(l->need, wraps, n, need, sizeof need);
	table_cell(t, "%s", tool_text(plan_slot_name(v, l->slot, room, sizeof room)));
	table_cell(t, "%s", um_role_name(v->plan.sched.slots.at[l->slot].role));
	table_cell(t, "%.1f", MIB(l->bytes));
	table_cell(t, "%.1f", MIB(l->copied_out));
	table_cell(t, "%.1f", MIB(l->copied_in));
	table_cell(t, "%s", after);
	table_cell(t, "%s", back);
	table_cell(t, "%s", need);
	table_cell(t, "%s", l->again ? "again" : l->dropped == l->bytes ? "all" : l->dropped ? "part" : "-");
	table_cell(t, "%u", l->over);
	if (l->over) {
		table_cell(t, "%.1f", MIB(v->alive[l->worst] - v->plan.budget));
		table_cell(t, "%s", tool_text(plan_op_name(v, (size_t)l->worst, op, sizeof op)));
	}
	table_end_row(t);
}

static const struct table_column again_columns[] = {{"op", 1, 1}, {"times", 0, 1}, {"ms", 0, 1}, {"each us", 0, 1}};

struct relaunched {
	const char *name;
	uint64_t ns;
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct relaunched *)a)->name, ((const struct relaunched *)b)->name);
}

static int by_ns(const void *a, const void *b)
{
	const struct relaunched *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : by_name(a, b);
}

/* Relaunches by the name of the op. */
static int show_relaunches(const struct plan_view *v, FILE *to)
{
	const struct um_schedule *s = &v->plan.sched;
	struct table t = {.columns = again_columns, .n = sizeof again_columns / sizeof *again_columns};
	struct relaunched *r = malloc((v->relaunches + 1) * sizeof *r);
	size_t n = 0, names = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < s->ops.n; i++)
		if (s->ops.at[i].again)
			r[n++] = (struct relaunched){s->ops.at[i].name, s->ops.at[i].ns, 1};
	qsort(r, n, sizeof *r, by_name);
	for (size_t i = 0; i < n; i++) {
		if (names && strcmp(r[names - 1].name, r[i].name) == 0) {
			r[names - 1].ns += r[i].ns;
			r[names - 1].n++;
		} else {
			r[names++] = r[i];
		}
	}
	qsort(r, names, sizeof *r, by_ns);
	if (names)
		fprintf(to, "\nOps that are launched again:\n");
	for (size_t i = 0; i < names && i < MOST_COSTLY; i++) {
		table_cell(&t, "%s", tool_text(r[i].name));
		table_cell(&t, "%zu", r[i].n);
		table_cell(&t, "%.3f", (double)r[i].ns / 1e6);
		table_cell(&t, "%.1f", (double)r[i].ns / 1e3 / (double)r[i].n);
	}
	free(r);
	return table_write(&t, to);
}

int plan_show(const struct plan_view *v, FILE *to)
{
	struct table t = {.columns = eviction_columns, .n = sizeof eviction_columns / sizeof *eviction_columns};

	show_header(v, to);
	if (show_relaunches(v, to) || show_costly(v, to))
		return -ENOMEM;
	if (v->evictions.n) {
		fputc('\n', to);
		table_wrapf(to, 0, 0,
			    "Evictions: the op after which the tensor is evicted, the op before which it is "
			    "prefetched and the op that uses it next (+: of the next iteration). %sOps over: number of "
			    "ops in between that have more alive than the budget, the largest excess, and its op.",
			    v->relaunches ? "Discarded again: made again before that op. " : "");
	}
	for (size_t i = 0; i < v->evictions.n; i++)
		show_eviction(v, &v->evictions.at[i], &t);
	return table_write(&t, to);
}
