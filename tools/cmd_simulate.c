/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_simulate.c - umadvise simulate: traces x strategies on one device, as a table, JSON or CSV
 */
#include "bound/bound.h"
#include "output.h"
#include "paint.h"
#include "play_args.h"
#include "play_export.h"
#include "play_iterations.h"
#include "table.h"
#include "tool.h"
#include "umadvise.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/plan_file.h"
#include "play/plan_player.h"

struct run {
	const char *trace; /* the workload's name, else the file's */
	const struct play_args *args;
	double oversubscribe;
	uint64_t budget, peak;
	uint64_t bound_ns; /* with --bound; 0: none known */
	const char *strategy;
	struct um_play_result r;
	const struct um_play_result *on_demand; /* its result; NULL: not needed, or not among the strategies */
};

struct output {
	FILE *to;
	json_t *runs; /* JSON */
	struct table table, kinds;
	unsigned blocks; /* tables written */
	uint64_t iterations; /* played in this block */
	uint64_t predicted_ns, played_ns; /* of the plan played in this block; 0: none */
	int irregular; /* the iterations of this block are not all alike */
	int csv_heading;
};

static const struct table_column columns[] = {
	{"strategy", 1, 1},  {"time ms", 0, 1},	  {"x core", 0, 1},    {"faults", 0, 1},
	{"in MiB", 0, 0},    {"out MiB", 0, 0},	  {"stall ms", 0, 0},  {"hints", 0, 0},
	{"peak MiB", 0, 0},  {"from", 0, 0},	  {"bound ms", 0, 0},  {"x bound", 0, 0},
	{"scheduled", 0, 0}, {"predicted", 0, 0}, {"announced", 0, 0}, {"helped", 0, 0},
};

/* Columns that rows of strategies and of iterations share. */
static void add_figures(struct table *t, const struct um_play_iteration *it, uint64_t in_core_ns)
{
	table_cell(t, "%.3f", (double)it->ns / 1e6);
	table_cell(t, "%.3f", in_core_ns ? (double)it->ns / (double)in_core_ns : 0);
	table_cell(t, "%llu", (unsigned long long)it->faults);
	table_cell(t, "%.0f", (double)it->h2d_bytes / 1048576.0);
	table_cell(t, "%.0f", (double)it->d2h_bytes / 1048576.0);
	table_cell(t, "%.3f", (double)it->stall_ns / 1e6);
	table_cell(t, "%llu", (unsigned long long)it->hints);
	table_cell(t, "%.0f", (double)it->peak_resident_bytes / 1048576.0);
}

static void print_table(struct output *out, const struct run *run)
{
	const struct um_play_result *r = &run->r;
	const struct um_play_iteration sum = {.ns = r->steady_ns,
					      .faults = r->faults,
					      .stall_ns = r->stall_ns,
					      .h2d_bytes = r->h2d_bytes,
					      .d2h_bytes = r->d2h_bytes,
					      .hints = r->hints,
					      .peak_resident_bytes = r->peak_resident_bytes};
	struct table *t = &out->table;

	table_cell(t, "%s", run->strategy);
	add_figures(t, &sum, r->in_core_ns);
	if (r->first_hinted_iteration >= 0 && !run->args->per_iteration) /* then sources of hints are shown */
		table_cell(t, "%lld", (long long)r->first_hinted_iteration);
	else
		table_cell(t, "-");
	/* The bound does not apply to unlimited memory. */
	if (run->args->bound && run->bound_ns && strcmp(run->strategy, "infinite") != 0) {
		table_cell(t, "%.3f", (double)run->bound_ns / 1e6);
		table_cell(t, "%.3f", (double)r->steady_ns / (double)run->bound_ns);
	} else {
		table_cell(t, "-");
		table_cell(t, "-");
	}
	if (run->args->per_iteration)
		play_iteration_sums(t, r, run->on_demand);
	table_end_row(t);
	out->iterations = r->iterations.n;
	out->irregular |= r->irregular;
	if (r->predicted_ns) {
		out->predicted_ns = r->predicted_ns;
		out->played_ns = r->steady_ns;
	}
	for (size_t i = 0; i < r->iterations.n && run->args->per_iteration; i++) {
		const struct um_play_iteration *it = &r->iterations.at[i];

		table_cell(t, "  %zu", i);
		add_figures(t, it, r->in_core_ns);
		for (int k = 0; k < 3; k++) /* from, and the bound */
			table_cell(t, "-");
		play_iteration_cells(t, r, run->on_demand, i);
		table_end_row(t);
	}
	if (run->args->per_iteration)
		play_kinds(&out->kinds, run->strategy, r, run->on_demand);
}

