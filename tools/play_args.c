/* SPDX-License-Identifier: Apache-2.0 */
#include "play_args.h"

#include "base/clock.h"
#include "play/trace_marks.h"
#include "sim/sim.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *strategy_name(unsigned i)
{
	return um_play_strategy_name((enum um_play_strategy)i);
}

static void list_strategies(int json)
{
	if (json)
		fputs("{\"schema\": \"umstrategies/1\", \"strategies\": [", stdout);
	for (unsigned i = 0; strategy_name(i); i++)
		printf(json ? "%s\"%s\"" : "%.0s%s\n", i ? ", " : "", strategy_name(i));
	if (json)
		puts("]}");
}

static const char *read_strategies(void *args, const char *text)
{
	struct play_args *a = args;
	char word[64];

	a->n_strategies = 0;
	a->chosen = 1;
	for (const char *end; text; text = *end ? end + 1 : NULL) {
		unsigned k = 0;

		end = text + strcspn(text, ",");
		snprintf(word, sizeof word, "%.*s", (int)(end - text), text);
		int s = um_play_strategy_parse(word);

		if (s < 0)
			return text;
		while (k < a->n_strategies && a->strategies[k] != (enum um_play_strategy)s)
			k++;
		if (k == a->n_strategies && k < PLAY_STRATEGIES)
			a->strategies[a->n_strategies++] = (enum um_play_strategy)s;
	}
	return NULL;
}

static const char *read_ratios(void *args, const char *text)
{
	struct play_args *a = args;
	char *end;

	for (a->n_ratios = 0; text; text = *end ? end + 1 : NULL) {
		double r = strtod(text, &end);

		if (end == text || (*end && *end != ',') || !(r >= 0.01 && r <= 1000) || a->n_ratios == PLAY_RATIOS)
			return text;
		a->ratios[a->n_ratios++] = r;
	}
	return NULL;
}

/* "1%" or "1". */
static const char *read_slower(void *args, const char *text)
{
	struct play_args *a = args;
	char *end;

	a->slower = strtod(text, &end);
	if (end == text || !(a->slower >= 0 && a->slower <= 1000))
		return text;
	end += *end == '%';
	return *end ? text : NULL;
}

/* "ring,25e9" or "ring,25GB/s"; a plain number is in bytes per second. */
static const char *read_collective(void *args, const char *text)
{
	struct play_args *a = args;
	char *end;

	if (strncmp(text, "ring,", 5) != 0)
		return text;
	a->ring = strtod(text + 5, &end);
	if (strcmp(end, "GB/s") == 0) {
		a->ring *= 1e9;
		end += 4;
	}
	return *end || !(a->ring >= 1e6 && a->ring <= 1e15) ? text : NULL;
}

#define AT(field) offsetof(struct play_args, field)
#define PLAYS (PLAY_SIMULATE | PLAY_PLAN)
#define ALL_PLAYS (PLAYS | PLAY_LEAST | PLAY_RANKS)
#define DRAWS (PLAY_PLAN | PLAY_SHOW)

