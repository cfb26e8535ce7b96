/* SPDX-License-Identifier: Apache-2.0
 *
 * hint_results.h - what became of each hint call, for whoever wants to hear of it
 *
 * in    what is put into the lanes (app's thread), what each call returned (workers)
 * out   hints given to the driver, on the app's thread, lane by lane
 * owns  an outcome for each place of the lanes' queues
 *
 * No lock: an outcome belongs to whoever has the request, and is handed on with it. Where nobody listens (`ears.hear`
 * NULL) it costs a branch where a request is put, and two where it is worked off. Op path, but for what says otherwise.
 */
#ifndef UM_REPLAY_HINT_RESULTS_H
#define UM_REPLAY_HINT_RESULTS_H

#include "gpu/gpu.h"
#include "replay/compiled_plan.h"

#define UM_HINT_RESULTS_LANES 3
#define UM_HINT_RESULTS_NO_OP UINT64_MAX

/* A hint that was given to the driver. */
struct um_hint_given {
	enum um_action_kind kind;
	uint64_t addr, bytes;
	uint64_t op; /* the number of the op that it is for, or UM_HINT_RESULTS_NO_OP */
	uint64_t begin, end; /* of the call: ns of the simulated clock, or of CLOCK_MONOTONIC */
	int code; /* what it returned */
};

typedef void um_hint_ear(void *user, const struct um_hint_given *hint);

/* Who hears of hints: `hear` on the app's thread, when told to; `given`, unless NULL, on the worker that gave it, at
 * once. */
struct um_hint_ears {
	um_hint_ear *hear, *given;
	void *user;
};

struct um_hint_result {
	uint64_t op, begin, end;
	int made, code; /* made: the call was */
};

struct um_hint_results {
	struct um_gpu *gpu;
	struct um_hint_ears ears; /* hear NULL: nobody listens */
	struct um_hint_result *at[UM_HINT_RESULTS_LANES]; /* by lane and place in its queue */
	uint32_t told[UM_HINT_RESULTS_LANES]; /* requests of the lane so far that are no matter any more */
};

/* Begins to listen; the queues have `places` places, and what was put so far (by lane) is not told. 0 or -ENOMEM, and
 * nobody listens. */
int um_hint_results_open(struct um_hint_results *o, struct um_gpu *gpu, uint32_t places, const uint32_t *put,
			 const struct um_hint_ears *ears);
void um_hint_results_close(struct um_hint_results *o);

uint64_t um_hint_results_now(const struct um_hint_results *o);

/* App's thread: a request for this op takes this place. Only where somebody listens. */
static inline void um_hint_results_put(struct um_hint_results *o, int lane, uint32_t place, uint64_t op)
{
	o->at[lane][place] = (struct um_hint_result){.op = op};
}

/* Worker, around the call. */
static inline uint64_t um_hint_results_begin(const struct um_hint_results *o)
{
	return o->ears.hear ? um_hint_results_now(o) : 0;
}

void um_hint_results_made(struct um_hint_results *o, struct um_hint_result *is, const struct um_hint_given *hint);

static inline void um_hint_results_end(struct um_hint_results *o, int lane, uint32_t place,
				       const struct um_hint_given *hint)
{
	if (o->ears.hear)
		um_hint_results_made(o, &o->at[lane][place], hint);
}

/* By action of the lap: the op that what it brings is for, counted from the iteration's first op, so that from n_ops on
 * it is the next iteration's; UINT32_MAX: none. To be freed; NULL: no memory. Iteration path: O((uses + actions) x
 * blocks of each). */
uint32_t *um_hint_results_targets(const struct um_compiled_plan *p, const struct um_compiled_iteration *lap,
				  const struct um_schedule *s);

#endif
