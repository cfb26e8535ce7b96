/* SPDX-License-Identifier: Apache-2.0
 *
 * context_relaunch.c - launches ops again, as the plan says or earlier
 *
 * Whenever a call of the program returns, each tensor with UM_TENSOR_AGAIN has a relaunch to come in the plan that is
 * followed. If the program leaves the plan, frees what a relaunch reads, or accesses memory from the CPU, all such
 * content is made anew at once. A launch is called without the context's lock, since it may call the library;
 * meanwhile other threads wait.
 */
#include "runtime/context.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define RETRIES 100 /* of a launch that fails, each after all work of the stream */

/* The live tensor of a slot, or NULL. */
static struct um_tensor *tensor_of(const struct umadv *adv, uint32_t slot)
{
	const struct um_cursor_slot *s = &adv->replan.cursor.slots[slot];
	struct um_tensor *t = s->id.v ? um_registry_find(&adv->tensors.registry, s->addr) : NULL;

	while (t && t->id.v != s->id.v)
		t = t->parent;
	return t;
}

static const struct um_closure *closure_of(const struct umadv *adv, uint32_t launch)
{
	uint32_t op = adv->replan.relaunches.again.at[launch] - 1;

	return op < adv->iterations.ops && op < adv->iterations.closures.n ? &adv->iterations.closures.at[op] : NULL;
}

/* --- a relaunch --------------------------------------------------------------------------------------------------- */

/* Announces the relaunch's uses. 0 or -ENOMEM. */
static int begin(struct umadv *adv, uint32_t launch)
{
	const struct um_schedule *s = adv->replan.cursor.sched;
	const struct um_sched_op *op = &s->ops.at[launch];
	struct um_relaunches *r = &adv->replan.relaunches;

	um_vec_clear(&r->uses);
	for (uint32_t k = op->first_use; k < op->first_use + op->n_uses; k++) {
		const struct um_sched_use *u = &s->uses.at[k];
		struct um_tensor *t = tensor_of(adv, u->slot);

		if (t && um_vec_push(&r->uses, ((struct um_use){.id = t->id,
								.tensor = t,
								.off = u->off,
								.bytes = u->bytes,
								.touched = u->touched,
								.access = u->access})))
			return -ENOMEM;
	}
	adv->op.name = op->name;
	adv->op.stream = adv->tensors.pool.streams.at[op->stream].handle;
	adv->op.uses = r->uses.at;
	adv->op.n_uses = (uint32_t)r->uses.n;
	adv->op.begins = 0;
	return 0;
}

/* Before the next op: what was dropped since the last one has its content still. */
static void check_dropped(struct umadv *adv)
{
	const struct um_relaunches *r = &adv->replan.relaunches;

	for (size_t i = 0; adv->checking.on && i < r->open.n; i++) {
		const struct um_relaunch_gap *g = &r->gaps.at[r->open.at[i]];
		const struct um_sched_op *op = &adv->replan.cursor.sched->ops.at[g->to];
		const struct um_tensor *t = tensor_of(adv, g->slot);

		if (t)
			um_content_check_dropped(&adv->contents, adv->device.gpu,
						 adv->tensors.pool.streams.at[op->stream].handle, t);
	}
}

/* The content of what a relaunch writes is needed from now on, and complete after its group. */
static void close_gaps(struct umadv *adv, uint32_t launch)
{
	struct um_relaunches *r = &adv->replan.relaunches;
	const struct um_schedule *s = adv->replan.cursor.sched;
	size_t n = 0;

	for (size_t i = 0; i < r->open.n; i++) {
		const struct um_relaunch_gap *g = &r->gaps.at[r->open.at[i]];
		struct um_tensor *t = tensor_of(adv, g->slot);

		if (t && launch == g->first)
			t->flags &= ~(unsigned)UM_TENSOR_AGAIN;
		if (launch != g->to)
			r->open.at[n++] = r->open.at[i];
		else if (t && adv->checking.on)
			um_content_check_made(&adv->contents, adv->device.gpu,
					      adv->tensors.pool.streams.at[s->ops.at[launch].stream].handle, t,
					      s->ops.at[g->made].name, adv->iterations.n - 1);
	}
	r->open.n = n;
}

/* Calls the launch, without the lock. */
static int call(struct umadv *adv, const struct um_closure *c, um_stream stream, unsigned *failed)
{
	struct um_gpu *gpu = adv->device.gpu;
	int code = c->fn(c->arg, stream);

	for (*failed = 0; code && *failed < RETRIES; ++*failed) {
		gpu->api->cudaStreamSynchronize(gpu, stream);
		code = c->fn(c->arg, stream);
	}
	return code;
}

