/* SPDX-License-Identifier: Apache-2.0
 *
 * hint_results.h - the result of each hint call, for a listener
 *
 * in    requests of the lanes (program's thread), return values of the calls (workers)
 * out   hints issued to the driver, on the program's thread, lane by lane
 * owns  a record for each place of the lanes' queues
 *
 * No lock: a record belongs to the owner of the request, and is passed on with it. Without a listener (`report`
 * NULL) the cost is a branch per queued request, and two per completed one. Op path, unless stated otherwise.
 */
#ifndef UM_REPLAY_HINT_RESULTS_H
#define UM_REPLAY_HINT_RESULTS_H

#include "gpu/gpu.h"
#include "model/hint_source.h"
#include "replay/compiled_plan.h"

#define UM_HINT_RESULTS_LANES 3
#define UM_HINT_RESULTS_NO_OP UINT64_MAX

/* A hint issued to the driver. */
struct um_issued_hint {
	enum um_action_kind kind;
	uint64_t addr, bytes;
	uint64_t op; /* the number of the op that a prefetch precedes, or UM_HINT_RESULTS_NO_OP */
	uint64_t begin, end; /* of the call: ns of the simulated clock, or of CLOCK_MONOTONIC */
	int code; /* return value */
};

typedef void um_hint_report_fn(void *user, const struct um_issued_hint *hint);

/* A listener: `report` is called on the program's thread, on request; `issued`, unless NULL, on the worker, at once. */
struct um_hint_listener {
	um_hint_report_fn *report, *issued;
	void *user;
};

struct um_hint_result {
	uint64_t op, begin, end;
	int made, code; /* made: the call was made */
};

struct um_hint_results {
	struct um_gpu *gpu;
	struct um_hint_listener listener; /* report NULL: no listener */
	struct um_hint_result *at[UM_HINT_RESULTS_LANES]; /* by lane and place in its queue */
	uint32_t reported[UM_HINT_RESULTS_LANES]; /* requests of the lane that were reported or skipped so far */
};

/* Begins to listen; the queues have `places` places, and requests queued so far (by lane) are skipped. 0, or -ENOMEM
 * without a listener. */
int um_hint_results_open(struct um_hint_results *o, struct um_gpu *gpu, uint32_t places, const uint32_t *put,
			 const struct um_hint_listener *listener);
void um_hint_results_close(struct um_hint_results *o);

uint64_t um_hint_results_now(const struct um_hint_results *o);

/* Program's thread: a request for this op takes this place. Only with a listener. */
static inline void um_hint_results_put(struct um_hint_results *o, int lane, uint32_t place, uint64_t op)
{
	o->at[lane][place] = (struct um_hint_result){.op = op};
}

/* Worker, around the call. */
static inline uint64_t um_hint_results_begin(const struct um_hint_results *o)
{
	return o->listener.report ? um_hint_results_now(o) : 0;
}

void um_hint_results_made(struct um_hint_results *o, struct um_hint_result *is, const struct um_issued_hint *hint);

static inline void um_hint_results_end(struct um_hint_results *o, int lane, uint32_t place,
				       const struct um_issued_hint *hint)
{
	if (o->listener.report)
		um_hint_results_made(o, &o->at[lane][place], hint);
}

/* By action of the iteration: the op that needs its blocks, counted from the iteration's first op, so that values from
 * n_ops on belong to the next iteration; UINT32_MAX: none. To be freed; NULL: out of memory. Iteration path: O((uses +
 * actions) x blocks of each). */
uint32_t *um_hint_results_targets(const struct um_compiled_plan *p, const struct um_compiled_iteration *iteration,
				  const struct um_schedule *s);

#endif
