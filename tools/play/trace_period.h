/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_period.h - the shortest repeating tail of a recorded workload, and its tensors in the next period
 *
 * in    the events of a trace
 * out   where the tail begins; for each tensor that is older than the tail, whose place it takes the next time round
 *
 * Tensors are numbered by first appearance in a round of the tail. An older tensor X, the a-th of the last round, that
 * was the b-th of the round before, is next time the tensor that is the b-th of this round: itself where it stays, the
 * newborn counterpart where it was freed (gradients), the other one where two swap. Where the tail was seen only once X
 * is itself.
 */
#ifndef UM_PLAY_TRACE_PERIOD_H
#define UM_PLAY_TRACE_PERIOD_H

#include "base/vec.h"
#include "io/umtrace.h"

/* When a round ends: the memory of tensor `from` goes on under the name of tensor `to`. */
struct um_trace_period_move {
	uint64_t from, to; /* ids */
};

struct um_trace_period {
	uint64_t period; /* iterations in a round */
	size_t begin; /* event index of the iter line that begins the round that repeats */
	UM_VEC(struct um_trace_period_move) moves;
};

/* 0, -ENOMEM, -ENODATA (no iterations). */
int um_trace_period_find(const struct um_trace *trace, struct um_trace_period *out);
void um_trace_period_fini(struct um_trace_period *t);

#endif
