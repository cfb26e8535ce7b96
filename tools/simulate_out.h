/* SPDX-License-Identifier: Apache-2.0
 *
 * simulate_out.h - the rows of umadvise simulate: a table, CSV or JSON
 *
 * in    the result of each play, and for on-demand those of all patterns
 * out   rows, in the order of the calls
 * owns  the collected rows
 */
#ifndef UM_TOOLS_SIMULATE_OUT_H
#define UM_TOOLS_SIMULATE_OUT_H

#include "play_args.h"
#include "play_band.h"
#include "table.h"

#include <jansson.h>

struct simulate_run {
	const char *trace; /* the workload's name, else the file's */
	const struct play_args *args;
	double oversubscribe;
	uint64_t budget, peak;
	uint64_t bound_ns; /* with --bound; 0: none known */
	const char *strategy;
	int device; /* one of several; -1: the only one */
	struct um_play_result r;
	enum um_pattern pattern;
	int unmodelled; /* no figures */
	const struct play_band *band; /* on-demand: all its patterns; `r` is the least */
	const struct um_play_result *on_demand; /* the least; NULL: not needed, or not among the strategies */
};

struct simulate_out {
	FILE *to;
	json_t *runs; /* JSON */
	struct table table, kinds;
	unsigned blocks; /* tables written */
	uint64_t iterations; /* played in this block */
	uint64_t predicted_ns, played_ns; /* of the plan played in this block; 0: none */
	char again[200]; /* strategies of this block that launch operations again, and how many */
	char host[1000]; /* likewise, host memory of strategies */
	int irregular; /* the iterations of this block are not all alike */
	const char *unmodelled; /* the strategy without figures, or NULL */
	int ranges; /* it has a range over patterns: */
	enum um_pattern least, most;
	int csv_heading;
};

/* Prepares the tables. `to`: borrowed. 0 or a TOOL_ code. */
int simulate_out_init(struct simulate_out *out, FILE *to, enum play_format format);
/* One row; two if the time is a range. 0 or a TOOL_ code. */
int simulate_out_print(struct simulate_out *out, const struct simulate_run *run);
/* Prints the rows of one trace and budget below a heading. 0 or -ENOMEM. */
int simulate_out_end_block(struct simulate_out *out, const struct simulate_run *run);
/* After all blocks. 0 or a TOOL_ code. */
int simulate_out_write_json(struct simulate_out *out);

#endif
