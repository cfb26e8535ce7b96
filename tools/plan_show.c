/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"
#include "plan_view.h"
#include "tool.h"

#include <stdlib.h>

#define MIB(b) ((double)(b) / 1048576.0)
#define MOST_COSTLY 10

/* What is told once, when the plan is taken up. */
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
		fprintf(to, "advice     %.1f MiB are read mostly: what leaves of them is not copied\n", MIB(mostly));
	if (far)
		fprintf(to, "advice     %.1f MiB stay on the host and are reached over the link, %.2f GB/s\n", MIB(far),
			(double)p->remote / 1e9);
}

static void show_header(const struct plan_view *v, FILE *to)
{
	const struct um_plan *p = &v->plan;
	const struct um_plan_figures *f = &v->figures;
	uint64_t core = f->ns - f->stall_ns;

	fprintf(to, "%s%s: %s on %s, by %s%s\n", paint(PAINT_HEADING), tool_text(v->path),
		tool_text(p->workload ? p->workload : "?"), tool_text(p->profile ? p->profile : "?"),
		tool_text(p->strategy ? p->strategy : "?"), paint(PAINT_OFF));
	fprintf(to, "schedule   %zu ops, %zu slots, %zu hints, signature %016llx\n", p->sched.ops.n, p->sched.slots.n,
		p->hints.n, (unsigned long long)p->sched.signature);
	fprintf(to,
		"memory     %.1f MiB budget, %.1f MiB resident at most, %.1f MiB alive at most (%.2fx) at op %zu "
		"'%s'\n",
		MIB(p->budget), MIB(f->peak_bytes), MIB(v->alive[v->fullest]),
		p->budget ? (double)v->alive[v->fullest] / (double)p->budget : 0, v->fullest,
		tool_text(p->sched.ops.at[v->fullest].name));
	fprintf(to, "link       %.2f GB/s in, %.2f GB/s out; copied %.1f MiB in, %.1f MiB out\n", (double)p->h2d / 1e9,
		(double)p->d2h / 1e9, MIB(f->h2d_bytes), MIB(f->d2h_bytes));
	show_advice(to, p);
	fprintf(to, "time       %.3f ms carried out, %.3f ms predicted; in core %.3f ms (x %.3f), stalls %.3f ms\n",
		(double)f->ns / 1e6, (double)p->predicted_ns / 1e6, (double)core / 1e6,
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

static int show_costly(const struct plan_view *v, FILE *to)
{
	const struct um_plan *p = &v->plan;
	size_t n = p->sched.slots.n;
	struct cost *c = malloc((n + 1) * sizeof *c);
	char room[PLAN_SLOT_NAME];

	if (!c)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		c[i] = (struct cost){plan_copy_ns(v->in[i], p->h2d) + plan_copy_ns(v->out[i], p->d2h), i};
	qsort(c, n, sizeof *c, by_cost);
	if (n && c[0].ns > 0)
		fprintf(to, "\nmost of the link's time takes\n%12s %10s %10s %10s  %-9s %s\n", "link ms", "in MiB",
			"out MiB", "size MiB", "role", "tensor");
	for (size_t i = 0; i < n && i < MOST_COSTLY && c[i].ns > 0; i++)
		fprintf(to, "%12.3f %10.1f %10.1f %10.1f  %-9s %s\n", c[i].ns / 1e6, MIB(v->in[c[i].slot]),
			MIB(v->out[c[i].slot]), MIB(p->sched.slots.at[c[i].slot].bytes),
			um_role_name(p->sched.slots.at[c[i].slot].role),
			tool_text(plan_slot_name(v, c[i].slot, room, sizeof room)));
	free(c);
	return 0;
}

/* An op, counted from the iteration in which a departure begins: "12", "+3" for the next one's. */
static const char *position(int32_t op, int wraps, int32_t n, char *room, size_t size)
{
	int32_t at = op + (wraps ? n : 0);

	if (at >= n)
		snprintf(room, size, "+%d", at - n);
	else
		snprintf(room, size, "%d", at);
	return room;
}

static void show_leave(const struct plan_view *v, const struct plan_leave *l, FILE *to)
{
	int32_t n = (int32_t)v->plan.sched.ops.n;
	int wraps = l->after < -1;
	char after[16], back[16] = "-", need[16] = "-", room[PLAN_SLOT_NAME], why[200] = "nothing runs between";
	const char *how = l->dropped == l->bytes ? ", dropped" : l->dropped ? ", partly dropped" : "";

	position(l->after, wraps, n, after, sizeof after);
	if (l->back != INT32_MAX)
		position(l->back, wraps, n, back, sizeof back);
	if (l->need != PLAN_LEAVE_NEVER)
		position(l->need, wraps, n, need, sizeof need);
	if (l->over)
		snprintf(why, sizeof why, "%u ops over, by %.1f MiB at op %d '%s'", l->over,
			 MIB(v->alive[l->worst] - v->plan.budget), l->worst,
			 tool_text(v->plan.sched.ops.at[l->worst].name));
	else if (l->worst >= 0)
		snprintf(why, sizeof why, "none is over: %.1f MiB at most", MIB(v->alive[l->worst]));
	fprintf(to, "%10.1f %10.1f %10.1f %7s %7s %7s  %s (%s%s): %s\n", MIB(l->bytes), MIB(l->copied_out),
		MIB(l->copied_in), after, back, need, tool_text(plan_slot_name(v, l->slot, room, sizeof room)),
		um_role_name(v->plan.sched.slots.at[l->slot].role), how, why);
}

int plan_show(const struct plan_view *v, FILE *to)
{
	show_header(v, to);
	if (show_costly(v, to))
		return -ENOMEM;
	if (v->leaves.n)
		fprintf(to,
			"\nwhat leaves, behind which op; before which one it is asked for again; which one uses it "
			"(+: of the next iteration);\n"
			"and why: the ops between that have more alive than the budget\n"
			"%10s %10s %10s %7s %7s %7s  %s\n",
			"leaves MiB", "out MiB", "in MiB", "behind", "asked", "used", "tensor (role): why");
	for (size_t i = 0; i < v->leaves.n; i++)
		show_leave(v, &v->leaves.at[i], to);
	return 0;
}