/* Prints the rows of one trace and budget below a heading. 0 or -ENOMEM. */
static int end_block(struct output *out, const struct run *run)
{
	char which[1200], played[40];
	int err;

	if (!out->table.cells.n)
		return 0;
	snprintf(which, sizeof which, "%s on %s: %.1f MiB alive at most, %.1f MiB of device memory (%.2fx);",
		 tool_text(run->trace), tool_text(run->args->profile.name), (double)run->peak / 1048576.0,
		 (double)run->budget / 1048576.0, run->oversubscribe);
	snprintf(played, sizeof played, "%llu iteration%s", (unsigned long long)out->iterations,
		 out->iterations == 1 ? "" : "s");
	fprintf(out->to, "%s%s%s%s%s%s\n", out->blocks++ ? "\n" : "", paint(PAINT_HEADING), which,
		strlen(which) + strlen(played) < 100 ? " " : "\n", played, paint(PAINT_OFF));
	err = table_write(&out->table, out->to);
	if (out->predicted_ns)
		fprintf(out->to, "  %-14s %11.3f (played: %+.1f %%)\n", "as predicted", (double)out->predicted_ns / 1e6,
			((double)out->played_ns / (double)out->predicted_ns - 1) * 100);
	if (out->irregular)
		fprintf(out->to,
			"  Iterations are not all alike: figures are means over all of them from the third on.\n");
	if (run->args->per_iteration && !run->on_demand)
		fprintf(out->to,
			"  Which iterations hints helped is known only if on-demand is among the strategies.\n");
	if (!err && out->kinds.cells.n) {
		fprintf(out->to, "\nKinds of iterations:\n");
		err = table_write(&out->kinds, out->to);
	}
	out->predicted_ns = 0;
	out->irregular = 0;
	return err;
}

static void csv_key(struct output *out, const struct run *run)
{
	tool_csv(out->to, run->trace);
	fputc(',', out->to);
	tool_csv(out->to, run->args->profile.name);
	fprintf(out->to, ",%.17g,%llu,%s", run->oversubscribe, (unsigned long long)run->budget, run->strategy);
}

static void print_csv(struct output *out, const struct run *run)
{
	const struct um_play_result *r = &run->r;
	int each = run->args->per_iteration;

	if (!out->csv_heading)
		fprintf(out->to, "trace,profile,oversubscribe,budget_bytes,strategy,%s%s\r\n",
			each ? PLAY_ITERATION_CSV
			     : "steady_ns,in_core_ns,faults,h2d_bytes,d2h_bytes,stall_ns,hints,peak_resident_bytes,"
			       "first_hinted_iteration,planned_ns,played_ns",
			!each && run->args->bound ? ",bound_ns" : "");
	out->csv_heading = 1;
	for (size_t i = 0; each && i < r->iterations.n; i++) {
		csv_key(out, run);
		fputc(',', out->to);
		play_iteration_csv(out->to, r, run->on_demand, i);
		fputs("\r\n", out->to);
	}
	if (each)
		return;
	csv_key(out, run);
	fprintf(out->to, ",%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,", (unsigned long long)r->steady_ns,
		(unsigned long long)r->in_core_ns, (unsigned long long)r->faults, (unsigned long long)r->h2d_bytes,
		(unsigned long long)r->d2h_bytes, (unsigned long long)r->stall_ns, (unsigned long long)r->hints,
		(unsigned long long)r->peak_resident_bytes);
	if (r->first_hinted_iteration >= 0)
		fprintf(out->to, "%lld", (long long)r->first_hinted_iteration);
	fputc(',', out->to);
	if (r->planned_ns)
		fprintf(out->to, "%llu", (unsigned long long)r->planned_ns);
	fputc(',', out->to);
	if (r->played_ns)
		fprintf(out->to, "%llu", (unsigned long long)r->played_ns);
	if (run->args->bound && run->bound_ns)
		fprintf(out->to, ",%llu", (unsigned long long)run->bound_ns);
	else if (run->args->bound)
		fputc(',', out->to);
	fputs("\r\n", out->to);
}

