/* SPDX-License-Identifier: Apache-2.0
 *
 * op.c - an op is announced: ranges become tensors, who listens hears of it, hints that are due go out
 */
#include "runtime/context.h"
#include "runtime/mistakes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct umadv_use) == 4 * sizeof(void *) + 2 * sizeof(unsigned), "uses are compared as bytes");

static unsigned add_stream(struct umadv *adv, um_stream stream)
{
	unsigned i = adv->pool.streams.n;

	if (um_arena_pool_add_stream(&adv->pool, stream))
		adv->stats.errors++;
	if (adv->executor && um_executor_crowded(adv->executor))
		um_context_leave(adv);
	return i;
}

/* The stream's number in order of appearance. */
static inline unsigned find_stream(struct umadv *adv, um_stream stream)
{
	unsigned i = um_app_streams_find(&adv->pool.streams, stream);

	return i < adv->pool.streams.n ? i : add_stream(adv, stream);
}

/* Is this the op that the schedule has next, on tensors that are who they are expected to be? Then nothing is looked
 * up. */
static const struct um_sched_op *expected(struct umadv *adv, int32_t stream, const char *name,
					  const struct umadv_op_info *info)
{
	struct um_cursor *c = &adv->cursor;
	const struct um_sched_op *so = um_cursor_next(c);

	if (!so || so->n_uses != info->n_uses || so->stream != stream || so->first_use >= adv->known.found.n ||
	    strcmp(so->name, name) != 0)
		return NULL;

	const struct um_sched_use *su = &c->sched->uses.at[so->first_use];
	const struct umadv_use *is = info->uses, *end = is + so->n_uses, *was = &adv->known.given.at[so->first_use];
	const struct um_use *found = &adv->known.found.at[so->first_use];

	adv->uses = found;
	adv->n_uses = so->n_uses;
	if (is < end && !found->id.v)
		return NULL;
	for (; is < end; is++, was++, su++, found++)
		if (memcmp(is, was, sizeof *is) != 0 || !um_cursor_holds(c, su, found))
			return NULL;
	return so;
}

/* The op that was looked up was the schedule's number `op`: it need not be next time. */
static void remember(struct umadv *adv, uint32_t op, const struct umadv_op_info *info)
{
	const struct um_schedule *s = adv->cursor.sched;
	const struct um_sched_op *so = &s->ops.at[op];

	if (info->n_uses != so->n_uses || um_vec_fill(&adv->known.given, s->uses.n) ||
	    um_vec_fill(&adv->known.found, s->uses.n))
		return;
	for (uint32_t i = 0; i < so->n_uses; i++) {
		adv->known.given.at[so->first_use + i] = info->uses[i];
		adv->known.found.at[so->first_use + i] = adv->uses[i];
	}
}

static int add_use(struct umadv *adv, const struct umadv_use *given)
{
	uint64_t addr = (uint64_t)(uintptr_t)given->ptr;
	struct um_tensor *t;

	if (given->reserved || given->reserved_more) {
		um_mistake_reserved(adv);
		return -EINVAL;
	}
	t = um_registry_find(&adv->registry, addr);
	while (t && given->bytes > t->bytes - (addr - t->addr) && t->parent)
		t = t->parent;
	if (!t) {
		um_mistake_pointer(adv, given->ptr);
		return 0;
	}
	struct um_use u = {.id = t->id, .tensor = t, .off = addr - t->addr, .access = given->access & UM_UPDATE};

	u.bytes = given->bytes ? given->bytes : t->bytes - u.off;
	u.touched = given->touched && given->touched < u.bytes ? given->touched : u.bytes;
	if (!u.access)
		um_mistake_access(adv, t, given->access);
	else if (u.bytes > t->bytes - u.off)
		um_mistake_range(adv, t, u.off, u.bytes);
	if (!u.access || u.bytes > t->bytes - u.off)
		return -EINVAL;
	for (size_t k = 0; k < adv->resolved.n; k++) {
		struct um_use *old = &adv->resolved.at[k];

		if (old->id.v == u.id.v && old->off == u.off && old->bytes == u.bytes) {
			old->access |= u.access;
			return 0;
		}
	}
	return um_vec_push(&adv->resolved, u);
}

