/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_simulate.c - umadvise simulate: traces x strategies on one device, as a table, JSON or CSV
 */
#include "bound/bound.h"
#include "output.h"
#include "play_args.h"
#include "play_export.h"
#include "ranks.h"
#include "simulate_out.h"
#include "slower.h"
#include "tool.h"
#include "umadvise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/plan_file.h"
#include "play/plan_again.h"
#include "play/plan_player.h"
#include "play/devices.h"
#include "play/play_again.h"
#include "sim/sim.h"

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
	struct simulate_run *run = user;
	struct bound_settings settings = {"simulate", run->args->profile.duplex, run->args->bound_time,
					  run->args->recompute && !run->args->devices &&
						  um_plan_again_can(&plan->sched),
					  run->args->bound_copies};
	int err = bound_plan(plan, &settings);

	run->bound_ns = plan->bound_ns;
	return err;
}

/* Devices that share a link, of those that are played. */
static uint64_t sharing(const struct play_args *a)
{
	return a->per_link < a->devices ? a->per_link : a->devices;
}

/* Learns the iteration in a separate play. A workload that cannot be planned has no bound. */
static void find_bound(struct simulate_run *run, const struct um_trace *t)
{
	struct um_profile device = run->args->profile;
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

	if (run->args->devices) {
		device.link_devices = sharing(run->args);
		o.profile = &device;
	}
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
	struct simulate_out *out;
	struct simulate_run run;
	char why[sizeof((struct um_play_result *)0)->why]; /* last error: an error of every strategy is printed once */
	int printed;
	struct play_band band; /* on-demand, played first */
	int keeps; /* `band` is there */
	struct um_play_result each[UM_SIM_DEVICES_MAX]; /* with --devices */
};

/* Each pattern. 0 or -errno, explained by `why` of the run. */
static int play_patterns(struct simulation *s, const struct um_play_options *o)
{
	int err = play_band_run(s->trace, o, &s->band);

	if (!err)
		return 0;
	memset(&s->run.r, 0, sizeof s->run.r);
	memcpy(s->run.r.why, s->band.at[s->band.failed].why, sizeof s->run.r.why);
	play_band_fini(&s->band);
	return err;
}

/* On all devices at once. 0 or -errno, explained by `why` of the run. */
static int play_devices(struct simulation *s, const struct um_play_options *o)
{
	const struct um_play_devices how = {(unsigned)s->args->devices, (unsigned)s->args->per_link};
	int err = um_play_on_devices(s->trace, o, &how, s->each);

	memset(&s->run.r, 0, sizeof s->run.r);
	for (unsigned i = 0; i < how.n && err; i++) {
		if (*s->each[i].why)
			memcpy(s->run.r.why, s->each[i].why, sizeof s->run.r.why);
		um_play_result_fini(&s->each[i]);
	}
	return err;
}

static int print_devices(struct simulation *s)
{
	int err = 0;

	for (unsigned i = 0; i < s->args->devices; i++) {
		s->run.r = s->each[i];
		s->run.device = (int)i;
		err |= simulate_out_print(s->out, &s->run);
		um_play_result_fini(&s->run.r);
	}
	s->run.device = -1;
	memset(&s->run.r, 0, sizeof s->run.r);
	return err;
}

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
		return o->recompute ? um_play_again(s->trace, o, r) : um_play(s->trace, o, r);
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

/* Is on-demand played with each pattern? */
static int plays_patterns(const struct simulation *s)
{
	return !s->args->pattern && !s->args->export;
}

/* Plays a strategy, or the plan, or with `patterns` the strategy with each pattern. 0 or -errno. */
static int play_one(struct simulation *s, enum um_play_strategy strategy, const struct um_plan *plan, int patterns)
{
	struct play_progress progress;
	struct simulate_run *run = &s->run;
	struct um_play_options o = {.profile = &s->args->profile,
				    .budget = run->budget,
				    .strategy = strategy,
				    .iterations = s->args->iterations,
				    .plan_ms = (unsigned)s->args->plan_ms,
				    .evict = s->args->evict,
				    .pattern = s->args->pattern ? s->args->pattern - 1 : 0,
				    .jitter = s->args->jitter,
				    .means = s->args->jitter_percent >= 0 || s->args->devices,
				    .recompute = um_play_strategy_plans(strategy) && s->args->recompute &&
						 !s->args->per_iteration && !s->args->devices,
				    .progress = play_progress_show,
				    .host_bytes = s->args->host_memory,
				    .log = plan || (strategy < UM_PLAYS && !s->args->host_memory) ? NULL
												  : report_reason,
				    .user = &progress};
	int err;

	run->strategy = plan ? "plan" : um_play_strategy_name(strategy);
	run->pattern = (enum um_pattern)o.pattern;
	run->band = NULL;
	play_progress_begin(&progress, run->trace, run->strategy);
	err = s->args->devices ? play_devices(s, &o) : patterns ? play_patterns(s, &o) : play(s, plan, &o);
	play_progress_end(&progress);
	return err;
}

