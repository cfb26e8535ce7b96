/* SPDX-License-Identifier: Apache-2.0
 *
 * play_iterations.h - the iterations of a play: sources of their hints, and which of them hints helped
 *
 * in    the result of a strategy, and that of on-demand on the same device
 * out   cells of a table, columns of CSV, objects of JSON; a table by kind of iteration
 *
 * An iteration is helped if it was faster than the same one under on-demand. A kind is a name that the trace gives to
 * iterations; those without a name are of one kind if their ops are alike.
 */
#ifndef UM_TOOLS_PLAY_ITERATIONS_H
#define UM_TOOLS_PLAY_ITERATIONS_H

#include "play/player.h"
#include "table.h"

#include <jansson.h>

#define PLAY_ITERATION_CSV                                                                                             \
	"n,ns,faults,stall_ns,helped,scheduled,predicted,announced,scheduled_bytes,predicted_bytes,announced_bytes,"   \
	"h2d_bytes,d2h_bytes"

/* 1, 0, or -1: on-demand was not played (NULL). */
int play_iteration_helped(const struct um_play_result *r, const struct um_play_result *on_demand, size_t i);

/* The cells "scheduled", "predicted", "announced" and "helped". */
void play_iteration_cells(struct table *t, const struct um_play_result *r, const struct um_play_result *on_demand,
			  size_t i);
/* In the row of the strategy: how many iterations hints helped. */
void play_iteration_sums(struct table *t, const struct um_play_result *r, const struct um_play_result *on_demand);
/* A line from its number on, without the line's end. */
void play_iteration_csv(FILE *to, const struct um_play_result *r, const struct um_play_result *on_demand, size_t i);
/* To be freed; NULL: out of memory. */
json_t *play_iteration_json(const struct um_play_result *r, const struct um_play_result *on_demand, size_t i);

/* Where there are several kinds, adds a row for each. */
extern const struct table_column play_kind_columns[];
#define PLAY_KIND_COLUMNS 7
void play_kinds(struct table *t, const char *strategy, const struct um_play_result *r,
		const struct um_play_result *on_demand);

#endif
