/* SPDX-License-Identifier: Apache-2.0
 *
 * slower.c - plays the workload with each budget that is tried
 *
 * So the plan, or the time, is that of `umadvise plan` or `umadvise simulate` with this budget. The bound is that of
 * the linear program; without a solver it is the planner's, and more budgets are tried.
 */
#include "slower.h"

#include "bound/bound.h"
#include "least_budget.h"
#include "output.h"
#include "paint.h"
#include "table.h"
#include "tool.h"
#include "umadvise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/workspace.h"
#include "plan/blocks.h"
#include "plan/bound.h"
#include "play/plan_again.h"
#include "play/play_again.h"

struct row {
	const struct play_args *args;
	int played;
	struct um_trace *trace;
	const char *path, *name;
	enum um_play_strategy strategy;
	struct um_plan learned; /* with enough memory: schedule and rates of the bound */
	struct play_progress progress;
	char label[80]; /* of the progress line */
	uint64_t alive, in_core_ns, limit_ns;
	uint64_t ns; /* with the last budget that was enough */
	struct least_budget search;
};

/* --- the bound ---------------------------------------------------------------------------------------------------- */

/* Does an op of the device use more than the budget, in whole blocks? Then the driver pages it, which takes long. */
static int is_paged(const struct um_blocks *b, uint64_t budget)
{
	for (int32_t i = 0; i < b->n_ops; i++) {
		uint64_t n = 0;

		for (uint32_t v = b->first_of_op[i]; v < b->first_of_op[i + 1]; v++)
			n += !b->visit[b->of_op[v]].on_cpu;
		if (n * UM_BLOCK_BYTES > budget)
			return 1;
	}
	return 0;
}

static int may_be_enough(void *user, uint64_t budget)
{
	struct row *r = user;
	struct um_plan *p = &r->learned;
	struct um_bound_link link = {budget, p->h2d, p->d2h};
	int again = r->args->recompute && um_plan_again_can(&p->sched);
	struct bound_settings settings = {NULL, r->played ? r->args->profile.duplex : 1, r->args->bound_time, again,
					  r->args->bound_copies};
	struct um_blocks blocks = {0};
	int err = um_blocks_build(&blocks, &p->sched, NULL), paged = !err && is_paged(&blocks, budget);

	p->budget = budget;
	p->bound_ns = p->in_core_ns;
	/* no bound covers accesses of the CPU */
	if (!err && !paged && !um_schedule_uses_cpu(&p->sched)) {
		err = again ? 0 : um_bound_build(&blocks, &p->sched, &link, &p->bound_ns);
		if (!err && p->bound_ns <= r->limit_ns && bound_is_available())
			err = bound_plan(p, &settings);
	}
	um_blocks_fini(&blocks);
	return err ? err : !paged && p->bound_ns <= r->limit_ns;
}

/* --- with a budget ------------------------------------------------------------------------------------------------ */

static struct um_play_options options_of(const struct row *r, uint64_t budget)
{
	return (struct um_play_options){.profile = &r->args->profile,
					.budget = budget,
					.strategy = r->strategy,
					.iterations = r->args->iterations,
					.plan_ms = (unsigned)r->args->plan_ms,
					.evict = r->args->evict,
					.recompute = r->args->recompute && um_play_strategy_plans(r->strategy),
					.pattern = r->args->pattern ? r->args->pattern - 1 : 0};
}

static int ignore_plan(void *user, struct um_plan *plan)
{
	(void)user;
	(void)plan;
	return 0;
}