static int add_iterations(json_t *o, const struct run *run)
{
	const struct um_play_result *r = &run->r;
	json_t *list = json_array();

	if (json_object_set_new(o, "iterations", list))
		return -1;
	for (size_t i = 0; i < r->iterations.n; i++)
		if (json_array_append_new(list, play_iteration_json(r, run->on_demand, i)))
			return -1;
	return 0;
}

static int add_json(struct output *out, const struct run *run)
{
	const struct um_play_result *r = &run->r;
	json_t *o = json_pack("{s:s,s:s,s:f,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "trace", run->trace, "profile",
			      run->args->profile.name, "oversubscribe", run->oversubscribe, "budget_bytes",
			      (json_int_t)run->budget, "strategy", run->strategy, "steady_ns", (json_int_t)r->steady_ns,
			      "in_core_ns", (json_int_t)r->in_core_ns, "faults", (json_int_t)r->faults, "h2d_bytes",
			      (json_int_t)r->h2d_bytes, "d2h_bytes", (json_int_t)r->d2h_bytes, "stall_ns",
			      (json_int_t)r->stall_ns, "hints", (json_int_t)r->hints, "peak_resident_bytes",
			      (json_int_t)r->peak_resident_bytes);
	int err = !o;

	if (!err)
		err = json_object_set_new(o, "sum_ns", json_integer((json_int_t)r->sum_ns));
	if (!err)
		err = json_object_set_new(o, "irregular", json_boolean(r->irregular));
	if (!err)
		err = json_object_set_new(o, "first_hinted_iteration",
					  r->first_hinted_iteration < 0
						  ? json_null()
						  : json_integer((json_int_t)r->first_hinted_iteration));
	if (!err && run->args->bound)
		err = json_object_set_new(o, "bound_ns",
					  run->bound_ns ? json_integer((json_int_t)run->bound_ns) : json_null());
	if (!err)
		err = json_object_set_new(o, "planned_ns",
					  r->planned_ns ? json_integer((json_int_t)r->planned_ns) : json_null());
	if (!err)
		err = json_object_set_new(o, "played_ns",
					  r->played_ns ? json_integer((json_int_t)r->played_ns) : json_null());
	if (!err && r->predicted_ns)
		err = json_object_set_new(o, "predicted_ns", json_integer((json_int_t)r->predicted_ns));
	if (!err && run->args->per_iteration)
		err = add_iterations(o, run);
	if (err) {
		json_decref(o);
		return TOOL_INTERNAL;
	}
	return json_array_append_new(out->runs, o) ? TOOL_INTERNAL : 0;
}