/* Waits for the hints of the relaunch and launches it; `c` NULL: its content is there. */
static void launch_again(struct umadv *adv, uint32_t launch, const struct um_closure *c)
{
	struct um_executor *ex = adv->replan.executor;
	um_stream stream = adv->op.stream;
	struct um_op_wait w = {.begins = 0};
	int waits = ex && um_executor_take_wait(ex, stream, &w.hints), code = 0;
	const char *name = adv->op.name;
	unsigned failed = 0;

	adv->relaunching = um_app_stream_thread();
	um_context_unlock(adv);
	if (waits)
		um_context_wait(adv, &w);
	if (c)
		code = call(adv, c, stream, &failed);
	um_context_lock(adv);
	adv->relaunching = 0;
	if (!c)
		return;
	adv->n_relaunches++;
	adv->n_relaunch_errors += failed;
	close_gaps(adv, launch);
	if (failed && !adv->no_relaunches) {
		adv->no_relaunches = 1;
		um_notices_log(&adv->notices, UMADV_LOG_WARN,
			       "launching '%s' again failed: nothing is launched again from now on", name);
	}
	if (code)
		um_notices_log(&adv->notices, UMADV_LOG_ERROR, "launching '%s' again failed: what it writes is lost",
			       name);
	adv->content_lost |= code != 0;
}

/* Launches outside the plan. */
static void launch_early(struct umadv *adv, uint32_t launch)
{
	const struct um_sched_op *op = &adv->replan.cursor.sched->ops.at[launch];

	if (begin(adv, launch))
		adv->notices.errors++; /* fewer uses are known: it waits for all discards */
	um_context_announce(adv, &op->cost);
	if (adv->replan.executor)
		um_executor_guard_all(adv->replan.executor, (unsigned)op->stream);
	launch_again(adv, launch, closure_of(adv, launch));
}

/* --- all at once -------------------------------------------------------------------------------------------------- */

static int lost(struct umadv *adv)
{
	int is = adv->content_lost;

	adv->content_lost = 0;
	return is ? -EIO : 0;
}

/* `op`: the op at hand is launched after this. */
static int restore(struct umadv *adv, int op)
{
	struct um_relaunches *r = &adv->replan.relaunches;
	struct um_op_state *o = &adv->op;
	const struct um_op_state was = *o;
	uint32_t launch, done = 0;
	um_stream stream;

	um_assert_locked(adv);
	if (!r->open.n || adv->relaunching)
		return lost(adv);
	check_dropped(adv);
	um_context_leave(adv);
	stream = adv->tensors.pool.streams.at[adv->replan.cursor.sched->ops.at[0].stream].handle;
	while ((launch = um_relaunches_next(r, done)) != UINT32_MAX) {
		done = r->again.at[launch];
		launch_early(adv, launch);
	}
	o->name = was.name;
	o->stream = was.stream;
	o->uses = was.uses;
	o->n_uses = was.n_uses;
	o->begins = was.begins;
	o->plain = 0;
	if (op && was.announced)
		um_context_announce(adv, &was.cost); /* the latest announcement is that of a relaunch */
	adv->relaunching = um_app_stream_thread();
	um_context_unlock(adv);
	adv->device.gpu->api->cudaStreamSynchronize(adv->device.gpu, stream); /* other streams, or the CPU, are next */
	um_context_lock(adv);
	adv->relaunching = 0;
	return lost(adv);
}

int um_context_restore(struct umadv *adv)
{
	return restore(adv, 0);
}

/* --- before and after calls --------------------------------------------------------------------------------------- */

void um_context_await_relaunch(struct umadv *adv)
{
	const struct timespec pause = {.tv_nsec = 20000};

	while (adv->relaunching && adv->relaunching != um_app_stream_thread()) {
		um_context_unlock(adv);
		nanosleep(&pause, NULL);
		um_context_lock(adv);
	}
}

/* Is a gap of the relaunch's group open? */
static int is_open(const struct um_relaunches *r, uint32_t launch)
{
	for (size_t i = 0; i < r->open.n; i++)
		if (r->group.at[r->gaps.at[r->open.at[i]].to] == r->group.at[launch])
			return 1;
	return 0;
}

/* May all ops of the group that ends with a relaunch be launched again? */
static int may_launch(const struct umadv *adv, uint32_t to)
{
	const struct um_relaunches *r = &adv->replan.relaunches;

	for (uint32_t i = r->group.at[to] - 1; i <= to; i++) {
		const struct um_closure *c = closure_of(adv, i);

		if (r->group.at[i] == r->group.at[to] && (!c || !c->fn))
			return 0;
	}
	return 1;
}

