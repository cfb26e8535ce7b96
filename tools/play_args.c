/* SPDX-License-Identifier: Apache-2.0 */
#include "play_args.h"

#include "base/size.h"
#include "io/profile_file.h"
#include "options.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int bad(const struct play_args *a, const char *option, const char *value, const char *expected)
{
	tool_say(a->verb, "%s '%s': expected %s", option, value, expected);
	return TOOL_USAGE + 1;
}

static int read_strategies(struct play_args *a, const char *list)
{
	char *copy = strdup(list), *rest = copy, *word;

	if (!copy)
		return TOOL_INTERNAL + 1;
	a->n_strategies = 0;
	a->chosen = 1;
	while ((word = strsep(&rest, ","))) {
		int s = um_play_strategy_parse(word);
		unsigned k = 0;

		if (s < 0) {
			int code = bad(a, "--strategy", word,
				       "infinite, on-demand, prefetch-on-use, lookahead or a scheme of umadvise(7)");

			free(copy);
			return code;
		}
		while (k < a->n_strategies && a->strategies[k] != (enum um_play_strategy)s)
			k++;
		if (k == a->n_strategies && k < PLAY_STRATEGIES)
			a->strategies[a->n_strategies++] = (enum um_play_strategy)s;
	}
	free(copy);
	return 0;
}

static int read_profile(struct play_args *a, const char *name)
{
	struct um_diag diag;
	char line[800];

	um_diag_init(&diag, name);
	int err = um_profile_get(name, &a->profile, &diag);

	if (!err)
		return 0;
	um_diag_line(&diag, line, sizeof line);
	tool_say(a->verb, "%s", line);
	return tool_exit_of(err) + 1;
}

static int read_count(const struct play_args *a, const char *option, const char *text, const char *wanted,
		      uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > most)
		return bad(a, option, text, wanted);
	*out = n;
	return 0;
}

static int simulate_only(const struct play_args *a, const char *option, const char *does)
{
	if (strcmp(a->verb, "simulate") == 0)
		return 0;
	tool_say(a->verb, "%s: only simulate %s", option, does);
	return TOOL_USAGE + 1;
}

static int read_jitter(struct play_args *a, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (*text < '0' || *text > '9' || *end || !(percent >= 0 && percent < 100))
		return bad(a, "--jitter", text, "per cent, from 0 to less than 100");
	a->jitter.share = percent / 100;
	a->jittered = 1;
	return simulate_only(a, "--jitter", "plays kernels that are off");
}

static int read_seed(struct play_args *a, const char *text)
{
	char *end;

	errno = 0;
	a->jitter.seed = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return bad(a, "--seed", text, "a number");
	return simulate_only(a, "--seed", "plays kernels that are off");
}

static int read_ratio(const struct play_args *a, const char *text, double *out)
{
	char *end;
	double r = strtod(text, &end);

	if (*end || end == text || !(r >= 0.01 && r <= 1000))
		return bad(a, "--oversubscribe", text, "a ratio from 0.01 to 1000");
	*out = r;
	return 0;
}

static int read_seconds(const struct play_args *a, const char *text, double *out)
{
	char *end;
	double x = strtod(text, &end);

	if (*end || end == text || !(x > 0 && x <= 1e6))
		return bad(a, "--bound-time", text, "seconds, above 0 and at most 1000000");
	*out = x;
	return 0;
}

static int read_format(struct play_args *a, const char *text)
{
	static const char *const formats[] = {"table", "json", "csv"};

	for (int i = 0; i < 3; i++)
		if (strcmp(formats[i], text) == 0) {
			a->format = (enum play_format)i;
			return 0;
		}
	return bad(a, "--format", text, "table, json or csv");
}

static int read_evict(struct play_args *a, const char *text)
{
	int way = um_evict_parse(text);

	if (way < 0)
		return bad(a, "--evict", text, "auto, home or driver");
	a->evict = (enum umadv_evict)way;
	return simulate_only(a, "--evict", "plays a plan");
}

static int read_option(struct play_args *a, int c, const char *usage)
{
	switch (c) {
	case 'p':
		return read_profile(a, optarg);
	case 'r':
		return read_ratio(a, optarg, &a->oversubscribe);
	case 'b':
		if (um_size_parse(optarg, &a->budget) || !a->budget)
			return bad(a, "--budget", optarg, "bytes, or a number with KiB, MiB or GiB");
		return 0;
	case 's':
		return read_strategies(a, optarg);
	case 'l':
		for (int i = 0; um_play_strategy_name((enum um_play_strategy)i); i++)
			puts(um_play_strategy_name((enum um_play_strategy)i));
		return TOOL_DONE + 1;
	case 'n':
		return read_count(a, "--iterations", optarg, "a number from 1 to 1000000", 1000000, &a->iterations);
	case 'M':
		return read_count(a, "--plan-time", optarg, "milliseconds from 1 to 3600000", 3600000, &a->plan_ms);
	case 'E':
		return read_evict(a, optarg);
	case 'B':
		a->bound = 1;
		return 0;
	case 'T':
		return read_seconds(a, optarg, &a->bound_time);
	case 'R':
	case 'N':
		a->recompute = c == 'R';
		return 0;
	case 'i':
		a->per_iteration = 1;
		return 0;
	case 'f':
		return read_format(a, optarg);
	case 'o':
		a->output = optarg;
		return 0;
	case 'P':
		a->plan = optarg;
		return simulate_only(a, "--plan", "plays a plan");
	case 'j':
		return read_jitter(a, optarg);
	case 'S':
		return read_seed(a, optarg);
	case 'x':
		a->export = optarg;
		return simulate_only(a, "--export", "writes what it showed");
	case 'v':
		a->svg = optarg;
		if (strcmp(a->verb, "plan") == 0)
			return 0;
		tool_say(a->verb, "--svg: only a plan is drawn");
		return TOOL_USAGE + 1;
	case 't':
		a->timeline = optarg;
		if (strcmp(a->verb, "plan") == 0)
			return 0;
		tool_say(a->verb, "--timeline: of a plan alone; a run is exported, --export FILE.json");
		return TOOL_USAGE + 1;
	case 'h':
		fputs(usage, stdout);
		return TOOL_DONE + 1;
	default:
		tool_say(a->verb, "'umadvise %s --help' tells the options", a->verb);
		return TOOL_USAGE + 1;
	}
}