static int print_run(struct output *out, const struct run *run)
{
	if (run->args->format == FORMAT_JSON)
		return add_json(out, run);
	if (run->args->format == FORMAT_CSV)
		print_csv(out, run);
	else
		print_table(out, run);
	fflush(out->to);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Logs why a published scheme makes no plan. */
static void report_reason(void *user, const char *line)
{
	struct play_progress *progress = user;

	play_progress_end(progress);
	tool_say("simulate", "%s, %s: %s", progress->trace, progress->strategy, line);
}

static int add_bound(void *user, struct um_plan *plan)
{
	struct run *run = user;
	struct bound_settings settings = {"simulate", run->args->profile.duplex, run->args->bound_time,
					  run->args->recompute};
	int err = bound_plan(plan, &settings);

	run->bound_ns = plan->bound_ns;
	return err;
}

/* Learns the iteration in a separate play. A workload that cannot be planned has no bound. */
static void find_bound(struct run *run, const struct um_trace *t)
{
	struct play_progress progress;
	struct um_play_options o = {.profile = &run->args->profile,
				    .budget = run->budget,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = run->args->iterations < 3 ? 3 : run->args->iterations,
				    .plan_ms = (unsigned)run->args->plan_ms,
				    .evict = run->args->evict,
				    .progress = play_progress_show,
				    .user = &progress,
				    .planned = add_bound,
				    .planned_user = run};

	play_progress_begin(&progress, run->trace, "bound");
	um_play(t, &o, &run->r);
	play_progress_end(&progress);
	um_play_result_fini(&run->r);
}

/* State of the simulation of one trace. */
struct simulation {
	const struct play_args *args;
	const char *path;
	const struct um_trace *trace;
	struct output *out;
	struct run run;
	char why[sizeof((struct um_play_result *)0)->why]; /* last error: an error of every strategy is printed once */
	int printed;
	struct um_play_result on_demand; /* for --per-iteration, played first */
	int keeps; /* `on_demand` is there */
};

/* Plays, with --export into a file. 0 or -errno, explained by `why` of the run. */
static int play(struct simulation *s, const struct um_plan *plan, struct um_play_options *o)
{
	struct um_play_result *r = &s->run.r;
	struct um_profile device = *o->profile;
	struct play_export export;
	struct um_diag diag;
	int err, closed;

	if (plan)
		return um_plan_player_run(s->trace, plan, o, r);
	if (!s->args->export)
		return um_play(s->trace, o, r);
	memset(r, 0, sizeof *r);
	/* The played device has only the budget as memory. */
	if (o->strategy != UM_PLAY_INFINITE && o->budget < device.capacity)
		device.capacity = o->budget;
	err = play_export_open(&export, s->args->export, &device, o->user, &o->watch, &diag);
	if (!err) {
		err = um_play(s->trace, o, r);
		closed = play_export_close(&export, !err, &diag);
		if (err)
			return err;
		err = closed;
	}
	if (err)
		um_diag_line(&diag, r->why, sizeof r->why);
	return err;
}

/* Plays a strategy, or the plan. 0 or -errno. */
static int play_one(struct simulation *s, enum um_play_strategy strategy, const struct um_plan *plan)
{
	struct play_progress progress;
	struct run *run = &s->run;
	struct um_play_options o = {.profile = &s->args->profile,
				    .budget = run->budget,
				    .strategy = strategy,
				    .iterations = s->args->iterations,
				    .plan_ms = (unsigned)s->args->plan_ms,
				    .evict = s->args->evict,
				    .jitter = s->args->jitter,
				    .means = s->args->jitter_percent >= 0,
				    .progress = play_progress_show,
				    .log = plan || strategy < UM_PLAYS ? NULL : report_reason,
				    .user = &progress};
	int err;

	run->strategy = plan ? "plan" : um_play_strategy_name(strategy);
	play_progress_begin(&progress, run->trace, run->strategy);
	err = play(s, plan, &o);
	play_progress_end(&progress);
	return err;
}

/* One row. */
static int simulate_one(struct simulation *s, enum um_play_strategy strategy, const struct um_plan *plan)
{
	struct run *run = &s->run;
	int is_kept = s->keeps && strategy == UM_PLAY_ON_DEMAND, err = 0, code;

	if (is_kept) {
		run->strategy = um_play_strategy_name(strategy);
		run->r = s->on_demand;
	} else {
		err = play_one(s, strategy, plan);
	}
	if (err) {
		if (strcmp(run->r.why, s->why) != 0 || !s->printed)
			tool_say("simulate", "%s: %s", s->path, *run->r.why ? run->r.why : umadv_strerror(err));
		s->printed = 1;
		memcpy(s->why, run->r.why, sizeof s->why);
		code = play_exit_of(err);
	} else {
		code = print_run(s->out, run) ? TOOL_INTERNAL : TOOL_DONE;
	}
	if (!is_kept)
		um_play_result_fini(&run->r);
	return code;
}

/* Other strategies are compared with on-demand, wherever it is among them. */
static void keep_on_demand(struct simulation *s)
{
	const struct play_args *a = s->args;

	s->run.on_demand = NULL;
	s->keeps = 0;
	for (unsigned i = 0; i < a->n_strategies && a->per_iteration && !s->keeps; i++) {
		if (a->strategies[i] != UM_PLAY_ON_DEMAND)
			continue;
		if (play_one(s, UM_PLAY_ON_DEMAND, NULL)) {
			um_play_result_fini(&s->run.r);
			return;
		}
		s->on_demand = s->run.r;
		s->run.on_demand = &s->on_demand;
		s->keeps = 1;
	}
}

/* All strategies on one trace and budget; ratio 0: not given. */
static int simulate_budget(struct simulation *s, double ratio, const struct um_plan *plan)
{
	const struct play_args *a = s->args;
	struct run *run = &s->run;
	int code = 0;

	run->budget = plan && !a->budget && ratio <= 0 ? plan->budget : play_args_budget(a, s->trace, ratio);
	run->oversubscribe = ratio > 0 ? ratio : run->budget ? (double)run->peak / (double)run->budget : 0;
	run->bound_ns = 0;
	s->printed = 0;
	if (a->bound)
		find_bound(run, s->trace);
	keep_on_demand(s);
	for (unsigned i = 0; i < a->n_strategies + (plan != NULL); i++) {
		int one = simulate_one(s, i < a->n_strategies ? a->strategies[i] : UM_PLAYS,
				       i < a->n_strategies ? NULL : plan);

		if (one > code)
			code = one;
	}
	if (end_block(s->out, run))
		code = TOOL_INTERNAL;
	if (s->keeps)
		um_play_result_fini(&s->on_demand);
	return code;
}

/* Continues after a failed run. */
static int simulate(const struct play_args *a, const char *path, const struct um_plan *plan, struct output *out)
{
	struct simulation s = {.args = a, .path = path, .out = out};
	struct run *run = &s.run;
	int code = 0;
	struct um_trace *t = play_args_trace(a, path, &code);

	if (!t)
		return code;
	s.trace = t;
	run->args = a;
	run->peak = um_trace_peak_bytes(t);
	run->trace = um_trace_header(t)->workload;
	if (!run->trace || !*run->trace)
		run->trace = base_name(path);
	play_args_note_fits(a, run->trace, run->peak);
	for (unsigned i = 0; i < a->n_ratios + !a->n_ratios; i++) {
		int one = simulate_budget(&s, a->ratios[i], plan);

		if (one > code)
			code = one;
	}
	um_trace_free(t);
	return code;
}

/* 0, or an exit code. `plan` initialised. */
static int read_plan(const struct play_args *a, struct um_plan *plan)
{
	struct um_diag diag;
	char line[800];
	int err = a->plan ? um_plan_read(a->plan, plan, &diag) : 0;

	if (!err)
		return 0;
	um_diag_line(&diag, line, sizeof line);
	tool_say("simulate", "%s", line);
	return tool_exit_of(err);
}

static int write_json(struct output *out)
{
	json_t *doc = json_pack("{s:s,s:O}", "schema", "umsimulate/1", "runs", out->runs);
	int err = tool_json(out->to, doc, JSON_REAL_PRECISION(17));

	json_decref(doc);
	return err ? TOOL_INTERNAL : 0;
}

static int run(int argc, char **argv)
{
	struct play_args a;
	struct output out = {.table = {.columns = columns, .n = sizeof columns / sizeof *columns},
			     .kinds = {.columns = play_kind_columns, .n = PLAY_KIND_COLUMNS, .indent = 2}};
	struct um_plan plan;
	struct tool_output file;
	int code = play_args_read(&a, &verb_simulate, argc, argv), failed, any = 0;

	if (code != ARGS_GO_ON)
		return code;
	um_plan_init(&plan);
	code = read_plan(&a, &plan);
	if (!code)
		code = tool_output_open(&file, "simulate", a.output);
	if (code)
		goto end;
	out.to = file.to;
	out.runs = a.format == FORMAT_JSON ? json_array() : NULL;
	if (a.format == FORMAT_JSON && !out.runs)
		code = TOOL_INTERNAL;
	for (int i = 0; i < a.n_traces && code != TOOL_INTERNAL; i++) {
		int one = simulate(&a, a.traces[i], a.plan ? &plan : NULL, &out);

		any |= one != TOOL_REFUSED;
		if (one > code)
			code = one;
	}
	if (out.runs && code != TOOL_INTERNAL && write_json(&out))
		code = TOOL_INTERNAL;
	json_decref(out.runs);
	failed = tool_output_close(&file, any && code != TOOL_INTERNAL);
	code = failed ? failed : code;
end:
	um_plan_fini(&plan);
	return code;
}

const struct tool_verb verb_simulate = {
	.name = "simulate",
	.run = run,
	.what = "compare strategies for recorded workloads on a simulated GPU",
	.synopsis = "simulate TRACE... [OPTION]...",
	.about = "Plays recorded workloads (umtrace) on a simulated GPU, once per strategy, and shows the cost of a "
		 "steady iteration.\n"
		 "Columns: time of the iteration; x core, that time over the time with unlimited memory; faults "
		 "served; in and out, copied to the device and to the host; stall, time beyond the operations' own; "
		 "hints; peak, most bytes resident at once; from, the first iteration with hints, counted from 0.",
	.options = play_options,
	.modes = PLAY_SIMULATE,
	.tail = "Examples:\n"
		"  umadvise simulate resnet50.umtrace.gz --oversubscribe 1.25,1.5,2\n"
		"  umadvise simulate *.umtrace.gz --profile a100 --budget 8GiB --strategy on-demand,lookahead -f "
		"csv\n",
};