/* Begins the gaps after the latest launch. */
static void open_gaps(struct umadv *adv)
{
	struct um_relaunches *r = &adv->replan.relaunches;
	uint32_t at = adv->replan.cursor.op - 1;

	if (adv->no_relaunches || r->done == at + 1)
		return; /* or the op was ignored */
	if (r->done > at)
		r->next = 0; /* another iteration */
	r->done = at + 1;
	while (r->next < r->gaps.n && r->gaps.at[r->next].from < at)
		r->next++;
	for (; r->next < r->gaps.n && r->gaps.at[r->next].from == at; r->next++) {
		const struct um_relaunch_gap *g = &r->gaps.at[r->next];
		struct um_tensor *t = tensor_of(adv, g->slot);

		if (!may_launch(adv, g->to) || !t || t->parent || t->n_children || t->flags & UM_TENSOR_ADOPTED)
			continue;
		t->flags |= UM_TENSOR_AGAIN;
		r->open.at[r->open.n++] = r->next; /* there is room for all */
	}
}

/* Does the op at hand read content that was dropped? By a sound plan it does not. */
static int reads_dropped(const struct umadv *adv)
{
	for (const struct um_use *u = adv->op.uses; u < adv->op.uses + adv->op.n_uses; u++)
		for (const struct um_tensor *t = u->tensor; t && u->access & UM_READ; t = t->parent)
			if (t->flags & UM_TENSOR_AGAIN)
				return 1;
	return 0;
}

/* The plan's relaunch is due. */
static void launch_planned(struct umadv *adv)
{
	struct um_replan *r = &adv->replan;
	struct um_cursor *c = &r->cursor;
	uint32_t launch = c->op;
	const struct um_sched_op *op = &c->sched->ops.at[launch];
	int runs = is_open(&r->relaunches, launch);

	if (begin(adv, launch) || reads_dropped(adv)) {
		adv->notices.errors++;
		um_context_leave(adv);
		return;
	}
	if (runs)
		um_context_announce(adv, &op->cost);
	um_cursor_advance(c);
	if (um_executor_op(r->executor, launch, (unsigned)op->stream, c, adv->op.uses, adv->op.n_uses))
		um_context_leave(adv);
	launch_again(adv, launch, runs ? closure_of(adv, launch) : NULL);
	if (um_replan_hints(r))
		open_gaps(adv);
}

/* Several threads: the others' calls may come between an op and its launch. */
static int must_stop(struct umadv *adv)
{
	adv->op.thread = um_pending_launches_call(&adv->pending);
	adv->no_relaunches |= adv->pending.shared;
	return adv->no_relaunches;
}

void um_context_before_op(struct umadv *adv)
{
	struct um_replan *r = &adv->replan;
	struct um_cursor *c = &r->cursor;

	um_assert_locked(adv);
	um_context_await_relaunch(adv);
	check_dropped(adv);
	if (must_stop(adv) && r->relaunches.open.n)
		um_context_leave(adv);
	while (c->on && c->op < r->relaunches.again.n && r->relaunches.again.at[c->op]) {
		if (um_replan_hints(r))
			launch_planned(adv);
		else
			um_cursor_advance(c);
		check_dropped(adv);
		if (must_stop(adv) && r->relaunches.open.n)
			um_context_leave(adv);
	}
}

int um_context_after_op(struct umadv *adv)
{
	um_assert_locked(adv);
	if (!um_replan_hints(&adv->replan) || reads_dropped(adv))
		return restore(adv, 1);
	if (adv->replan.cursor.op)
		open_gaps(adv);
	return lost(adv);
}

int um_context_after_wait(struct umadv *adv)
{
	return um_replan_hints(&adv->replan) ? 0 : restore(adv, 1);
}

int um_context_after_event(struct umadv *adv)
{
	return um_replan_hints(&adv->replan) ? 0 : restore(adv, 0);
}

/* Does a relaunch to come use memory of [addr, end)? */
static int is_needed(const struct umadv *adv, uint64_t addr, uint64_t end)
{
	const struct um_relaunches *r = &adv->replan.relaunches;

	for (uint32_t i = 0; i < r->last.n; i++) {
		const struct um_tensor *t = r->last.at[i] > adv->replan.cursor.op ? tensor_of(adv, i) : NULL;

		if (t && t->addr < end && t->addr + t->bytes > addr)
			return 1;
	}
	return 0;
}

void um_context_before_end(struct umadv *adv, const void *ptr)
{
	const struct um_tensor *t = um_registry_find(&adv->tensors.registry, (uint64_t)(uintptr_t)ptr);

	um_assert_locked(adv);
	um_context_await_relaunch(adv);
	while (t && t->parent)
		t = t->parent;
	if (t && adv->replan.relaunches.open.n && is_needed(adv, t->addr, t->addr + t->bytes))
		adv->content_lost = um_context_restore(adv) != 0; /* the next op says so */
}

void um_context_before_iter(struct umadv *adv)
{
	um_assert_locked(adv);
	um_context_await_relaunch(adv);
	adv->content_lost = um_context_restore(adv) != 0;
	um_content_check_report(&adv->contents, &adv->tensors.registry, &adv->notices);
	if (!adv->no_relaunches && !adv->contents.refuses_more)
		return;
	adv->contents.refuses_more = 0;
	um_replan_forget(&adv->replan);
	um_context_forget_uses(adv);
}
