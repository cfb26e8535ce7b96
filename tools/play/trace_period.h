/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_period.h - the shortest repeating tail of a recorded workload, and its tensors in the next period
 *
 * in    the events of a trace
 * out   the begin of the tail; for each tensor that is older than the tail, its role in the next period
 *
 * Tensors are numbered by first appearance in a period. An older tensor X, the a-th of the last period and the b-th of
 * the one before, becomes the b-th tensor of this period: itself if it stays, the newborn counterpart if it was freed
 * (gradients), the other one if two swap. If the trace has only one period, X stays itself.
 */
#ifndef UM_PLAY_TRACE_PERIOD_H
#define UM_PLAY_TRACE_PERIOD_H

#include "base/vec.h"
#include "io/umtrace.h"

/* At the end of a period the memory of tensor `from` continues as tensor `to`. */
struct um_trace_period_move {
	uint64_t from, to; /* ids */
};

struct um_trace_period {
	uint64_t period; /* iterations in a period */
	size_t begin; /* event index of the iter line at the begin of the repeated period */
	UM_VEC(struct um_trace_period_move) moves;
};

/* 0, -ENOMEM, -ENODATA (no iterations). */
int um_trace_period_find(const struct um_trace *trace, struct um_trace_period *out);
void um_trace_period_fini(struct um_trace_period *t);

#endif