/* Plays with the budget. A plan that cannot be made is not enough. */
static int is_enough(void *user, uint64_t budget)
{
	struct row *r = user;
	struct um_play_options o = options_of(r, budget);
	struct um_play_result result;
	int err, is = 0;

	snprintf(r->label, sizeof r->label, "%s in %.1f MiB", um_play_strategy_name(r->strategy),
		 (double)budget / 1048576.0);
	r->progress.strategy = r->label;
	play_progress_show(&r->progress, r->search.tried, (r->search.most - r->search.bound) / r->search.step + 1);
	o.planned = r->played ? NULL : ignore_plan;
	err = r->played && o.recompute ? um_play_again(r->trace, &o, &result) : um_play(r->trace, &o, &result);
	if (!err) {
		uint64_t ns = r->played ? result.steady_ns : result.plan.ns;

		is = ns <= r->limit_ns;
		r->ns = is ? ns : r->ns;
	}
	um_play_result_fini(&result);
	return err == -ENOMEM ? err : is;
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

static int copy_learned(void *user, struct um_plan *plan)
{
	struct row *r = user;

	r->in_core_ns = plan->in_core_ns;
	r->limit_ns = (uint64_t)((double)plan->in_core_ns * (1 + r->args->slower / 100));
	r->learned.h2d = plan->h2d;
	r->learned.d2h = plan->d2h;
	r->learned.in_core_ns = plan->in_core_ns;
	/* bounds are those of any choice */
	return um_schedule_offers(&plan->sched) ? um_workspace_apply(&plan->sched, NULL, 1, &r->learned.sched)
						: um_schedule_copy(&r->learned.sched, &plan->sched);
}

/* Learns the workload with enough memory, then searches. 0 or an exit code. */
static int find(struct row *r)
{
	struct um_play_options o;
	struct um_play_result result;
	int err;

	least_budget_init(&r->search, r->alive);
	r->search.may_be_enough = may_be_enough;
	r->search.is_enough = is_enough;
	r->search.user = r;
	play_progress_begin(&r->progress, r->name, "lookahead");
	o = options_of(r, 2 * r->search.most);
	o.strategy = UM_PLAY_LOOKAHEAD;
	o.recompute = 0;
	o.iterations = o.iterations < 3 ? 3 : o.iterations;
	o.planned = copy_learned;
	o.planned_user = r;
	err = um_play(r->trace, &o, &result);
	if (!err)
		err = least_budget_find(&r->search);
	play_progress_end(&r->progress);
	if (err)
		tool_say(r->args->verb, "%s: %s", r->path, *result.why ? result.why : umadv_strerror(err));
	um_play_result_fini(&result);
	return err ? play_exit_of(err) : TOOL_DONE;
}

/* Writes the plan for the budget that was found. */
static int write_plan(const struct row *r)
{
	struct um_play_options o = options_of(r, r->search.budget);
	struct um_play_result result;
	int err;

	if (!r->search.budget) {
		tool_say(r->args->verb, "%s: no budget is enough: no plan is written", r->path);
		return TOOL_REFUSED;
	}
	o.save_plan = r->args->output;
	err = um_play(r->trace, &o, &result);
	if (err)
		tool_say(r->args->verb, "%s: %s", r->path, *result.why ? result.why : umadv_strerror(err));
	um_play_result_fini(&result);
	return err ? play_exit_of(err) : TOOL_DONE;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"workload", 1, 1}, {"strategy", 1, 1}, {"in core ms", 0, 1}, {"alive MiB", 0, 1}, {"budget MiB", 0, 1},
	{"saved %", 0, 1},  {"slower %", 0, 1}, {"bound MiB", 0, 1},  {"saved %", 0, 1},   {"of bound", 0, 1},
};

struct output {
	FILE *to;
	int format, n;
	struct table table;
	json_t *rows;
};

static double saved(const struct row *r, uint64_t budget)
{
	return budget < r->alive ? 1 - (double)budget / (double)r->alive : 0;
}

static double slower(const struct row *r)
{
	return r->in_core_ns ? (double)r->ns / (double)r->in_core_ns - 1 : 0;
}

static void add_cells(struct table *t, const struct row *r)
{
	const struct least_budget *l = &r->search;
	double by_bound = saved(r, l->bound);

	table_cell(t, "%s", tool_text(r->name));
	table_cell(t, "%s", um_play_strategy_name(r->strategy));
	table_cell(t, "%.3f", (double)r->in_core_ns / 1e6);
	table_cell(t, "%.1f", (double)r->alive / 1048576.0);
	if (l->budget) {
		table_cell(t, "%.1f", (double)l->budget / 1048576.0);
		table_cell(t, "%.1f", 100 * saved(r, l->budget));
		table_cell(t, "%.2f", 100 * slower(r));
	}
	for (int i = 0; i < 3 && !l->budget; i++)
		table_cell(t, "-");
	table_cell(t, "%.1f", (double)l->bound / 1048576.0);
	table_cell(t, "%.1f", 100 * by_bound);
	if (l->budget && by_bound > 0)
		table_cell(t, "%.3f", saved(r, l->budget) / by_bound);
	else
		table_cell(t, "-");
}

static void write_csv(struct output *o, const struct row *r)
{
	const struct least_budget *l = &r->search;

	if (!o->n++)
		fputs("trace,profile,strategy,at_most_slower,in_core_ns,alive_bytes,step_bytes,budget_bytes,steady_ns,"
		      "bound_bytes,tried\r\n",
		      o->to);
	tool_csv(o->to, r->name);
	fputc(',', o->to);
	tool_csv(o->to, r->args->profile.name);
	fprintf(o->to, ",%s,%.17g,%llu,%llu,%llu,", um_play_strategy_name(r->strategy), r->args->slower / 100,
		(unsigned long long)r->in_core_ns, (unsigned long long)r->alive, (unsigned long long)l->step);
	if (l->budget)
		fprintf(o->to, "%llu,%llu", (unsigned long long)l->budget, (unsigned long long)r->ns);
	else
		fputc(',', o->to);
	fprintf(o->to, ",%llu,%u\r\n", (unsigned long long)l->bound, l->tried);
}

