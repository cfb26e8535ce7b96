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
	struct um_profile profile; /* what that is */
	double ratios[PLAY_RATIOS]; /* --oversubscribe */
	unsigned n_ratios;
	uint64_t budget; /* bytes; 0: not given */
	enum um_play_strategy strategies[PLAY_STRATEGIES];
	unsigned n_strategies;
	int chosen; /* --strategy */
	uint64_t iterations;
	uint64_t plan_ms; /* --plan-time */
	enum umadv_evict evict; /* --evict */
	double jitter_percent; /* negative: not given */
	struct um_jitter jitter;
	int per_iteration;
	int bound; /* --bound */
	int recompute; /* --recompute: the bound may */
	double bound_time; /* seconds for it, at most */
	enum play_format format;
	const char *output; /* -o, or NULL */
	const char *svg; /* plan: where to draw, or NULL */
	const char *timeline; /* plan: where to write a trace of it, or NULL */
	int show, diff; /* plan: look at plans that were written */
	const char *export; /* simulate: where to write the run as an export of nsys, or NULL */
	const char *plan; /* simulate: a plan to play as it is written, or NULL */
	char **traces; /* or plans */
	int n_traces;
};

/* Modes of play_options. */
enum { PLAY_SIMULATE = 1, PLAY_PLAN = 2, PLAY_SHOW = 4, PLAY_DIFF = 8 };
extern const struct arg play_options[];

/* Reads the command line: ARGS_GO_ON or the exit code. With --show and --diff there is nothing but their options. */
int play_args_read(struct play_args *a, const struct tool_verb *verb, int argc, char **argv);

/* Bytes to keep to for a trace: what was asked for, else the profile's capacity. `ratio` 0: none was. */
uint64_t play_args_budget(const struct play_args *a, const struct um_trace *t, double ratio);

/* Where neither --budget nor --oversubscribe was given and all of a trace fits: says so on stderr. */
void play_args_note_fits(const struct play_args *a, const char *trace, uint64_t peak);

/* Reads a trace; says why it cannot. */
struct um_trace *play_args_trace(const struct play_args *a, const char *path, int *exit_code);

/* The exit code for what um_play returned: a simulated device that gave up is no fault of an input. */
int play_exit_of(int err);

/* A line on stderr, where that is a terminal, while a run takes longer than two seconds. */
struct play_progress {
	const char *trace, *strategy;
	uint64_t begun_ns; /* 0: not yet */
	int shown, terminal;
};

void play_progress_begin(struct play_progress *p, const char *trace, const char *strategy);
void play_progress_show(void *user, uint64_t iteration, uint64_t iterations); /* um_play_options.progress */
void play_progress_written(struct play_progress *p, uint64_t rows, uint64_t of);
void play_progress_end(struct play_progress *p);

#endif