const struct arg play_options[] = {
	ARG_PROFILE(AT(profile_name), ALL_PLAYS),
	ARG(ARG_TEXT, "show-profile", PLAY_SIMULATE, AT(show_profile), "NAME|FILE", .word = args_profile_name,
	    .help = "print all constants of a device as a profile, each with its source, and end"),
	ARG(ARG_READ, "oversubscribe", PLAYS | PLAY_RANKS, 0, "R,...", .read = read_ratios,
	    .expected = "ratios from 0.01 to 1000, 16 at most",
	    .help = "device memory is (most bytes alive at once, of those that ops use) / R; simulate accepts "
		    "several"),
	ARG_BUDGET(AT(budget), PLAYS | PLAY_RANKS, 2 << 20, "device memory (default: the profile's)"),
	ARG(ARG_SIZE, "host-memory", PLAYS, AT(host_memory), "BYTES", .least = 1,
	    .help = "host memory that plans of lookahead may use for evicted data (default: no limit); a number with "
		    "KiB, MiB or GiB; simulate also shows what the driver has taken of it"),
	ARG(ARG_READ, "strategy", ALL_PLAYS, 0, "S,...", .read = read_strategies, .word = strategy_name,
	    .expected = "infinite, on-demand, prefetch-on-use, lookahead or another of --list-strategies",
	    .help = "simulate: infinite (unlimited memory), on-demand (page faults only), prefetch-on-use (each "
		    "op's tensors just before it), lookahead (learned and planned), default: these four; or "
		    "published schemes, see umadvise(1); plan: one strategy that plans (default: lookahead)"),
	ARG(ARG_LIST, "list-strategies", ALL_PLAYS, 0, NULL, .list = list_strategies,
	    .help = "names of all strategies, one per line"),
	ARG(ARG_TEXT, "plan", PLAY_SIMULATE, AT(plan), "FILE",
	    .help = "also play the hints of this umplan exactly as written, as strategy 'plan'; the default "
		    "budget is then the plan's"),
	ARG(ARG_COUNT, "iterations", ALL_PLAYS, AT(iterations), "N", .least = 1, .most = 1000000,
	    .expected = "a number",
	    .help = "iterations to play (default: 8); after the recorded ones their shortest repeating tail is "
		    "repeated; figures are those of the last iteration"),
	ARG(ARG_COUNT, "plan-time", ALL_PLAYS, AT(plan_ms), "MS", .least = 1, .most = 3600000,
	    .expected = "milliseconds",
	    .help = "time for each search for a better plan (default: a fixed effort, some 50 ms for 2,000 ops)"),
	ARG(ARG_CHOICE, "evict", PLAY_SIMULATE | PLAY_LEAST | PLAY_RANKS, AT(evict), "POLICY",
	    .words = "auto library driver",
	    .help = "library: prefetch blocks to the host in advance; driver: let the driver evict them when memory is "
		    "needed; auto (default): the faster one according to the profile"),
	ARG(ARG_CHOICE, "pattern", PLAY_SIMULATE | PLAY_LEAST | PLAY_RANKS, AT(pattern), "PATTERN",
	    .words = "each library narrow wide",
	    .help = "how kernels touch missing memory: library (tiles of matrix products), narrow (one region at a "
		    "time) or wide (all regions at once); each (default): on-demand with each of them, the least and "
		    "the most time, and the others with library"),
	ARG(ARG_REAL, "jitter", PLAY_SIMULATE, AT(jitter_percent), "PERCENT", .most = 99, .expected = "a percentage",
	    .help = "vary the time of each kernel by up to PERCENT in each iteration; the sum of kernel times "
		    "stays; figures are then means over the second half of the iterations (with 0, too)"),
	ARG(ARG_COUNT, "seed", PLAY_SIMULATE, AT(jitter.seed), "N", .most = UINT32_MAX, .expected = "a number",
	    .help = "seed of the jitter (default: 0)"),
	ARG(ARG_FLAG, "bound", PLAYS, AT(bound), NULL,
	    .help = "also prove a lower bound on the time of plans, and show time / bound; plan: writes it to the "
		    "plan's header"),
	ARG(ARG_REAL, "bound-time", ALL_PLAYS, AT(bound_time), "SECONDS", .least = 1e-6, .most = 1000000,
	    .expected = "seconds", .help = "time limit of the bound (default: 30); the best bound so far counts"),
	ARG(ARG_FLAG, "bound-copies", ALL_PLAYS, AT(bound_copies), NULL,
	    .help = "the bound counts a copy to the host for each eviction of data that the iteration writes, as the "
		    "driver makes one; by default, as in a plan, none for data that the host still has"),
	ARG(ARG_FLAG, "recompute", ALL_PLAYS, AT(recompute), NULL,
	    .help = "plans may launch operations again where the trace allows it (default): their output is "
		    "dropped, and made again before it is used; the bound then covers such plans, too; not with "
		    "--per-iteration and --export"),
	ARG(ARG_OFF, "no-recompute", ALL_PLAYS, AT(recompute), NULL,
	    .help = "nothing is launched again; the bound covers plans without recomputation"),
	ARG(ARG_READ, "at-most-slower", ALL_PLAYS, 0, "PERCENT", .read = read_slower,
	    .expected = "a percentage up to 1000",
	    .help = "in place of one budget: the least memory with which an iteration takes at most PERCENT longer "
		    "than with all data resident, and the least that the bound allows; plan: by the plan's own time, "
		    "simulate: as played; more than one trace and strategy may be given (default: lookahead)"),
	ARG(ARG_COUNT, "ranks", PLAY_RANKS, AT(ranks), "N", .least = 1, .most = 4096, .expected = "a number of GPUs",
	    .help = "data-parallel training of the recorded batch on 1, 2, 4 ... N GPUs: memory and time of a step, "
		    "GPU-hours, and the smallest number of GPUs whose step takes at most 10 % (--at-most-slower) "
		    "longer than with all data resident; --oversubscribe is that of one GPU"),
	ARG(ARG_READ, "collective", PLAY_RANKS, 0, "ring,RATE", .read = read_collective,
	    .expected = "ring,RATE with bytes per second or GB/s, from 0.001 GB/s on",
	    .help = "with --ranks: gradients are reduced in a ring, RATE through each GPU (default: the rate of the "
		    "profile's link to the device)"),
	ARG(ARG_COUNT, "devices", PLAY_SIMULATE, AT(devices), "N", .least = 1, .most = UM_SIM_DEVICES_MAX,
	    .expected = "a number of GPUs",
	    .help = "play the trace on N GPUs at once, each with a program of its own: a row for each"),
	ARG(ARG_COUNT, "per-link", PLAY_RANKS | PLAY_SIMULATE, AT(per_link), "N", .least = 1, .most = 4096,
	    .expected = "a number of GPUs",
	    .help = "with --ranks and --devices: N GPUs share each link to the host (default: the profile's), and "
		    "plans count on an equal part of its rate"),
	ARG(ARG_FLAG, "per-iteration", PLAY_SIMULATE, AT(per_iteration), NULL,
	    .help = "also show each iteration: sources of its hints, and whether it was faster than on-demand"),
	ARG(ARG_TEXT, "export", PLAY_SIMULATE, AT(export), "FILE", .writes = 1,
	    .help = "write the run as an export of Nsight Systems (SQLite) for umadvise report, or, if the name "
		    "ends in .json or .json.gz, for Perfetto and chrome://tracing; needs one trace, one strategy "
		    "and one budget"),
	ARG(ARG_TEXT, "svg", PLAY_RANKS, AT(svg), "FILE", .writes = 1,
	    .help = "with --ranks: also draw time and GPU-hours by the number of GPUs"),
	ARG(ARG_TEXT, "svg", DRAWS, AT(svg), "FILE", .writes = 1,
	    .help = "also draw residency, ops and copies of a steady iteration"),
	ARG(ARG_TEXT, "timeline", DRAWS, AT(timeline), "FILE", .writes = 1,
	    .help = "also write two steady iterations for Perfetto and chrome://tracing (JSON; gzip if the name "
		    "ends in .gz)"),
	ARG(ARG_FLAG, "show", PLAY_SHOW, AT(show), NULL,
	    .help = "show a plan: its figures, the tensors that cost most, and each eviction with its prefetch "
		    "and reason"),
	ARG(ARG_FLAG, "diff", PLAY_DIFF, AT(diff), NULL,
	    .help = "compare two plans for the same iteration: evictions that differ"),
	ARG_FORMAT(AT(format), PLAY_SIMULATE | PLAY_LEAST | PLAY_RANKS, "table json csv",
		   "table (default), json or csv"),
	ARG_FORMAT(AT(format), PLAY_PLAN | PLAY_SHOW | PLAY_DIFF | PLAY_LEAST, "table json csv",
		   "table (default) or json, of --show, --diff, --at-most-slower and the lists; csv, of "
		   "--at-most-slower"),
	ARG_OUTPUT(AT(output), "write to FILE (gzip if the name ends in .gz; -: standard output)"),
	ARG_LAST,
};