static int add_json(struct output *o, const struct row *r)
{
	const struct least_budget *l = &r->search;
	json_t *row = json_pack("{s:s,s:s,s:s,s:f,s:I,s:I,s:I,s:o,s:o,s:I,s:I}", "trace", r->name, "profile",
				r->args->profile.name, "strategy", um_play_strategy_name(r->strategy), "at_most_slower",
				r->args->slower / 100, "in_core_ns", (json_int_t)r->in_core_ns, "alive_bytes",
				(json_int_t)r->alive, "step_bytes", (json_int_t)l->step, "budget_bytes",
				l->budget ? json_integer((json_int_t)l->budget) : json_null(), "steady_ns",
				l->budget ? json_integer((json_int_t)r->ns) : json_null(), "bound_bytes",
				(json_int_t)l->bound, "tried", (json_int_t)l->tried);

	return !row || json_array_append_new(o->rows, row) ? TOOL_INTERNAL : TOOL_DONE;
}

static int put(struct output *o, const struct row *r)
{
	if (o->format == FORMAT_JSON)
		return add_json(o, r);
	if (o->format == FORMAT_CSV)
		write_csv(o, r);
	else
		add_cells(&o->table, r);
	return TOOL_DONE;
}

static int finish(struct output *o, const struct play_args *a, int played)
{
	json_t *doc;
	int err;

	if (o->format == FORMAT_JSON) {
		doc = json_pack("{s:s,s:s,s:O}", "schema", "umleast/1", "time", played ? "played" : "planned", "rows",
				o->rows);
		err = tool_json(o->to, doc, JSON_REAL_PRECISION(17));
		json_decref(doc);
		return err ? TOOL_INTERNAL : TOOL_DONE;
	}
	if (!o->table.cells.n)
		return TOOL_DONE;
	fprintf(o->to,
		"%sleast memory on %s with which iterations %s at most %g %% longer than with all data resident%s\n",
		paint(PAINT_HEADING), tool_text(a->profile.name), played ? "take" : "are planned", a->slower,
		paint(PAINT_OFF));
	return table_write(&o->table, o->to) ? TOOL_INTERNAL : TOOL_DONE;
}

/* All strategies on one trace. */
static int run_trace(const struct play_args *a, int played, const char *path, struct output *o)
{
	int code = TOOL_DONE;
	struct um_trace *t = play_args_trace(a, path, &code);

	for (unsigned i = 0; t && i < a->n_strategies; i++) {
		struct row r = {.args = a, .played = played, .trace = t, .path = path, .strategy = a->strategies[i]};
		int one;

		r.name = um_trace_header(t)->workload;
		r.name = r.name && *r.name ? r.name : path;
		r.alive = um_trace_peak_bytes(t);
		um_plan_init(&r.learned);
		one = find(&r);
		if (!one)
			one = put(o, &r);
		if (!one && !played && a->output)
			one = write_plan(&r);
		um_plan_fini(&r.learned);
		code = one > code ? one : code;
	}
	um_trace_free(t);
	return code;
}

/* Has the strategy a budget, and a plan where none is played? */
static int has_budget(int played, enum um_play_strategy s)
{
	return played ? s != UM_PLAY_INFINITE : um_play_strategy_plans(s);
}

/* 0 or an exit code. */
static int check(const struct play_args *a, int played)
{
	unsigned i = 0;

	while (i < a->n_strategies && has_budget(played, a->strategies[i]))
		i++;
	if (i < a->n_strategies && played)
		tool_say(a->verb, "--strategy: infinite has no limit: expected others with --at-most-slower");
	else if (i < a->n_strategies)
		tool_say(a->verb, "--strategy: expected strategies that plan: lookahead or schemes");
	else if (!played && a->output && (a->n_traces > 1 || a->n_strategies > 1))
		tool_say(a->verb, "--at-most-slower writes one plan: expected one trace and one --strategy");
	else if (!played && a->output && strcmp(a->output, "-") == 0)
		tool_say(a->verb, "--at-most-slower writes figures to standard output: expected -o FILE");
	else
		return TOOL_DONE;
	return TOOL_USAGE;
}

int slower_main(const struct play_args *a, int played)
{
	struct output o = {.format = a->format, .table = {.columns = columns, .n = sizeof columns / sizeof *columns}};
	struct tool_output file;
	int code = check(a, played), any = 0, failed;

	if (!code)
		code = tool_output_open(&file, a->verb, played ? a->output : NULL);
	if (code)
		return code;
	o.to = file.to;
	o.rows = o.format == FORMAT_JSON ? json_array() : NULL;
	if (!bound_is_available())
		tool_say(a->verb, "no LP solver (Clp): using the planner's weaker bound");
	for (int i = 0; i < a->n_traces && code != TOOL_INTERNAL; i++) {
		int one = run_trace(a, played, a->traces[i], &o);

		any |= one != TOOL_REFUSED;
		code = one > code ? one : code;
	}
	if (code != TOOL_INTERNAL && finish(&o, a, played))
		code = TOOL_INTERNAL;
	json_decref(o.rows);
	failed = tool_output_close(&file, any && code != TOOL_INTERNAL);
	return failed ? failed : code;
}
