/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c - umadvise plan: learns a recorded workload and writes the plan
 */
#include "bound/bound.h"
#include "plan_view.h"
#include "play/plan_again.h"
#include "play_args.h"
#include "slower.h"
#include "tool.h"
#include "umadvise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct bounding {
	struct bound_settings settings;
	uint64_t ns; /* 0: none */
};

static int add_bound(void *user, struct um_plan *plan)
{
	struct bounding *b = user;
	int err;

	b->settings.recompute &= um_plan_again_can(&plan->sched);
	err = bound_plan(plan, &b->settings);
	b->ns = plan->bound_ns;
	return err;
}

/* Keeps the library's last log line, which says why a scheme makes no plan. */
struct plan_progress {
	struct play_progress shown;
	char why[300];
};

static void show_progress(void *user, uint64_t iteration, uint64_t iterations)
{
	play_progress_show(&((struct plan_progress *)user)->shown, iteration, iterations);
}

static void keep_reason(void *user, const char *line)
{
	struct plan_progress *p = user;

	snprintf(p->why, sizeof p->why, "%s", line);
}

/* The planning strategy; negative: none. */
static int planning_strategy(const struct play_args *a)
{
	if (!a->chosen)
		return UM_PLAY_LOOKAHEAD;
	if (a->n_strategies != 1 || !um_play_strategy_plans(a->strategies[0])) {
		tool_say("plan", "--strategy: expected one that plans: lookahead or a scheme");
		return -1;
	}
	return (int)a->strategies[0];
}

static int draw(const struct play_args *a)
{
	struct plan_view v;
	int code = plan_view_open(&v, a->output);

	if (!code && a->svg)
		code = plan_svg_write(&v, a->svg);
	if (!code && a->timeline)
		code = plan_timeline_write(&v, a->timeline);
	plan_view_close(&v);
	return code;
}

/* ARGS_GO_ON or an exit code. */
static int check(const struct play_args *a)
{
	if (a->n_ratios > 1)
		tool_say("plan", "--oversubscribe: expected one ratio");
	else if (a->format != FORMAT_TABLE)
		tool_say("plan", "--format applies to --show and --diff only");
	else if (!a->output)
		tool_say("plan", "no output given: expected -o FILE");
	else if (a->n_traces != 1)
		tool_say("plan", "%d traces given: expected one", a->n_traces);
	else if ((a->svg || a->timeline) && strcmp(a->output, "-") == 0)
		tool_say("plan", "%s needs the plan in a file: expected -o FILE", a->svg ? "--svg" : "--timeline");
	else
		return ARGS_GO_ON;
	return TOOL_USAGE;
}

static void print_figures(const char *output, const struct um_plan_figures *f, const struct um_play_options *o,
			  uint64_t bound_ns)
{
	if (strcmp(output, "-") == 0)
		return;
	printf("%s: steady iteration %.3f ms, in core %.3f ms, peak %.1f of %.1f MiB", tool_text(output),
	       (double)f->ns / 1e6, (double)um_plan_core_ns(f) / 1e6, (double)f->peak_bytes / 1048576.0,
	       (double)o->budget / 1048576.0);
	if (o->host_bytes)
		printf(", host memory %.1f of %.1f MiB", (double)f->host_bytes / 1048576.0,
		       (double)o->host_bytes / 1048576.0);
	if (f->again_ns)
		printf(", launched again %.3f ms", (double)f->again_ns / 1e6);
	if (bound_ns)
		printf(", bound %.3f ms, x bound %.3f", (double)bound_ns / 1e6, (double)f->ns / (double)bound_ns);
	putchar('\n');
}

static int run(int argc, char **argv)
{
	struct play_args a;
	struct plan_progress progress = {0};
	struct um_play_result r;
	int code, strategy;

	code = play_args_read(&a, &verb_plan, argc, argv);
	if (code != ARGS_GO_ON)
		return code;
	if (a.show || a.diff)
		return plan_tools_main(&a);
	if (a.slower >= 0)
		return slower_main(&a, 0);
	code = check(&a);
	strategy = code == ARGS_GO_ON ? planning_strategy(&a) : -1;
	if (strategy < 0)
		return TOOL_USAGE;
	struct um_trace *t = play_args_trace(&a, a.traces[0], &code);

	if (!t)
		return code;
	/* A plan counts both directions at full rate, so its bound does, too. */
	struct bounding bound = {.settings = {"plan", 1, a.bound_time, a.recompute, a.bound_copies}};
	struct um_play_options o = {.profile = &a.profile,
				    .budget = play_args_budget(&a, t, a.ratios[0]),
				    .strategy = (enum um_play_strategy)strategy,
				    .iterations = a.iterations,
				    .plan_ms = (unsigned)a.plan_ms,
				    .progress = show_progress,
				    .host_bytes = a.host_memory,
				    .log = strategy < UM_PLAYS && !a.host_memory ? NULL : keep_reason,
				    .user = &progress,
				    .recompute = a.recompute,
				    .save_plan = a.output,
				    .planned = a.bound ? add_bound : NULL,
				    .planned_user = &bound};

	play_args_note_fits(&a, a.traces[0], um_trace_peak_bytes(t));
	play_progress_begin(&progress.shown, a.traces[0], um_play_strategy_name(o.strategy));
	int err = um_play(t, &o, &r);

	play_progress_end(&progress.shown);
	if (err == -ENODATA && *progress.why) {
		tool_say("plan", "%s: %s", a.traces[0], progress.why);
	} else if (err) {
		tool_say("plan", "%s: %s", a.traces[0], *r.why ? r.why : umadv_strerror(err));
	} else {
		if (*progress.why)
			tool_say("plan", "%s: %s", a.traces[0], progress.why);
		print_figures(a.output, &r.plan, &o, bound.ns);
	}
	um_play_result_fini(&r);
	um_trace_free(t);
	return !err && (a.svg || a.timeline) ? draw(&a) : play_exit_of(err);
}

const struct tool_verb verb_plan = {
	.name = "plan",
	.run = run,
	.what = "learn a recorded workload and write its plan (umplan)",
	.synopsis = "plan TRACE [OPTION]... -o FILE\n"
		    "plan TRACE... --at-most-slower PERCENT [OPTION]... [-o FILE]\n"
		    "plan --show FILE [--svg FILE] [--timeline FILE] [--format json] [-o FILE]\n"
		    "plan --diff FILE FILE [--format json] [-o FILE]",
	.about = "Plays TRACE (umtrace) on a simulated GPU until it is learned, and writes the plan (umplan): the "
		 "operations of an iteration, and the hints that make it fit into device memory.",
	.options = play_options,
	.modes = PLAY_PLAN | PLAY_SHOW | PLAY_DIFF,
	.tail = "Examples:\n"
		"  umadvise plan resnet50.umtrace.gz --profile a100 --oversubscribe 1.5 -o resnet50.umplan.gz\n"
		"  umadvise plan --show resnet50.umplan.gz --svg resnet50.svg\n"
		"  umadvise plan *.umtrace.gz --profile a100 --at-most-slower 1%\n",
};
