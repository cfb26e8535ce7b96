/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - a schedule and the hints that make it fit: umplan in memory
 *
 * Hints are over slots, in the order of issue: `at` never decreases. See doc/umplan.md for what each kind means, what
 * it waits for and when a plan is sound. Prefetching a range that holds no live content (just born, or discarded)
 * moves no bytes and takes no time. A value: owns its memory.
 */
#ifndef UM_MODEL_PLAN_H
#define UM_MODEL_PLAN_H

#include "model/schedule.h"

enum um_hint_kind { UM_HINT_PREFETCH, UM_HINT_EVICT, UM_HINT_DISCARD, UM_HINT_RECOMPUTE, UM_HINT_ADVISE };

/* Of an advise: what CUDA calls cudaMemoryAdvise. */
enum um_hint_advice { UM_ADVICE_READ_MOSTLY = 1, UM_ADVICE_PREFERRED = 3, UM_ADVICE_ACCESSED_BY = 5 };

struct um_hint {
	enum um_hint_kind kind;
	int32_t at; /* issued by the host just before it launches this op */
	int32_t after; /* may start on the device once this op has finished; -1 at once; always < at */
	uint32_t slot; /* recompute: the op */
	uint64_t off, bytes;
	int copy; /* evict: 0 promises that nothing is copied, 1 copied where the host's copy is stale */
	int advice; /* advise: enum um_hint_advice, or one more: that is unset */
};

struct um_plan {
	struct um_schedule sched;
	char *source, *workload, *profile, *strategy; /* owned; may be NULL */
	uint64_t budget; /* bytes of device memory the hints keep to */
	uint64_t h2d, d2h; /* bytes/s that the plan counts on */
	uint64_t remote; /* likewise, of what ops reach over the link; 0: they do not */
	uint64_t predicted_ns; /* steady iteration under these hints */
	uint64_t in_core_ns; /* with unlimited device memory: the sum of the ops' ns */
	uint64_t bound_ns; /* proven lower bound, 0 absent */
	UM_VEC(struct um_hint) hints;
	uint64_t *start; /* by op: when it starts in a steady iteration, ns; one more. NULL: no um_plan_prove */
};

void um_plan_init(struct um_plan *p);
void um_plan_fini(struct um_plan *p);

/* What a plan does in the steady state, by umplan's definition. */
struct um_plan_figures {
	uint64_t ns; /* of a steady iteration */
	uint64_t stall_ns; /* ns - sum of the ops' */
	uint64_t h2d_bytes, d2h_bytes; /* copied per iteration */
	uint64_t peak_bytes; /* most bytes resident at once, <= budget */
};

/* Does the schedule make sense: lifetimes, ranges inside slots that are alive, a carry that loses nobody? 0, or
 * -EINVAL and why not (as below), or -ENOMEM. */
int um_schedule_check(const struct um_schedule *s, char *why, size_t size);

/* Proves the plan sound or says why not: 0, -EINVAL with the first unsoundness in `why` (one line, at most `size`
 * bytes; may be NULL), -ENOMEM. `figures` may be NULL. Plan path: O((ops + uses + hints) log). */
int um_plan_check(const struct um_plan *p, struct um_plan_figures *figures, char *why, size_t size);

/* The same, and fills `start`. */
int um_plan_prove(struct um_plan *p, struct um_plan_figures *figures, char *why, size_t size);

#endif
