/* SPDX-License-Identifier: Apache-2.0
 *
 * context_host.c - accesses of the CPU that the plan does not have
 *
 * A program reads results now and then. The access moves its tensors to the host, and all else stays as the plan has
 * it: the plan goes on, the access is not recorded, and the next op of the plan that uses one of these tensors has it
 * prefetched. Accesses in every iteration are worth a plan of their own: from the second iteration in a row on, one
 * is recorded and ends the plan like any other op.
 */
#include "runtime/context.h"

#define AWAY_ITERATIONS 2 /* the access's and the next one: a plan uses what it has resident within one */

/* Does the plan run, and could it go on? Unmarked iterations are found in all that happens. */
static int may_go_on(const struct umadv *adv)
{
	const struct um_replan *r = &adv->replan;
	const struct um_sched_op *next = um_cursor_next(&r->cursor);

	return um_replan_hints(r) && um_follow_is_confirmed(r->state) && !um_follow_waits(r->state) &&
	       !adv->iterations.finder.on && adv->on_use.give && !um_context_relaunches(adv) &&
	       !um_context_joint_changed(adv) && !(next && next->stream == UM_STREAM_CPU);
}

/* Is this the first iteration in a row with such an access? */
static int is_seldom(struct um_iterations *it)
{
	if (it->beside_at != it->n)
		it->is_beside = it->beside_at + 1 != it->n;
	it->beside_at = it->n;
	return it->is_beside;
}

/* Ops use these tensors as they are, and not a part of them, or what they are part of. */
static int are_alone(const struct um_op_state *o)
{
	for (const struct um_use *u = o->uses; u < o->uses + o->n_uses; u++)
		if (u->tensor->flags & UM_TENSOR_UNMANAGED || u->tensor->parent || u->tensor->n_children)
			return 0;
	return 1;
}

/* The tensors leave the device. */
static void take(struct umadv *adv)
{
	struct um_executor *ex = adv->replan.executor;
	struct um_op_state *o = &adv->op;

	um_on_use_evicted(&adv->on_use, o->uses, o->n_uses);
	for (const struct um_use *u = o->uses; u < o->uses + o->n_uses; u++) {
		uint64_t addr = u->tensor->addr + u->off;

		um_executor_guard_cpu(ex, addr, addr + u->bytes);
		um_executor_forget_within(ex, addr, u->bytes);
		u->tensor->used_op = adv->iterations.op_serial;
		u->tensor->flags &= ~(unsigned)UM_TENSOR_DEAD;
		u->tensor->absent = 1;
	}
	adv->replan.taken = AWAY_ITERATIONS;
}

int um_context_host_beside(struct umadv *adv, const struct umadv_op_info *info)
{
	struct um_event e = {.kind = UM_EV_OP};
	struct um_op_state *o = &adv->op;

	if (!may_go_on(adv) || um_op_state_resolve(o, &adv->tensors, info, &adv->notices) || !are_alone(o) ||
	    !is_seldom(&adv->iterations))
		return 0;
	o->plain = 0;
	adv->iterations.op_serial++;
	adv->iterations.beside++;
	e.op = um_op_state_op(o, UM_STREAM_CPU, info);
	um_sinks_trace(&adv->sinks, &e, NULL);
	take(adv);
	o->n_cpu++;
	return 1;
}
