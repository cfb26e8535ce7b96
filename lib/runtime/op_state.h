/* SPDX-License-Identifier: Apache-2.0
 *
 * op_state.h - the op at hand: which tensors are the ranges that the program names?
 *
 * in    what umadv_op was given, live tensors, the schedule's next op
 * out   uses
 * owns  the uses of the op at hand, and those of an iteration before, which need not be looked up again
 *
 * Op path: O(uses) for an op that the schedule has next and that names the same ranges as before, else
 * O(uses x log tensors). No allocation once an op of that size was seen. Not thread-safe: the caller holds the
 * context's lock.
 */
#ifndef UM_RUNTIME_OP_STATE_H
#define UM_RUNTIME_OP_STATE_H

#include "base/vec.h"
#include "model/event.h"
#include "record/registry.h"
#include "replay/cursor.h"
#include "runtime/chosen_device.h"
#include "runtime/notices.h"

#include <string.h>

/* What the program named here when it was looked up last, and what that was: the uses of an op lie one after the other,
 * so that they need not be looked up, nor written down again. */
struct um_known_uses {
	UM_VEC(struct umadv_use) given; /* by use of the plan's schedule */
	UM_VEC(struct um_use) found; /* likewise; id 0: not known */
};

struct um_op_state {
	const char *name; /* of the op at hand */
	um_stream stream; /* that it is launched on */
	int beside_plan; /* a plan has issued hints since the last op without one */
	const struct um_use *uses; /* of the op at hand: `resolved`, or a part of `known` */
	uint32_t n_uses;
	UM_VEC(struct um_use) resolved;
	struct um_known_uses known; /* of an iteration before */
	UM_VEC(struct um_tensor_id) outs; /* relaunch outputs of the op at hand */
	UM_VEC(struct um_touch) touches; /* of the op at hand, for a simulated device */
	uint64_t n; /* ops announced so far */
	uint64_t n_captured, n_unknown; /* ignored ops of captured streams; uses in no tensor */
};

_Static_assert(sizeof(struct umadv_use) == 4 * sizeof(void *) + 2 * sizeof(unsigned), "uses are compared as bytes");

void um_op_state_fini(struct um_op_state *o);

/* Is this the op that the schedule has next, on tensors that are who they are expected to be? Then nothing is looked
 * up: `uses` is set. Else NULL. */
static inline const struct um_sched_op *um_op_state_expected(struct um_op_state *o, struct um_cursor *c, int32_t stream,
							     const struct umadv_op_info *info)
{
	const struct um_sched_op *so = um_cursor_next(c);

	if (!so || so->n_uses != info->n_uses || so->stream != stream || so->first_use >= o->known.found.n ||
	    strcmp(so->name, o->name) != 0)
		return NULL;

	const struct um_sched_use *su = &c->sched->uses.at[so->first_use];
	const struct umadv_use *is = info->uses, *end = is + so->n_uses, *was = &o->known.given.at[so->first_use];
	const struct um_use *found = &o->known.found.at[so->first_use];

	o->uses = found;
	o->n_uses = so->n_uses;
	if (is < end && !found->id.v)
		return NULL;
	for (; is < end; is++, was++, su++, found++)
		if (memcmp(is, was, sizeof *is) != 0 || !um_cursor_holds(c, su, found))
			return NULL;
	return so;
}

/* The op that was looked up was the schedule's number `op`: it need not be next time. */
void um_op_state_remember(struct um_op_state *o, const struct um_schedule *s, uint32_t op,
			  const struct umadv_op_info *info);
/* Every op is looked up once more. */
void um_op_state_forget(struct um_op_state *o);

/* Ranges become tensors; the same range named twice is one use. 0; -ENOMEM; -EINVAL, logged once. */
int um_op_state_resolve(struct um_op_state *o, const struct um_registry *r, const struct umadv_op_info *info,
			struct um_notices *notices);
/* Likewise of the relaunch outputs. 0 or -ENOMEM. */
int um_op_state_resolve_outs(struct um_op_state *o, const struct um_registry *r, const struct umadv_op_info *info);

/* Is the stream being captured? What is captured does not run now, and a call on a capturing stream would become part
 * of the graph, or spoil it. `code`, `status`: the device's answer, not both 0. */
int um_op_state_captured(struct um_op_state *o, const struct um_chosen_device *d, um_stream stream, int code,
			 int status, struct um_notices *notices);

/* A simulated device is told what the kernel that follows will touch. */
void um_op_state_announce(struct um_op_state *o, const struct um_chosen_device *d, um_stream stream,
			  const struct um_cost *cost, struct um_notices *notices);

struct um_op um_op_state_op(const struct um_op_state *o, int32_t stream, const struct umadv_op_info *info);

#endif
