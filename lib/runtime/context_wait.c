/* SPDX-License-Identifier: Apache-2.0
 *
 * context_wait.c - waits of announced ops for their hints, without the context's lock
 */
#include "runtime/context.h"

/* What comes before the launch on the op's stream, after all that the stream waits for. `last`: no op was announced
 * since. */
static void begin_launch(struct umadv *adv, um_stream stream, int64_t timed, int prefetches, int last)
{
	if (prefetches && last && adv->on_use.give)
		um_on_use_op(&adv->on_use, stream, adv->op.uses, adv->op.n_uses);
	if (timed >= 0)
		um_op_timer_start_op(&adv->replan.timer, stream, (uint32_t)timed);
}

int um_context_take_wait(struct umadv *adv, struct um_op_wait *out)
{
	const struct um_op_state *o = &adv->op;

	if (!adv->replan.executor || !um_executor_take_wait(adv->replan.executor, o->stream, &out->hints)) {
		if (o->prefetches || o->timed >= 0)
			begin_launch(adv, o->stream, o->timed, o->prefetches, 1);
		return 0;
	}
	out->serial = adv->iterations.op_serial;
	out->prefetches = o->prefetches;
	out->timed = o->timed;
	return 1;
}

/* An op may not start before a discard of what it writes is over. If such a discard is late, those that have not begun
 * are dropped, so that only calls in progress are waited for. */
static void __attribute__((cold)) drop(struct umadv *adv, const struct um_executor_wait *wait)
{
	struct um_executor *executor = wait->executor;
	struct um_executor_wait rest = *wait;

	um_context_lock(adv);
	if (adv->replan.executor == executor) {
		um_context_leave(adv);
		um_executor_leave(executor);
		um_executor_cancel(executor);
	}
	um_context_unlock(adv);
	rest.need.ins = 0;
	while (um_executor_wait(&rest))
		;
}

void um_context_wait(struct umadv *adv, const struct um_op_wait *w)
{
	if (um_executor_wait(&w->hints))
		drop(adv, &w->hints);
	if (!w->prefetches && w->timed < 0)
		return;
	um_context_lock(adv);
	begin_launch(adv, w->hints.handle, w->timed, w->prefetches, adv->iterations.op_serial == w->serial);
	um_context_unlock(adv);
}