/* Resolves the app's ranges to tensors; the same range named twice is one use. */
static int resolve(struct umadv *adv, const struct umadv_use *uses, size_t n)
{
	int err = 0;

	um_vec_clear(&adv->resolved);
	for (size_t i = 0; i < n && !err; i++)
		err = add_use(adv, &uses[i]);
	adv->uses = adv->resolved.at;
	adv->n_uses = (uint32_t)adv->resolved.n;
	return err;
}

static int resolve_outs(struct umadv *adv, const struct umadv_op_info *info)
{
	um_vec_clear(&adv->outs);
	for (size_t i = 0; i < info->n_relaunch_outs; i++) {
		struct um_tensor *t = um_registry_find(&adv->registry, (uint64_t)(uintptr_t)info->relaunch_outs[i]);

		if (t && um_vec_push(&adv->outs, t->id))
			return -ENOMEM;
	}
	return 0;
}

/* Keeps the closure of op number `i` of the iteration, in the memory of the one that stood there before. */
static int keep_closure(struct umadv *adv, uint32_t i, const struct umadv_op_info *info)
{
	if (!adv->iteration)
		return 0; /* set-up is never launched again, and a program that marks no iterations has no end of it */
	if (adv->recorder.too_long)
		return 0;
	if (i == adv->closures.n && um_vec_push(&adv->closures, (struct um_closure){0}))
		return -ENOMEM;
	struct um_closure *c = &adv->closures.at[i];

	c->fn = NULL;
	if (!info->relaunch)
		return 0;
	if (info->relaunch_arg_bytes > c->cap) {
		void *p = realloc(c->arg, info->relaunch_arg_bytes);

		if (!p)
			return -ENOMEM;
		c->arg = p;
		c->cap = info->relaunch_arg_bytes;
	}
	if (info->relaunch_arg_bytes)
		memcpy(c->arg, info->relaunch_arg, info->relaunch_arg_bytes);
	c->bytes = info->relaunch_arg_bytes;
	c->fn = info->relaunch;
	return 0;
}

/* A simulated device is told what the kernel that follows will touch. */
static void announce(struct umadv *adv, um_stream stream, const struct um_cost *cost)
{
	double touched = um_uses_touched(adv->uses, adv->n_uses);
	struct um_announcement next = {.ns = um_profile_op_ns(&adv->profile, cost, touched)};

	um_vec_clear(&adv->touches);
	if (um_vec_reserve(&adv->touches, (size_t)adv->n_uses + 1)) {
		adv->stats.errors++;
		return;
	}
	for (uint32_t i = 0; i < adv->n_uses; i++) {
		const struct um_use *u = &adv->uses[i];

		adv->touches.at[adv->touches.n++] =
			(struct um_touch){.ptr = (void *)(uintptr_t)(u->tensor->addr + u->off),
					  .bytes = u->bytes,
					  .touched = u->touched,
					  .access = u->access};
	}
	next.touch = adv->touches.at;
	next.n = (uint32_t)adv->touches.n;
	int code = adv->gpu->api->announce(adv->gpu, stream, &next);

	if (code == UM_CUDA_NO_MEMORY)
		adv->stats.errors++;
	else if (code)
		um_mistake_stream(adv, stream, code);
}

void um_context_on_use(void *user, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream)
{
	struct umadv *adv = user;
	int telling = um_activity_source_on(&adv->telling), in = kind == UM_ACTION_PREFETCH;
	struct um_location to = in ? um_on_device(adv->gpu->caps.device) : um_on_host();
	struct um_hint_given h = {.kind = kind, .addr = addr, .bytes = bytes, .op = adv->op_serial - 1};

	if (!in)
		um_context_clip(adv, &h.addr, &h.bytes);
	if (!h.bytes)
		return;
	h.begin = telling ? um_activity_source_now(&adv->telling) : 0;
	h.code = adv->gpu->api->cudaMemPrefetchAsync(adv->gpu, (void *)(uintptr_t)h.addr, h.bytes, to, 0, stream);
	if (telling) {
		h.end = um_activity_source_now(&adv->telling);
		um_activity_source_hint(&adv->telling, &h);
	}
	if (h.code) {
		adv->stats.hints_refused++;
		return;
	}
	adv->stats.hints_issued++;
	*(in ? &adv->stats.prefetch_bytes : &adv->stats.evict_bytes) += h.bytes;
	adv->hinted = 1;
}

