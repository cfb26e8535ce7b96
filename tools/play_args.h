/* SPDX-License-Identifier: Apache-2.0
 *
 * play_args.h - the options that simulate and plan share
 */
#ifndef UM_PLAY_ARGS_H
#define UM_PLAY_ARGS_H

#include "args.h"
#include "play/player.h"

#define PLAY_STRATEGIES 32 /* in one command, at most */
#define PLAY_RATIOS 16

enum play_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct play_args {
	const char *verb;
	const char *profile_name; /* --profile */
	const char *show_profile; /* print this one */
	struct um_profile profile; /* the profile that it names */
	double ratios[PLAY_RATIOS]; /* --oversubscribe */
	unsigned n_ratios;
	uint64_t budget; /* bytes; 0: not given */
	uint64_t host_memory; /* likewise */
	enum um_play_strategy strategies[PLAY_STRATEGIES];
	unsigned n_strategies;
	int chosen; /* --strategy */
	uint64_t iterations;
	uint64_t plan_ms; /* --plan-time */
	enum umadv_evict evict; /* --evict */
	double jitter_percent; /* negative: not given */
	struct um_jitter jitter;
	double slower; /* --at-most-slower, per cent; negative: not given */
	uint64_t ranks; /* --ranks; 0: not given */
	uint64_t devices; /* simulate --devices; 0: not given */
	uint64_t per_link; /* --per-link; else the profile's */
	double ring; /* --collective, bytes per second; 0: not given */
	int per_iteration;
	int pattern; /* --pattern: 0 each, otherwise the pattern + 1 */
	int bound; /* --bound */
	int recompute; /* not --no-recompute */
	double bound_time; /* its time limit, seconds */
	int bound_copies; /* written data are copied out whenever they are evicted */
	enum play_format format;
	const char *output; /* -o, or NULL */
	const char *svg; /* plan, and simulate --ranks: file of the drawing, or NULL */
	const char *timeline; /* plan: file of the timeline, or NULL */
	int show, diff; /* plan: show or compare plan files */
	const char *export; /* simulate: file of the exported run, or NULL */
	const char *plan; /* simulate: plan file to play, or NULL */
	char **traces; /* or plans */
	int n_traces;
};

/* Modes of play_options. */
enum { PLAY_SIMULATE = 1, PLAY_PLAN = 2, PLAY_SHOW = 4, PLAY_DIFF = 8, PLAY_LEAST = 16, PLAY_RANKS = 32 };
extern const struct arg play_options[];

/* Reads the command line: ARGS_GO_ON or the exit code. --show and --diff exclude options of other modes. */
int play_args_read(struct play_args *a, const struct tool_verb *verb, int argc, char **argv);

/* Budget for a trace: as given by the options, else the profile's capacity. `ratio` 0: not given. */
uint64_t play_args_budget(const struct play_args *a, const struct um_trace *t, double ratio);

/* Prints a note if neither --budget nor --oversubscribe was given and the trace fits into memory. */
void play_args_note_fits(const struct play_args *a, const char *trace, uint64_t peak);

/* Reads a trace; prints an error message if it cannot. */
struct um_trace *play_args_trace(const struct play_args *a, const char *path, int *exit_code);

/* The exit code for um_play's result: a failure of the simulated device is not an input error. */
int play_exit_of(int err);

/* A progress line on stderr if that is a terminal and a run takes longer than two seconds. */
struct play_progress {
	const char *trace, *strategy;
	uint64_t begun_ns; /* 0: not begun */
	int shown, terminal;
};

void play_progress_begin(struct play_progress *p, const char *trace, const char *strategy);
void play_progress_show(void *user, uint64_t iteration, uint64_t iterations); /* um_play_options.progress */
void play_progress_written(struct play_progress *p, uint64_t rows, uint64_t of);
void play_progress_end(struct play_progress *p);

#endif