static int usage_error(const struct play_args *a, const char *what)
{
	tool_say(a->verb, "%s", what);
	return TOOL_USAGE;
}

static int check(const struct play_args *a)
{
	if (!a->n_traces)
		return usage_error(a, "no trace given: expected umtrace files");
	if (!a->ranks && !a->devices && a->per_link)
		return usage_error(a, "--per-link: expected --ranks or --devices with it");
	if (a->devices && (a->export || a->plan || a->per_iteration || a->slower >= 0))
		return usage_error(a, "--devices: expected no --export, --plan, --per-iteration and --at-most-slower");
	if (!a->ranks && (a->ring > 0 || (a->svg && strcmp(a->verb, "simulate") == 0)))
		return usage_error(a, "--collective and --svg: expected --ranks with them");
	if (a->ranks && (a->n_traces > 1 || a->n_ratios > 1))
		return usage_error(a, "--ranks: expected one trace and at most one --oversubscribe");
	if (a->budget && a->n_ratios)
		return usage_error(a, "--budget and --oversubscribe both given: expected one of them");
	if (a->export && (a->n_traces > 1 || a->n_strategies > 1 || a->n_ratios > 1 || a->plan))
		return usage_error(
			a, "--export: expected one trace, one --strategy and one --oversubscribe, and no --plan");
	return ARGS_GO_ON;
}

