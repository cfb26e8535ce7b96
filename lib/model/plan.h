/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - a plan: a schedule and its hints (umplan in memory)
 *
 * Hints refer to slots and are in the order of issue: `at` never decreases. doc/umplan.md defines each kind, its waits
 * and when a plan is sound. Prefetching a range without live content (new, or discarded) moves no bytes and takes no
 * time. A value: owns its memory.
 */
#ifndef UM_MODEL_PLAN_H
#define UM_MODEL_PLAN_H

#include "model/schedule.h"

enum um_hint_kind { UM_HINT_PREFETCH, UM_HINT_EVICT, UM_HINT_DISCARD, UM_HINT_RECOMPUTE, UM_HINT_ADVISE };

/* Advice of an advise hint: values of cudaMemoryAdvise. */
enum um_hint_advice { UM_ADVICE_READ_MOSTLY = 1, UM_ADVICE_PREFERRED = 3, UM_ADVICE_ACCESSED_BY = 5 };

struct um_hint {
	enum um_hint_kind kind;
	int32_t at; /* issued by the host just before it launches this op */
	int32_t after; /* may start on the device once this op has finished; -1 at once; always < at */
	uint32_t again; /* and once the first `again` relaunches after that op have finished */
	uint32_t slot; /* recompute: the op */
	int16_t copy; /* evict: 0 asserts that no copy is needed, 1 copies if the host's copy is stale */
	int16_t advice; /* advise: enum um_hint_advice, or one more to unset it */
	union {
		struct {
			uint64_t off, bytes;
		};
		struct {
			uint64_t first_scratch, n_scratch; /* recompute: into the plan's `scratch` */
		};
	};
};

struct um_plan {
	struct um_schedule sched;
	char *source, *workload, *profile, *strategy; /* owned; may be NULL */
	uint64_t budget; /* bytes of device memory the hints keep to */
	uint64_t host_budget; /* bytes of host memory the hints keep to (plan_host.h); 0: no limit */
	uint64_t host_wanted; /* host memory without that limit, about; 0: not known */
	uint64_t h2d, d2h; /* bytes/s that the plan assumes */
	uint64_t remote; /* likewise, of ops' accesses over the link; 0: none */
	uint64_t predicted_ns; /* steady iteration under these hints: ops and copies only */
	uint64_t rehearsed_ns; /* likewise, with the driver's work, as the library issues them; 0: not known */
	uint64_t in_core_ns; /* with unlimited device memory: the sum of the ops' ns */
	uint64_t bound_ns; /* proven lower bound, 0: none */
	UM_VEC(struct um_hint) hints;
	UM_VEC(uint32_t) scratch; /* slots that relaunches use in place of others */
	uint64_t *start; /* by op: start in a steady iteration, ns; one more entry. NULL: um_plan_prove was not
			    called */
};

/* What an iteration is expected to take. */
static inline uint64_t um_plan_expected_ns(const struct um_plan *p)
{
	return p->rehearsed_ns ? p->rehearsed_ns : p->predicted_ns;
}

void um_plan_init(struct um_plan *p);
void um_plan_fini(struct um_plan *p);

/* Figures of a plan in the steady state, by umplan's definition. */
struct um_plan_figures {
	uint64_t ns; /* of a steady iteration */
	uint64_t again_ns; /* sum of the relaunches' */
	uint64_t slower_ns; /* what the chosen algorithms take longer than the fastest ones (workspace.h) */
	uint64_t stall_ns; /* ns - again_ns - sum of the ops' */
	uint64_t h2d_bytes, d2h_bytes; /* copied in an iteration */
	uint64_t peak_bytes; /* most bytes resident at once, <= budget */
	uint64_t host_bytes; /* host memory of evicted data (plan_host.h) */
};

/* Sum of the ops' times, without relaunches, with the fastest algorithms. */
static inline uint64_t um_plan_core_ns(const struct um_plan_figures *f)
{
	return f->ns - f->stall_ns - f->again_ns - f->slower_ns;
}

/* Is the schedule valid: lifetimes, ranges inside live slots, a consistent carry? 0, -EINVAL with the reason as below,
 * or -ENOMEM. */
int um_schedule_check(const struct um_schedule *s, char *why, size_t size);

/* Proves the plan sound: 0; -EINVAL with the first violation in `why` (one line, at most `size` bytes; may be NULL);
 * -ENOMEM. `figures` may be NULL; they are also filled where only the host budget is exceeded. Plan path: O((ops +
 * uses + hints) log). */
int um_plan_check(const struct um_plan *p, struct um_plan_figures *figures, char *why, size_t size);

/* The same, and fills `start`. */
int um_plan_prove(struct um_plan *p, struct um_plan_figures *figures, char *why, size_t size);

#endif
