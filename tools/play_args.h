/* SPDX-License-Identifier: Apache-2.0
 *
 * play_args.h - the options that simulate and plan share
 */
#ifndef UM_PLAY_ARGS_H
#define UM_PLAY_ARGS_H

#include "player.h"

#define PLAY_STRATEGIES 32 /* in one command, at most */

enum play_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct play_args {
	const char *verb;
	struct um_profile profile;
	double oversubscribe; /* 0: not given */
	uint64_t budget; /* bytes; 0: not given */
	enum um_play_strategy strategies[PLAY_STRATEGIES];
	unsigned n_strategies;
	int chosen; /* --strategy */
	uint64_t iterations;
	uint64_t plan_ms; /* --plan-time */
	enum umadv_evict evict; /* --evict */
	struct um_jitter jitter;
	int jittered; /* --jitter given, be it 0 */
	int per_iteration;
	int bound; /* --bound */
	int recompute; /* --recompute: the bound may */
	double bound_time; /* seconds for it, at most */
	enum play_format format;
	const char *output; /* -o, or NULL */
	const char *svg; /* plan: where to draw, or NULL */
	const char *timeline; /* plan: where to write a trace of it, or NULL */
	const char *export; /* simulate: where to write the run as an export of nsys, or NULL */
	const char *plan; /* simulate: a plan to play as it is written, or NULL */
	char **traces;
	int n_traces;
};

/* Reads the command line. 0: go on; else the exit code, plus 1 (help was asked for: 1). `usage` is the help text. */
int play_args_read(struct play_args *a, int argc, char **argv, const char *usage);

/* Bytes to keep to for a trace: what was asked for, else the profile's capacity. */
uint64_t play_args_budget(const struct play_args *a, const struct um_trace *t);

/* Reads a trace; says why it cannot. */
struct um_trace *play_args_trace(const struct play_args *a, const char *path, int *exit_code);

/* The exit code for what um_play returned: a simulated device that gave up is no fault of an input. */
int play_exit_of(int err);

/* A line on stderr, where that is a terminal, while a run takes longer than two seconds. */
struct play_progress {
	const char *trace, *strategy;
	long long begun_ms; /* 0: not yet */
	int shown, terminal;
};

void play_progress_begin(struct play_progress *p, const char *trace, const char *strategy);
void play_progress_show(void *user, uint64_t iteration, uint64_t iterations); /* um_play_options.progress */
void play_progress_written(struct play_progress *p, uint64_t rows, uint64_t of);
void play_progress_end(struct play_progress *p);

#endif