int play_args_read(struct play_args *a, const struct tool_verb *verb, int argc, char **argv)
{
	struct args_found found;
	int code;

	*a = (struct play_args){.verb = verb->name,
				.iterations = 8,
				.bound_time = 30,
				.profile_name = "v100",
				.jitter_percent = -1,
				.slower = -1,
				.recompute = 1};
	for (int i = 0; i < UM_PLAYS; i++)
		a->strategies[a->n_strategies++] = (enum um_play_strategy)i;
	code = args_read(verb, a, argc, argv, &found);
	if (code != ARGS_GO_ON)
		return code;
	a->traces = found.operands;
	a->n_traces = found.n;
	if (a->jitter_percent > 0)
		a->jitter.share = a->jitter_percent / 100;
	if (a->show_profile) {
		code = tool_show_profile(verb->name, a->show_profile, a->output);
		return code ? code : TOOL_DONE;
	}
	if (a->show || a->diff)
		return args_only(verb, &found, a->show ? PLAY_SHOW : PLAY_DIFF, a->show ? "--show" : "--diff")
			       ? ARGS_GO_ON
			       : TOOL_USAGE;
	if ((a->slower >= 0 || a->ranks) && !a->chosen)
		read_strategies(a, "lookahead");
	if (a->ranks && !args_only(verb, &found, PLAY_RANKS, "--ranks"))
		return TOOL_USAGE;
	code = a->slower >= 0 && !a->ranks && !args_only(verb, &found, PLAY_LEAST, "--at-most-slower") ? TOOL_USAGE
												       : check(a);
	if (code != ARGS_GO_ON)
		return code;
	code = tool_profile(verb->name, a->profile_name, &a->profile);
	if (!code && !a->per_link)
		a->per_link = a->profile.link_devices;
	a->profile.link_devices = 1; /* one device, and no other on its link */
	return code ? code : ARGS_GO_ON;
}

uint64_t play_args_budget(const struct play_args *a, const struct um_trace *t, double ratio)
{
	if (a->budget)
		return a->budget;
	return ratio > 0 ? (uint64_t)((double)um_trace_peak_bytes(t) / ratio) : a->profile.capacity;
}

void play_args_note_fits(const struct play_args *a, const char *trace, uint64_t peak)
{
	if (!a->budget && !a->n_ratios && !a->plan && peak <= a->profile.capacity)
		tool_say(a->verb,
			 "note: %s needs %.1f MiB and fits into the %.1f MiB of %s: reduce the memory with --budget "
			 "or --oversubscribe",
			 trace, (double)peak / 1048576.0, (double)a->profile.capacity / 1048576.0, a->profile.name);
}

/* Of a trace that marks none. 0 or -errno. */
static int find_iterations(const struct play_args *a, const char *path, struct um_trace *t, struct um_diag *diag)
{
	int err = um_trace_marks_find(t);

	if (err == -ENODATA)
		return um_diag_set(diag, EINVAL, 0, "the trace has no iterations and no operations");
	if (err)
		return um_diag_set(diag, -err, 0, "%s", strerror(-err));
	if (um_trace_iterations(t) > 1)
		tool_say(a->verb, "note: %s marks no iterations: %llu were found in its operations", path,
			 (unsigned long long)um_trace_iterations(t));
	else
		tool_say(a->verb,
			 "note: %s marks no iterations, and its operations do not repeat: all of them are played "
			 "once, as one iteration",
			 path);
	return 0;
}

struct um_trace *play_args_trace(const struct play_args *a, const char *path, int *exit_code)
{
	struct um_trace *t = NULL;
	struct um_diag diag;
	char line[800];

	um_diag_init(&diag, path);
	int err = um_trace_load(&t, path, &diag);

	if (!err && !um_trace_iterations(t))
		err = find_iterations(a, path, t, &diag);
	if (!err)
		return t;
	um_trace_free(t);
	um_diag_line(&diag, line, sizeof line);
	tool_say(a->verb, "%s", line);
	*exit_code = tool_exit_of(err);
	return NULL;
}

int play_exit_of(int err)
{
	return err == -EIO ? TOOL_INTERNAL : tool_exit_of(err);
}

void play_progress_begin(struct play_progress *p, const char *trace, const char *strategy)
{
	*p = (struct play_progress){
		.trace = trace, .strategy = strategy, .begun_ns = um_clock_ns(CLOCK_MONOTONIC), .terminal = isatty(2)};
}

void play_progress_show(void *user, uint64_t iteration, uint64_t iterations)
{
	struct play_progress *p = user;

	if (!p->terminal || um_clock_ns(CLOCK_MONOTONIC) - p->begun_ns < 2000000000u)
		return;
	fprintf(stderr, "\r\033[K%s, %s: iteration %llu of %llu", tool_text(p->trace), p->strategy,
		(unsigned long long)iteration + 1, (unsigned long long)iterations);
	p->shown = 1;
}

void play_progress_written(struct play_progress *p, uint64_t rows, uint64_t of)
{
	if (!p->terminal || um_clock_ns(CLOCK_MONOTONIC) - p->begun_ns < 2000000000u || !of)
		return;
	fprintf(stderr, "\r\033[K%s, %s: %d %% written", tool_text(p->trace), p->strategy,
		(int)(100.0 * (double)rows / (double)of));
	p->shown = 1;
}

void play_progress_end(struct play_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = 0;
}
