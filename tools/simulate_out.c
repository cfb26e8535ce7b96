/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate_out.h"

#include "output.h"
#include "paint.h"
#include "play_iterations.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

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

static void print_row(struct simulate_out *out, const struct simulate_run *run, const char *name,
		      const struct um_play_result *r)
{
	const struct um_play_iteration sum = {.ns = r->steady_ns,
					      .faults = r->faults,
					      .stall_ns = r->stall_ns,
					      .h2d_bytes = r->h2d_bytes,
					      .d2h_bytes = r->d2h_bytes,
					      .hints = r->hints,
					      .peak_resident_bytes = r->peak_resident_bytes};
	struct table *t = &out->table;

	table_cell(t, "%s", name);
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
}

/* Is the time of on-demand a range? */
static int is_range(const struct simulate_run *run)
{
	return run->band && run->band->least != run->band->most;
}

static void print_table(struct simulate_out *out, const struct simulate_run *run)
{
	const struct um_play_result *r = &run->r;
	struct table *t = &out->table;
	char name[80];

	if (run->unmodelled) {
		table_cell(t, "%s", run->strategy);
		for (int i = 0; i < 2; i++) /* its time, alone and in core */
			table_cell(t, "-");
		table_end_row(t);
		out->unmodelled = run->strategy;
		return;
	}
	if (run->device < 0)
		snprintf(name, sizeof name, "%s", is_range(run) ? "on-demand, least" : run->strategy);
	else
		snprintf(name, sizeof name, "%s, device %d", run->strategy, run->device);
	print_row(out, run, name, r);
	out->iterations = r->iterations.n;
	out->irregular |= r->irregular;
	if (r->relaunches && !r->predicted_ns)
		snprintf(out->again + strlen(out->again), sizeof out->again - strlen(out->again),
			 "%s%llu operations by %s", *out->again ? ", " : "", (unsigned long long)r->relaunches,
			 run->strategy);
	if (run->args->host_memory && r->host_bytes)
		snprintf(out->host + strlen(out->host), sizeof out->host - strlen(out->host), "%s%s %.0f MiB",
			 *out->host ? ", " : "", run->strategy, (double)r->host_bytes / 1048576.0);
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
	if (is_range(run)) {
		print_row(out, run, "on-demand, most", &run->band->at[run->band->most]);
		out->ranges = 1;
		out->least = run->band->least;
		out->most = run->band->most;
	}
	if (run->args->per_iteration)
		play_kinds(&out->kinds, run->strategy, r, run->on_demand);
}

int simulate_out_end_block(struct simulate_out *out, const struct simulate_run *run)
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
	if (out->unmodelled)
		fprintf(out->to,
			"  %s: not modelled on %s, whose GPU reaches host memory in hardware instead of faulting.\n",
			out->unmodelled, tool_text(run->args->profile.name));
	if (out->ranges)
		fprintf(out->to,
			"  on-demand: least with pattern '%s', most with pattern '%s': compare with the least.\n",
			play_pattern_name(out->least), play_pattern_name(out->most));
	if (*out->again)
		fprintf(out->to, "  launched again (--no-recompute: without): %s\n", out->again);
	if (*out->host)
		fprintf(out->to, "  host memory that the driver has taken, of %.0f MiB: %s\n",
			(double)run->args->host_memory / 1048576.0, out->host);
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
	*out->again = *out->host = '\0';
	out->irregular = 0;
	out->ranges = 0;
	out->unmodelled = NULL;
	return err;
}

static void csv_key(struct simulate_out *out, const struct simulate_run *run)
{
	tool_csv(out->to, run->trace);
	fputc(',', out->to);
	tool_csv(out->to, run->args->profile.name);
	fprintf(out->to, ",%.17g,%llu,%s", run->oversubscribe, (unsigned long long)run->budget, run->strategy);
}

static void print_csv(struct simulate_out *out, const struct simulate_run *run)
{
	const struct um_play_result *r = &run->r;
	int each = run->args->per_iteration;

	if (!out->csv_heading)
		fprintf(out->to, "trace,profile,oversubscribe,budget_bytes,strategy,%s%s%s\r\n",
			each ? PLAY_ITERATION_CSV
			     : "steady_ns,in_core_ns,faults,h2d_bytes,d2h_bytes,stall_ns,hints,peak_resident_bytes,"
			       "first_hinted_iteration,planned_ns,played_ns",
			each		   ? ""
			: run->args->bound ? ",bound_ns,pattern,steady_most_ns,pattern_most"
					   : ",pattern,steady_most_ns,pattern_most",
			run->device >= 0 ? ",device" : "");
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
	if (run->unmodelled) {
		fprintf(out->to, ",,,,,,,,,,,%s,,,\r\n", run->args->bound ? "," : "");
		return;
	}
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
	fprintf(out->to, ",%s,", play_pattern_name(run->pattern));
	if (is_range(run))
		fprintf(out->to, "%llu,%s", (unsigned long long)run->band->at[run->band->most].steady_ns,
			play_pattern_name(run->band->most));
	else
		fputc(',', out->to);
	if (run->device >= 0)
		fprintf(out->to, ",%d", run->device);
	fputs("\r\n", out->to);
}

