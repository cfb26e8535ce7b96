/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h - a lower bound on the time of all plans, by a linear program
 *
 * in    a schedule, a budget, link rates
 * out   nanoseconds of a steady iteration, rounded down
 *
 * Bytes are those of tensors, so the bound also holds for plans by blocks: a block takes at least the memory of its
 * tensors. It is a bound on umplan's steady iteration (doc/umplan.md): ops run one after the other, each with every
 * byte that it names resident. Deterministic unless the time limit ends it: refinement depends on the schedule only.
 */
#ifndef UM_BOUND_BOUND_H
#define UM_BOUND_BOUND_H

#include "base/vec.h"
#include "model/plan.h"

struct bound_request {
	const struct um_schedule *sched; /* borrowed; passed um_schedule_check */
	uint64_t budget; /* bytes */
	double h2d, d2h; /* bytes/s */
	double duplex; /* as in a profile; 1: independent directions */
	double seconds; /* time limit; 0: none */
	unsigned rounds; /* refinements at most; 0: until it settles */
	int recompute; /* ops may be launched again. Optimistic, see bound_again.c */
	int copies; /* bytes that an iteration writes are copied out whenever they are evicted, as by the driver */
	int all; /* no refinement: all begins and ends of ops are cuts. For small schedules */
};

#define BOUND_ROUNDS 16

struct bound_result {
	uint64_t ns; /* the bound, at least the sum of the ops' times */
	unsigned rounds, cuts; /* refinements, and moments distinguished by the last one */
	uint64_t by_round[BOUND_ROUNDS]; /* the best up to each */
	int cut_short; /* stopped by the time limit */
};

/* 0; -ENOMEM; -E2BIG: what one op uses exceeds the budget */
int bound_find(const struct bound_request *r, struct bound_result *out);

/* For the tool. */
struct bound_settings {
	const char *verb; /* borrowed; verb for messages; NULL: none */
	double duplex, seconds; /* as above */
	int recompute, copies;
};

/* Is there a solver? */
int bound_is_available(void);

/* Raises p->bound_ns to the bound. Without a solver the planner's bound stays, with a note on stderr. 0 or -ENOMEM. */
int bound_plan(struct um_plan *p, const struct bound_settings *settings);

/* --- its parts ---------------------------------------------------------------------------------------------------- */

/* Moments: 2 i op i begins, 2 i + 1 it ends, 2 n + m is m of the next iteration. */

/* A gap between two uses of the same bytes, the second of which reads the first one's content: the bytes may be evicted
 * strictly between `from` (an op ends) and `to` (an op begins). */
struct bound_gap {
	int64_t from, to;
};

#define BOUND_CLEAN INT64_MIN

#define BOUND_NEVER (-1.0)

/* Least time for which bytes are computed again, in ms per MiB. */
struct bound_again {
	double own; /* within the gap; BOUND_NEVER: impossible */
	double others; /* between moment `from` and the gap's end */
	int64_t from;
};

/* Bytes with the same history: gaps, one after the other, over which their content stays the same. With `copies` each
 * gap of content that was written is a chain of its own, written when the gap begins. */
struct bound_chain {
	uint64_t bytes;
	int64_t written; /* moment from which the host's copy is stale; BOUND_CLEAN: never */
	uint32_t first, n; /* gaps */
	uint32_t maker; /* touch that leaves this content (bound_history.h) */
	struct bound_again again;
};

struct bound_work {
	int32_t n_ops;
	uint64_t *before; /* by op: ns of the ops before it; n_ops + 1 */
	int64_t *need; /* by op: bytes that it uses or that are in a gap around it */
	int64_t *uses; /* by op: bytes that it uses */
	UM_VEC(struct bound_gap) gaps;
	UM_VEC(struct bound_chain) chains;
};

int bound_work_init(struct bound_work *w, const struct bound_request *r); /* 0 or -ENOMEM */
void bound_work_fini(struct bound_work *w);

#endif