void um_context_forget_uses(struct umadv *adv)
{
	um_recorder_settle(&adv->recorder);
	um_vec_clear(&adv->known.given);
	um_vec_clear(&adv->known.found);
}

/* The first op of an iteration fits: from here on the program runs. */
static void take_up(struct umadv *adv)
{
	struct um_executor_range *used;
	size_t n = um_context_used(adv, &used);

	adv->adopt = 0;
	um_context_forget_uses(adv);
	if (!used ||
	    um_executor_adopt(adv->executor, &adv->program, adv->budget / UM_BLOCK_BYTES, used, n, &adv->cursor))
		adv->stats.errors++;
	else
		adv->stats.plans++;
	free(used);
}

/* The cursor goes on by this op, or the schedule is left. */
static void advance(struct umadv *adv, const struct um_op *op, const struct umadv_op_info *info)
{
	struct um_cursor *c = &adv->cursor;

	if (!c->on || !c->sched)
		return;
	if (!info) {
		um_cursor_pass(c);
	} else if (!um_cursor_op(c, op)) {
		remember(adv, c->op - 1, info);
	} else {
		um_context_leave(adv);
		return;
	}
	if (adv->adopt && c->op == 1)
		take_up(adv);
}

/* `info`: of an op that had to be looked up; NULL: it is known to be the schedule's next. */
static void replay(struct umadv *adv, const struct um_op *op, unsigned stream, const struct umadv_op_info *info)
{
	struct um_cursor *c = &adv->cursor;

	if (info || adv->adopt) /* what the plan knows of is not against its advice */
		um_executor_use(adv->executor, adv->uses, adv->n_uses);
	advance(adv, op, info);
	if (!um_executor_active(adv->executor)) {
		um_executor_leave(adv->executor); /* of a program that ended with the iteration before */
		return;
	}
	adv->hinted = 1;
	if (um_executor_op(adv->executor, c->op - 1, stream, c))
		um_context_leave(adv);
	else
		um_executor_guard(adv->executor, stream, adv->uses, adv->n_uses);
}

/* What is captured does not run now, and a call on a capturing stream would become part of the graph, or spoil it. */
static int capturing(struct umadv *adv, um_stream stream)
{
	int status = 0, code = adv->gpu->api->cudaStreamIsCapturing(adv->gpu, stream, &status);

	if (code && code != UM_CUDA_CAPTURING && code != UM_CUDA_CAPTURE_IMPLICIT) {
		um_mistake_stream(adv, stream, code);
		return 0;
	}
	if (!code && !status)
		return 0;
	adv->stats.captured++;
	um_context_warn(adv, UM_WARN_CAPTURE,
			"ops are announced on a stream that is being captured: ignored. "
			"Announce the launch of the graph");
	return 1;
}

/* Whoever listens hears of the op; where it is `known`, the recorder has been told. */
static void hear(struct umadv *adv, const struct um_op *op, um_stream stream, int known)
{
	struct um_event e = {.kind = UM_EV_OP, .op = *op};

	if (adv->gpu->api->announce)
		announce(adv, stream, &op->cost);
	if (adv->checking.on)
		um_checking_op(&adv->checking, stream, op->name);
	if (known)
		um_context_trace(adv, &e, stream);
	else
		um_context_feed(adv, &e, stream);
	if (!um_activity_source_on(&adv->telling))
		return;
	um_activity_source_op(&adv->telling, adv->op_serial - 1, op);
	if (adv->executor)
		um_executor_number(adv->executor, adv->op_serial - 1);
}

/* By others than the recorder. */
static inline int listened(const struct umadv *adv)
{
	return adv->gpu->api->announce || adv->tracing.writer || um_activity_source_on(&adv->telling);
}

/* An op that the schedule has next: the recorder takes it as that. 0: it does not. */
static int pass(struct umadv *adv, const struct um_sched_op *so, const struct umadv_op_info *info)
{
	struct um_iter_op *kept;

	if (info->relaunch && adv->outs.n)
		return 0; /* the hash says nothing of those */
	kept = um_recorder_pass(&adv->recorder, so->hash, adv->uses, adv->n_uses);
	if (!kept)
		return 0;
	kept->cost = (struct um_cost){info->flops, info->bytes, info->ns};
	kept->phase = info->phase;
	kept->relaunchable = info->relaunch != NULL;
	return 1;
}