static int add_iterations(json_t *o, const struct simulate_run *run)
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

static int add_patterns(json_t *o, const struct simulate_run *run)
{
	int range = is_range(run);
	json_t *most = range ? json_integer((json_int_t)run->band->at[run->band->most].steady_ns) : json_null();
	json_t *most_at = range ? json_string(play_pattern_name(run->band->most)) : json_null();

	return json_object_set_new(o, "pattern", json_string(play_pattern_name(run->pattern))) ||
			       json_object_set_new(o, "steady_most_ns", most) ||
			       json_object_set_new(o, "pattern_most", most_at)
		       ? -1
		       : 0;
}

/* The keys of a run without figures. */
static int add_unmodelled(struct simulate_out *out, const struct simulate_run *run)
{
	json_t *o = json_pack("{s:s,s:s,s:f,s:I,s:s,s:n,s:n,s:n,s:n,s:n}", "trace", run->trace, "profile",
			      run->args->profile.name, "oversubscribe", run->oversubscribe, "budget_bytes",
			      (json_int_t)run->budget, "strategy", run->strategy, "steady_ns", "faults", "pattern",
			      "steady_most_ns", "pattern_most");

	return !o || json_array_append_new(out->runs, o) ? TOOL_INTERNAL : 0;
}

static int add_json(struct simulate_out *out, const struct simulate_run *run)
{
	const struct um_play_result *r = &run->r;
	json_t *o = json_pack("{s:s,s:s,s:f,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "trace", run->trace, "profile",
			      run->args->profile.name, "oversubscribe", run->oversubscribe, "budget_bytes",
			      (json_int_t)run->budget, "strategy", run->strategy, "steady_ns", (json_int_t)r->steady_ns,
			      "in_core_ns", (json_int_t)r->in_core_ns, "faults", (json_int_t)r->faults, "h2d_bytes",
			      (json_int_t)r->h2d_bytes, "d2h_bytes", (json_int_t)r->d2h_bytes, "stall_ns",
			      (json_int_t)r->stall_ns, "hints", (json_int_t)r->hints, "peak_resident_bytes",
			      (json_int_t)r->peak_resident_bytes);
	int err = !o || json_object_set_new(o, "host_bytes", json_integer((json_int_t)r->host_bytes));

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
	if (!err && r->relaunches)
		err = json_object_set_new(o, "relaunches", json_integer((json_int_t)r->relaunches));
	if (!err && run->device >= 0)
		err = json_object_set_new(o, "device", json_integer(run->device));
	if (!err)
		err = add_patterns(o, run);
	if (!err && run->args->per_iteration)
		err = add_iterations(o, run);
	if (err) {
		json_decref(o);
		return TOOL_INTERNAL;
	}
	return json_array_append_new(out->runs, o) ? TOOL_INTERNAL : 0;
}

int simulate_out_print(struct simulate_out *out, const struct simulate_run *run)
{
	if (run->args->format == FORMAT_JSON)
		return run->unmodelled ? add_unmodelled(out, run) : add_json(out, run);
	if (run->args->format == FORMAT_CSV)
		print_csv(out, run);
	else
		print_table(out, run);
	fflush(out->to);
	return 0;
}

int simulate_out_write_json(struct simulate_out *out)
{
	json_t *doc = json_pack("{s:s,s:O}", "schema", "umsimulate/1", "runs", out->runs);
	int err = tool_json(out->to, doc, JSON_REAL_PRECISION(17));

	json_decref(doc);
	return err ? TOOL_INTERNAL : 0;
}

int simulate_out_init(struct simulate_out *out, FILE *to, enum play_format format)
{
	*out = (struct simulate_out){.to = to,
				     .table = {.columns = columns, .n = sizeof columns / sizeof *columns},
				     .kinds = {.columns = play_kind_columns, .n = PLAY_KIND_COLUMNS, .indent = 2},
				     .runs = format == FORMAT_JSON ? json_array() : NULL};
	return format == FORMAT_JSON && !out->runs ? TOOL_INTERNAL : 0;
}
