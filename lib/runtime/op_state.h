/* SPDX-License-Identifier: Apache-2.0
 *
 * op_state.h - resolves the ranges of the current op to tensors
 *
 * in    the arguments of umadv_op, live tensors, the schedule's next op
 * out   uses
 * owns  the uses of the current op, and a cache of uses resolved in earlier iterations
 *
 * Op path: O(uses) for the schedule's next op with the same ranges as before, otherwise O(uses x log tensors). No
 * allocation once an op of that size was seen. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_OP_STATE_H
#define UM_RUNTIME_OP_STATE_H

#include "base/debug.h"
#include "base/vec.h"
#include "model/event.h"
#include "record/registry.h"
#include "replay/cursor.h"
#include "runtime/chosen_device.h"
#include "runtime/notices.h"
#include "runtime/tensors.h"

#include <string.h>

/* Cache of resolved uses: the ranges that the program named at the last look-up, and their tensors. The uses of an op
 * are consecutive, so that they can be passed on without a copy. */
struct um_known_uses {
	UM_VEC(struct umadv_use) given; /* by use of the plan's schedule */
	UM_VEC(struct um_use) found; /* likewise; id 0: not known */
	UM_VEC(uint64_t) keys; /* by op; 0: not known */
	UM_VEC(uint64_t) held; /* by op: the latest um_op_state_changes() at which the cached uses matched */
};

enum um_op_prefetches {
	UM_OP_PREFETCHES_NONE,
	UM_OP_PREFETCHES_ABSENT, /* tensors that are absent */
	UM_OP_PREFETCHES_ALL
};

struct um_op_state {
	const char *name, *label; /* of the current op; `label` NULL: that of the thread (gpu/nvtx_listen.h) */
	um_stream stream; /* that it is launched on */
	uint64_t thread; /* number of the thread that announces it */
	int cpu; /* the current op is an access of the CPU: umadv_host */
	int joint; /* the current op uses memory that contexts of other devices use, too */
	int announced; /* the device, or the check, knows of the current op, */
	struct um_cost cost; /* with this cost */
	int plain; /* the plan's next op needs its hints and nothing else: context_op.c */
	int beside_plan; /* the plan has issued hints since the last op outside the plan */
	int begins; /* something comes before the launch of the current op, after it has waited for hints: */
	enum um_op_prefetches prefetches; /* these of its ranges are prefetched, */
	int64_t timed; /* and as this op of the schedule it is measured; -1: it is not */
	uint64_t key; /* of the current op, iteration_finder.h; 0: not known */
	const struct um_workspace *ws; /* that the current op offers */
	uint32_t n_ws;
	struct um_tensor *workspace; /* of the current op, the last of its uses; NULL: none */
	const struct um_use *uses; /* of the current op: `resolved`, or a part of `known` */
	uint32_t n_uses;
	UM_VEC(struct um_use) resolved;
	struct um_known_uses known; /* of earlier iterations */
	UM_VEC(struct um_tensor_id) outs; /* relaunch outputs of the current op */
	UM_VEC(struct um_touch) touches; /* of the current op, for a simulated device */
	uint64_t n; /* ops announced so far */
	uint64_t n_cpu; /* CPU accesses announced so far */
	uint64_t n_captured, n_unknown; /* ignored ops of captured streams; uses outside every tensor */
};

_Static_assert(sizeof(struct umadv_use) == 4 * sizeof(void *) + 2 * sizeof(unsigned), "uses are compared as bytes");

void um_op_state_fini(struct um_op_state *o);

/* A number that grows whenever the same ranges of the same op may be of other tensors, or of other slots. */
static inline uint64_t um_op_state_changes(const struct um_registry *r, const struct um_cursor *c)
{
	return r->changes + c->changes;
}

/* Do the cached uses of the schedule's op match again? */
static inline int um_op_state_hold(const struct um_cursor *c, const struct um_sched_op *so, const struct um_use *found)
{
	const struct um_sched_use *su = &c->sched->uses.at[so->first_use], *end = su + so->n_uses;

	while (su < end && um_cursor_holds(c, su, found)) {
		su++;
		found++;
	}
	return su == end;
}

/* The schedule's next op if this is it, on the expected tensors: `uses` is then set without a look-up. Otherwise
 * NULL. */
static inline __attribute__((always_inline)) const struct um_sched_op *
um_op_state_expected(struct um_op_state *o, const struct um_registry *r, const struct um_cursor *c, int32_t stream,
		     const struct umadv_op_info *info)
{
	const struct um_sched_op *so = um_cursor_next(c);
	struct um_known_uses *known = &o->known;

	if (!so || so->n_uses != info->n_uses || so->stream != stream || so->first_use >= known->found.n ||
	    strcmp(so->name, o->name) != 0)
		return NULL;
	if (so->n_uses && (!known->found.at[so->first_use].id.v ||
			   memcmp(info->uses, &known->given.at[so->first_use], so->n_uses * sizeof *info->uses) != 0))
		return NULL;
	o->uses = &known->found.at[so->first_use];
	o->n_uses = so->n_uses;
	if (known->held.at[c->op] != um_op_state_changes(r, c)) {
		if (!um_op_state_hold(c, so, o->uses))
			return NULL;
		known->held.at[c->op] = um_op_state_changes(r, c);
	}
	um_assert_op_path(um_op_state_hold(c, so, o->uses));
	return so;
}

/* Caches the resolved uses of the schedule's op number `op`. */
void um_op_state_remember(struct um_op_state *o, const struct um_schedule *s, uint32_t op,
			  const struct umadv_op_info *info);
/* Empties the cache. */
void um_op_state_forget(struct um_op_state *o);

/* Resolves ranges to tensors of the context; equal ranges become one use. 0; -ENOMEM; -EINVAL, logged once. */
int um_op_state_resolve(struct um_op_state *o, const struct um_tensors *tensors, const struct umadv_op_info *info,
			struct um_notices *notices);
/* The same for relaunch outputs, after the ranges. 0 or -ENOMEM. */
int um_op_state_resolve_outs(struct um_op_state *o, const struct um_registry *r, const struct umadv_op_info *info);
/* Adds the use of the op's workspace, if it has one, after the outputs. 0 or -ENOMEM. */
int um_op_state_add_workspace(struct um_op_state *o);

/* Is the stream being captured? Captured work does not run now, and a call on a capturing stream would become part of
 * the graph or invalidate it. `code`, `status`: results of cudaStreamIsCapturing, not both 0. */
int um_op_state_captured(struct um_op_state *o, const struct um_chosen_device *d, um_stream stream, int code,
			 int status, struct um_notices *notices);

/* Announces the ranges and the time of the next kernel to a simulated device. */
void um_op_state_announce(struct um_op_state *o, const struct um_chosen_device *d, um_stream stream,
			  const struct um_cost *cost, struct um_notices *notices);

struct um_op um_op_state_op(const struct um_op_state *o, int32_t stream, const struct umadv_op_info *info);

#endif
