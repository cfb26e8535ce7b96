/* SPDX-License-Identifier: Apache-2.0
 *
 * context_wait.c - waits of announced ops for their hints, without the context's lock
 */
#include "runtime/context.h"

enum um_op_prefetches um_context_find_prefetches(const struct umadv *adv)
{
	const struct um_op_state *o = &adv->op;

	if (adv->replan.begins && adv->replan.cursor.n_rebound > adv->replan.cursor.n_supplied)
		return UM_OP_PREFETCHES_ALL;
	for (uint32_t i = 0; (adv->replan.absent || adv->replan.taken) && i < o->n_uses; i++)
		if (o->uses[i].tensor->absent)
			return UM_OP_PREFETCHES_ABSENT;
	return UM_OP_PREFETCHES_NONE;
}

/* The range of the tensor with this id, if it is still alive. */
static struct um_executor_range range_of(const struct umadv *adv, const struct um_cursor_slot *s)
{
	const struct um_tensor *t = s->addr == UINT64_MAX ? NULL : um_registry_find(&adv->tensors.registry, s->addr);

	while (t && t->id.v != s->id.v)
		t = t->parent;
	return t ? (struct um_executor_range){t->addr, t->bytes} : (struct um_executor_range){0};
}

int um_context_replace(struct umadv *adv)
{
	const struct um_cursor *c = &adv->replan.cursor;
	size_t first;

	if (!c->n_replaced || adv->replan.begins)
		return 0;
	first = c->sched->ops.at[c->op - 1].first_use;
	for (uint32_t i = 0; i < adv->op.n_uses; i++) {
		const struct um_cursor_slot *was = um_cursor_replaced(c, first + i);
		const struct um_tensor *t = adv->op.uses[i].tensor;

		if (was && um_executor_replace(adv->replan.executor, range_of(adv, was),
					       (struct um_executor_range){t->addr, t->bytes}))
			return -EAGAIN;
	}
	return 0;
}

static void prefetch_absent(struct umadv *adv, um_stream stream)
{
	for (const struct um_use *u = adv->op.uses; u < adv->op.uses + adv->op.n_uses; u++) {
		if (!u->tensor->absent)
			continue;
		u->tensor->absent = 0;
		um_context_issue_hint(adv, UM_ACTION_PREFETCH, u->tensor->addr, u->tensor->bytes, stream);
	}
}

/* What comes before the launch on the op's stream, after all that the stream waits for. `last`: no op was announced
 * since. */
static void begin(struct umadv *adv, um_stream stream, const struct um_op_wait *w, int last)
{
	if (w->prefetches == UM_OP_PREFETCHES_ALL && last && adv->on_use.give)
		um_on_use_op(&adv->on_use, stream, adv->op.uses, adv->op.n_uses);
	else if (w->prefetches == UM_OP_PREFETCHES_ABSENT && last)
		prefetch_absent(adv, stream);
	if (w->timed >= 0)
		um_op_timer_start_op(&adv->replan.times.timer, stream, (uint32_t)w->timed);
}

void um_context_take_begin(struct umadv *adv, struct um_op_wait *out, int waits)
{
	out->serial = adv->iterations.op_serial;
	out->prefetches = adv->op.prefetches;
	out->timed = adv->op.timed;
	if (!waits)
		begin(adv, adv->op.stream, out, 1);
}

void um_context_begin_op(struct umadv *adv, const struct um_op_wait *w)
{
	um_context_lock(adv);
	begin(adv, w->hints.handle, w, adv->iterations.op_serial == w->serial);
	um_context_unlock(adv);
}

void um_context_wait_again(struct umadv *adv, const struct um_executor_wait *w)
{
	struct um_executor_wait rest = *w;

	um_context_lock(adv);
	if (adv->replan.executor == w->executor) {
		um_replan_stall(&adv->replan, adv->iterations.n - 1);
		um_executor_leave(w->executor);
		um_executor_cancel(w->executor);
	}
	um_context_unlock(adv);
	rest.need.ins = 0;
	while (um_executor_wait(&rest))
		;
}