int play_args_read(struct play_args *a, int argc, char **argv, const char *usage)
{
	static const struct option options[] = {{"profile", required_argument, NULL, 'p'},
						{"oversubscribe", required_argument, NULL, 'r'},
						{"budget", required_argument, NULL, 'b'},
						{"strategy", required_argument, NULL, 's'},
						{"list-strategies", no_argument, NULL, 'l'},
						{"iterations", required_argument, NULL, 'n'},
						{"plan-time", required_argument, NULL, 'M'},
						{"evict", required_argument, NULL, 'E'},
						{"jitter", required_argument, NULL, 'j'},
						{"seed", required_argument, NULL, 'S'},
						{"bound", no_argument, NULL, 'B'},
						{"bound-time", required_argument, NULL, 'T'},
						{"recompute", no_argument, NULL, 'R'},
						{"no-recompute", no_argument, NULL, 'N'},
						{"per-iteration", no_argument, NULL, 'i'},
						{"format", required_argument, NULL, 'f'},
						{"output", required_argument, NULL, 'o'},
						{"svg", required_argument, NULL, 'v'},
						{"timeline", required_argument, NULL, 't'},
						{"plan", required_argument, NULL, 'P'},
						{"export", required_argument, NULL, 'x'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	int c, code = 0;

	memset(a, 0, sizeof *a);
	a->verb = argv[0];
	a->iterations = 8;
	a->bound_time = 30;
	a->profile = *um_profile_find("v100");
	for (int i = 0; i < UM_PLAYS; i++)
		a->strategies[a->n_strategies++] = (enum um_play_strategy)i;
	optind = 1;
	while (!code && (c = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
		code = read_option(a, c, usage);
	if (code)
		return code;
	a->traces = argv + optind;
	a->n_traces = argc - optind;
	if (!a->n_traces) {
		tool_say(a->verb, "no trace given: expected umtrace files");
		return TOOL_USAGE + 1;
	}
	if (a->recompute && !a->bound) {
		tool_say(a->verb, "--recompute: plans compute nothing again yet, only a bound does: expected --bound");
		return TOOL_USAGE + 1;
	}
	if (a->budget && a->oversubscribe > 0) {
		tool_say(a->verb, "--budget and --oversubscribe both given: expected one of them");
		return TOOL_USAGE + 1;
	}
	if (a->export && (a->n_traces > 1 || a->n_strategies > 1 || a->plan)) {
		tool_say(a->verb, "--export: expected one trace and one --strategy, and no --plan");
		return TOOL_USAGE + 1;
	}
	return 0;
}

uint64_t play_args_budget(const struct play_args *a, const struct um_trace *t)
{
	if (a->budget)
		return a->budget;
	if (a->oversubscribe > 0)
		return (uint64_t)((double)um_trace_peak_bytes(t) / a->oversubscribe);
	return a->profile.capacity;
}

struct um_trace *play_args_trace(const struct play_args *a, const char *path, int *exit_code)
{
	struct um_trace *t = NULL;
	struct um_diag diag;
	char line[800];

	um_diag_init(&diag, path);
	int err = um_trace_load(&t, path, &diag);

	if (!err)
		return t;
	um_diag_line(&diag, line, sizeof line);
	tool_say(a->verb, "%s", line);
	*exit_code = tool_exit_of(err);
	return NULL;
}

int play_exit_of(int err)
{
	return err == -EIO ? TOOL_INTERNAL : tool_exit_of(err);
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

void play_progress_begin(struct play_progress *p, const char *trace, const char *strategy)
{
	*p = (struct play_progress){.trace = trace, .strategy = strategy, .begun_ms = now_ms(), .terminal = isatty(2)};
}

void play_progress_show(void *user, uint64_t iteration, uint64_t iterations)
{
	struct play_progress *p = user;

	if (!p->terminal || now_ms() - p->begun_ms < 2000)
		return;
	fprintf(stderr, "\r\033[K%s, %s: iteration %llu of %llu", p->trace, p->strategy,
		(unsigned long long)iteration + 1, (unsigned long long)iterations);
	p->shown = 1;
}

void play_progress_written(struct play_progress *p, uint64_t rows, uint64_t of)
{
	if (!p->terminal || now_ms() - p->begun_ms < 2000 || !of)
		return;
	fprintf(stderr, "\r\033[K%s, %s: %d %% written", p->trace, p->strategy,
		(int)(100.0 * (double)rows / (double)of));
	p->shown = 1;
}

void play_progress_end(struct play_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = 0;
}