/* One row. */
static int simulate_one(struct simulation *s, enum um_play_strategy strategy, const struct um_plan *plan)
{
	struct simulate_run *run = &s->run;
	int is_kept = s->keeps && strategy == UM_PLAY_ON_DEMAND, err = 0, code;

	run->unmodelled = !plan && strategy == UM_PLAY_ON_DEMAND && s->args->profile.coherent;
	if (run->unmodelled) {
		run->strategy = um_play_strategy_name(strategy);
		return simulate_out_print(s->out, run) ? TOOL_INTERNAL : TOOL_DONE;
	}
	if (is_kept) {
		run->strategy = um_play_strategy_name(strategy);
		run->r = s->band.at[s->band.least];
		run->band = &s->band;
		run->pattern = s->band.least;
	} else {
		err = play_one(s, strategy, plan, 0);
	}
	if (err) {
		if (strcmp(run->r.why, s->why) != 0 || !s->printed)
			tool_say("simulate", "%s: %s", s->path, *run->r.why ? run->r.why : umadv_strerror(err));
		s->printed = 1;
		memcpy(s->why, run->r.why, sizeof s->why);
		code = play_exit_of(err);
	} else {
		code = (s->args->devices ? print_devices(s) : simulate_out_print(s->out, run)) ? TOOL_INTERNAL
											       : TOOL_DONE;
	}
	if (!is_kept)
		um_play_result_fini(&run->r);
	return code;
}

/* Other strategies are compared with on-demand, wherever it is among them. With a pattern of its own the band is that
 * one play. */
static void keep_on_demand(struct simulation *s)
{
	const struct play_args *a = s->args;

	s->run.on_demand = NULL;
	s->keeps = 0;
	for (unsigned i = 0; i < a->n_strategies && !s->keeps && !a->export && !a->profile.coherent && !a->devices;
	     i++) {
		int patterns = plays_patterns(s), at = a->pattern ? a->pattern - 1 : 0;

		if (a->strategies[i] != UM_PLAY_ON_DEMAND)
			continue;
		if (play_one(s, UM_PLAY_ON_DEMAND, NULL, patterns)) {
			um_play_result_fini(&s->run.r);
			return;
		}
		if (!patterns) {
			memset(&s->band, 0, sizeof s->band);
			s->band.at[at] = s->run.r;
			s->band.least = s->band.most = (enum um_pattern)at;
		}
		s->run.on_demand = &s->band.at[s->band.least];
		s->keeps = 1;
	}
}

/* All strategies on one trace and budget; ratio 0: not given. */
static int simulate_budget(struct simulation *s, double ratio, const struct um_plan *plan)
{
	const struct play_args *a = s->args;
	struct simulate_run *run = &s->run;
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
	if (simulate_out_end_block(s->out, run))
		code = TOOL_INTERNAL;
	if (s->keeps)
		play_band_fini(&s->band);
	return code;
}

/* Continues after a failed run. */
static int simulate(const struct play_args *a, const char *path, const struct um_plan *plan, struct simulate_out *out)
{
	struct simulation s = {.args = a, .path = path, .out = out, .run.device = -1};
	struct simulate_run *run = &s.run;
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

static int run(int argc, char **argv)
{
	struct play_args a;
	struct simulate_out out;
	struct um_plan plan;
	struct tool_output file;
	int code = play_args_read(&a, &verb_simulate, argc, argv), failed, any = 0;

	if (code != ARGS_GO_ON)
		return code;
	if (a.ranks)
		return ranks_main(&a);
	if (a.slower >= 0)
		return slower_main(&a, 1);
	um_plan_init(&plan);
	code = read_plan(&a, &plan);
	if (!code)
		code = tool_output_open(&file, "simulate", a.output);
	if (code)
		goto end;
	code = simulate_out_init(&out, file.to, a.format);
	for (int i = 0; i < a.n_traces && code != TOOL_INTERNAL; i++) {
		int one = simulate(&a, a.traces[i], a.plan ? &plan : NULL, &out);

		any |= one != TOOL_REFUSED;
		if (one > code)
			code = one;
	}
	if (out.runs && code != TOOL_INTERNAL && simulate_out_write_json(&out))
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
		 "hints; peak, most bytes resident at once; from, the first iteration with hints of a plan, or of a "
		 "strategy without plans, counted from 0 (lookahead predicts until it follows a plan).",
	.options = play_options,
	.modes = PLAY_SIMULATE | PLAY_RANKS,
	.tail = "Examples:\n"
		"  umadvise simulate resnet50.umtrace.gz --oversubscribe 1.25,1.5,2\n"
		"  umadvise simulate *.umtrace.gz --profile a100 --budget 8GiB --strategy on-demand,lookahead -f "
		"csv\n"
		"  umadvise simulate vgg16.umtrace.gz --profile 1080ti --at-most-slower 1%\n"
		"  umadvise simulate gpt2.umtrace.gz --ranks 8 --oversubscribe 4 --collective ring,50GB/s\n",
};
