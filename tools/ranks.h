/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h - umadvise simulate --ranks: one batch on 1, 2, 4 ... N GPUs
 */
#ifndef UM_TOOLS_RANKS_H
#define UM_TOOLS_RANKS_H

#include "play/shard.h"
#include "play_args.h"

#define RANKS_STEPS 1000 /* the table has the GPU-hours of this number of steps */

/* A step on `n` GPUs with one strategy. */
struct ranks_row {
	unsigned n;
	enum um_play_strategy strategy;
	uint64_t peak; /* bytes alive at once on each GPU */
	struct um_shard_figures ring;
	uint64_t in_core_ns; /* with all data resident, waits for all-reduces included */
	uint64_t ns;
	double gpu_hours;
};

/* Draws time and GPU-hours of rows that are ordered by strategy, then by `n`. 0 or an exit code. */
int ranks_svg_write(const char *path, const char *title, const struct ranks_row *rows, size_t n);

/* The verb with --ranks. The exit code. */
int ranks_main(const struct play_args *a);

#endif