static struct um_op spell_out(const struct umadv *adv, int32_t stream, const char *name,
			      const struct umadv_op_info *info)
{
	return (struct um_op){
		.name = name,
		.uses = adv->uses,
		.n_uses = adv->n_uses,
		.cost = {info->flops, info->bytes, info->ns},
		.stream = stream,
		.phase = info->phase,
		.relaunch = adv->outs.at,
		.n_relaunch = info->relaunch ? (uint32_t)adv->outs.n : 0,
		.relaunchable = info->relaunch != NULL,
	};
}

/* Who is this on? 0, -EINVAL; -ENOMEM: the op is not seen, and what is learned of this iteration is worth nothing. */
static int look_up(struct umadv *adv, const struct umadv_op_info *info, int known)
{
	int err = known ? 0 : resolve(adv, info->uses, info->n_uses);

	if (!err && info->relaunch)
		err = resolve_outs(adv, info);
	if (!err)
		err = keep_closure(adv, adv->iter_ops, info);
	if (err == -ENOMEM) {
		adv->stats.errors++;
		adv->recorder.it.incomplete = 1;
		um_context_leave(adv);
		if (adv->executor)
			um_executor_leave(adv->executor);
	}
	return err;
}

int um_context_op(struct umadv *adv, um_stream stream, const char *name, const struct umadv_op_info *info)
{
	const struct um_sched_op *known;
	struct um_op op;
	unsigned number;
	int err, passed;

	name = name ? name : "op";
	adv->op_name = name;
	if (capturing(adv, stream))
		return 0;
	number = find_stream(adv, stream);
	known = expected(adv, (int32_t)number, name, info);
	err = look_up(adv, info, known != NULL);
	if (err)
		return err == -ENOMEM ? 0 : err;
	adv->op_serial++;
	adv->iter_ops++;
	passed = known && pass(adv, known, info);
	if (!passed || listened(adv)) {
		op = spell_out(adv, (int32_t)number, name, info);
		hear(adv, &op, stream, passed);
	}
	if (adv->stopwatch.state == UM_OP_TIMER_RUNS)
		um_op_timer_stop_op(&adv->stopwatch, stream);
	if (adv->executor)
		replay(adv, &op, number, known ? NULL : info);
	else if (adv->options.strategy == UM_STRATEGY_PREFETCH_ON_USE && adv->gpu->caps.concurrent_managed)
		um_on_use_op(&adv->on_use, stream, adv->uses, adv->n_uses);
	for (const struct um_use *u = adv->uses, *end = u + adv->n_uses; u < end; u++) {
		u->tensor->used_op = adv->op_serial;
		u->tensor->flags &= ~(unsigned)UM_TENSOR_DEAD;
	}
	if (++adv->stats.ops == UM_OPS_OUTSIDE && !adv->iteration && adv->executor)
		um_mistake_no_iteration(adv);
	if (adv->stopwatch.state == UM_OP_TIMER_RUNS && adv->cursor.on)
		um_op_timer_start_op(&adv->stopwatch, stream, adv->cursor.op - 1);
	if (adv->tracing.writer)
		um_trace_sink_launch(&adv->tracing);
	return 0;
}

int um_context_run(struct umadv *adv, um_stream stream, void (*fn)(void *), void *arg)
{
	struct um_sim_kernel k = {.announced = 1, .fn = fn, .arg = arg};

	if (!adv->simulated)
		return -ENODEV;
	struct um_checked_run *run = um_checking_launch(&adv->checking, &adv->registry, stream, &k);
	int code = adv->gpu->api->simulation->run(adv->gpu, stream, &k);

	if (code)
		um_checking_cancel(&adv->checking, run);
	um_checking_tell(adv);
	return code == UM_CUDA_NO_MEMORY ? -ENOMEM : code ? -EIO : 0;
}

int um_context_finish(struct umadv *adv)
{
	if (!adv->simulated)
		return -ENODEV;
	int code = adv->gpu->api->simulation->sync(adv->gpu);

	um_checking_tell(adv);
	return code ? -EIO : 0;
}
