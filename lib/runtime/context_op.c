/* SPDX-License-Identifier: Apache-2.0
 *
 * context_op.c - processes an announced op: finds its tensors, reports it, issues the hints that are due
 */
#include "gpu/nvtx_listen.h"
#include "runtime/context.h"
#include "runtime/mistakes.h"

#include <errno.h>

/* A stream that has had no op for so long gives up its number to a new one, once its work is complete. */
#define RETIRED_OPS 4096

static void forget_stream(struct umadv *adv, unsigned i)
{
	um_arena_pool_forget_stream(&adv->tensors.pool, i);
	if (adv->replan.executor)
		um_executor_forget_stream(adv->replan.executor, i);
}

static void retire_streams(struct umadv *adv)
{
	uint64_t serial = adv->iterations.op_serial, since = serial > RETIRED_OPS ? serial - RETIRED_OPS : 0;
	unsigned retired = um_arena_pool_retire_streams(&adv->tensors.pool, since);

	for (unsigned i = 0; retired && adv->replan.executor && i < UM_APP_STREAMS; i++)
		if (retired >> i & 1)
			um_executor_forget_stream(adv->replan.executor, i);
}

static unsigned __attribute__((cold)) add_stream(struct umadv *adv, um_stream stream)
{
	struct um_app_streams *streams = &adv->tensors.pool.streams;
	unsigned i;

	if (um_app_streams_spare(streams) >= UM_EXECUTOR_STREAMS)
		retire_streams(adv);
	if (um_arena_pool_add_stream(&adv->tensors.pool, stream, &i))
		adv->notices.errors++;
	if (adv->replan.executor && um_executor_too_many_streams(adv->replan.executor))
		um_context_leave(adv);
	return i;
}

/* Handle 0 was passed by no other thread, or by one: then ops of this thread wait for memory that was used again. */
static void __attribute__((cold)) share_null(struct umadv *adv)
{
	struct um_app_streams *streams = &adv->tensors.pool.streams;

	streams->null_shared = streams->null_thread != 0;
	streams->null_thread = adv->op.thread;
	if (streams->null_shared && um_arena_pool_share_null(&adv->tensors.pool))
		adv->notices.errors++;
}

/* The handle names another stream than it did before. */
static unsigned __attribute__((cold)) replace_stream(struct umadv *adv, um_stream stream, unsigned i)
{
	um_notices_warn(&adv->notices, UM_WARN_DESTROYED,
			"a stream was destroyed without umadv_forget_stream: its operations are taken as complete");
	forget_stream(adv, i);
	return add_stream(adv, stream);
}

/* Freed memory waits for the stream's work so far: events on it come before the op. */
static void __attribute__((cold)) name_due(struct umadv *adv, unsigned i)
{
	if (um_arena_pool_name_stream(&adv->tensors.pool, i))
		adv->notices.errors++;
}

/* The stream's number. */
static inline unsigned find_stream(struct umadv *adv, um_stream stream)
{
	struct um_app_streams *streams = &adv->tensors.pool.streams;
	unsigned i = um_app_streams_find(streams, stream);

	if (um_app_streams_shares_null(streams, stream, adv->op.thread))
		share_null(adv);
	if (i == streams->n)
		i = add_stream(adv, stream);
	else if (streams->at[i].id && streams->at[i].id != um_app_stream_id(adv->device.gpu, stream))
		i = replace_stream(adv, stream, i);
	else if (__builtin_expect(streams->due >> i & 1, 0))
		name_due(adv, i);
	streams->named[i] = streams->latest = adv->iterations.op_serial;
	return i;
}

void um_context_end_stream(struct umadv *adv, um_stream stream)
{
	um_assert_locked(adv);
	um_op_timer_stop_op(&adv->replan.times.timer, stream);
}

void um_context_forget_stream(struct umadv *adv, um_stream stream)
{
	const struct um_app_streams *streams = &adv->tensors.pool.streams;
	unsigned i = um_app_streams_find(streams, stream);

	um_assert_locked(adv);
	if (i < streams->n)
		forget_stream(adv, i);
}

int um_context_name_stream(struct umadv *adv, um_stream stream, unsigned *number)
{
	struct um_gpu *gpu = adv->device.gpu;
	int status = 0, code = gpu->api->cudaStreamIsCapturing(gpu, stream, &status);

	if (code || status) {
		adv->tensors.pool.captured |= !code || code == UM_CUDA_CAPTURE_IMPLICIT;
		return -EBUSY;
	}
	adv->op.thread = um_app_stream_thread();
	*number = find_stream(adv, stream);
	return 0;
}

static inline int capturing(struct umadv *adv, um_stream stream)
{
	struct um_gpu *gpu = adv->device.gpu;
	int status = 0, code = gpu->api->cudaStreamIsCapturing(gpu, stream, &status);

	if (!code && !status)
		return 0;
	return um_op_state_captured(&adv->op, &adv->device, stream, code, status, &adv->notices);
}

/* A block without a live tensor that the plan does not use is evicted as the plan begins. */
static void keep_known(void *user, uint64_t addr, int live)
{
	struct umadv *adv = user;
	const struct um_compiled_plan *p = &adv->replan.program;
	size_t k = um_compiled_plan_find(p, addr);

	if (live || (k < p->blocks.n && p->blocks.at[k] == addr))
		um_on_use_add(&adv->on_use, addr);
}

/* The plan's program runs from here on. What is resident stays known if the plan evicts nothing but memory without live
 * tensors that it does not use. */
static void begin_plan(struct umadv *adv)
{
	int evicts = um_replan_first_op(&adv->replan);

	if (evicts || um_horizon_knows(&adv->horizon))
		um_on_use_forget(&adv->on_use);
	if (!evicts)
		um_horizon_visit(&adv->horizon, keep_known, adv);
	adv->on_use.full |= evicts;
	if (adv->horizon.host.capacity)
		um_horizon_forget(&adv->horizon);
}

/* Advances the cursor by an op that was looked up, or leaves the schedule. 1: no schedule is followed. */
static int compare(struct umadv *adv, const struct um_op *op, const struct umadv_op_info *info)
{
	struct um_cursor *c = &adv->replan.cursor;

	if (!c->on || !c->sched)
		return 1;
	if (um_cursor_op(c, op)) {
		um_context_leave(adv);
		return 1;
	}
	um_op_state_remember(&adv->op, c->sched, c->op - 1, info);
	return 0;
}

/* Advances the cursor by this op, or leaves the schedule. `info`: as in replay(). 1: no schedule is followed. */
static inline int advance(struct umadv *adv, const struct um_op *op, const struct umadv_op_info *info)
{
	struct um_replan *r = &adv->replan;

	if (!info)
		um_cursor_advance(&r->cursor);
	else if (compare(adv, op, info))
		return 1;
	if (r->cursor.op == 1 && um_replan_may_begin(r)) {
		um_context_forget_uses(adv);
		begin_plan(adv);
	}
	return 0;
}

/* Prefetches the ranges of the op just before it. Not used by the published schemes. */
static inline void prefetch_on_use(struct umadv *adv)
{
	if (adv->on_use.give)
		um_on_use_op(&adv->on_use, adv->op.stream, adv->op.uses, adv->op.n_uses);
}

/* Evictions cannot wait for ops on so many streams: the driver evicts. */
static void stop_looking(struct umadv *adv)
{
	if (!um_horizon_knows(&adv->horizon))
		return;
	um_executor_cancel(adv->replan.executor);
	adv->horizon.partial = 1;
	um_horizon_forget(&adv->horizon);
	um_on_use_forget(&adv->on_use);
}

/* The op follows no plan. */
static void look_ahead(struct umadv *adv, const struct um_op *op, unsigned stream)
{
	struct um_op_state *o = &adv->op;
	double touched = um_uses_touched(o->uses, o->n_uses);
	uint64_t ns = um_profile_op_ns(&adv->device.profile, &op->cost, touched);
	const struct um_predictor_feed feed = {.kind = um_predictor_kind(op->name, op->stream, o->n_uses),
					       .ns = ns,
					       .live = adv->tensors.bytes_live,
					       .uses = o->uses,
					       .n_uses = o->n_uses};

	if (o->beside_plan) {
		um_predictor_skip(&adv->predictor);
		um_horizon_forget(&adv->horizon);
		um_horizon_recall(&adv->horizon);
	}
	o->beside_plan = 0;
	if (um_executor_too_many_streams(adv->replan.executor)) {
		stop_looking(adv);
		prefetch_on_use(adv);
		return;
	}
	if (um_predictor_op(&adv->predictor, &feed)) {
		adv->notices.errors++;
		return;
	}
	adv->horizon.shared = adv->pending.shared;
	um_horizon_op(&adv->horizon, stream, o->uses, o->n_uses, ns, um_cost_streams(&op->cost, touched));
	if (adv->horizon.exceeds)
		um_context_warn_host(adv);
}

/* The executor follows no plan. */
static void replay_without_plan(struct umadv *adv, const struct um_op *op, unsigned stream)
{
	if (adv->horizon.host.capacity && !um_replan_is_quiet(&adv->replan))
		look_ahead(adv, op, stream);
	um_executor_guard(adv->replan.executor, stream, adv->op.uses, adv->op.n_uses);
}

/* The op may contradict the advice in effect: it is not the plan's. */
static void use_beside_plan(struct umadv *adv, const struct umadv_op_info *info)
{
	const struct um_cost cost = {info->flops, info->bytes, 0};
	struct um_executor *ex = adv->replan.executor;
	const struct um_op_state *o = &adv->op;

	if (adv->horizon.host.capacity)
		um_horizon_written(&adv->horizon, o->uses, o->n_uses);
	um_executor_use(ex, o->uses, o->n_uses,
			um_executor_any_host_resident(ex) &&
				um_cost_streams(&cost, um_uses_touched(o->uses, o->n_uses)));
}

/* `known`: the op is the schedule's next, and was not looked up. */
static void replay(struct umadv *adv, const struct um_op *op, unsigned stream, const struct umadv_op_info *info,
		   int known)
{
	struct um_executor *ex = adv->replan.executor;
	struct um_cursor *c = &adv->replan.cursor;
	int err;

	/* the plan's own uses do not contradict its advice */
	if (advance(adv, op, known ? NULL : info) || c->n_rebound || um_follow_waits(adv->replan.state))
		use_beside_plan(adv, info);
	err = um_executor_op(ex, c->op - 1, stream, c, adv->op.uses, adv->op.n_uses);
	if (err > 0) {
		replay_without_plan(adv, op, stream);
		return;
	}
	if (err || (!known && um_context_replace(adv)))
		um_context_leave(adv);
	adv->iterations.hinted = 1;
	adv->op.beside_plan = 1;
	adv->op.prefetches = um_context_find_prefetches(adv);
}

/* The program's CPU code is about to use the ranges, after the library's discards of them. */
static void replay_cpu(struct umadv *adv, const struct um_op *op, const struct umadv_op_info *info)
{
	struct um_executor *ex = adv->replan.executor;
	const struct um_op_state *o = &adv->op;

	if (adv->on_use.give)
		um_on_use_evicted(&adv->on_use, o->uses, o->n_uses);
	if (adv->horizon.host.capacity)
		um_horizon_evicted(&adv->horizon, o->uses, o->n_uses);
	if (!ex)
		return;
	advance(adv, op, info);
	if (um_executor_active(ex)) {
		adv->iterations.hinted = 1;
		if (um_executor_op(ex, adv->replan.cursor.op - 1, 0, &adv->replan.cursor, NULL, 0))
			um_context_leave(adv);
	}
	for (const struct um_use *u = o->uses; u < o->uses + o->n_uses; u++) {
		um_executor_guard_cpu(ex, u->tensor->addr + u->off, u->tensor->addr + u->off + u->bytes);
		um_executor_forget_within(ex, u->tensor->addr + u->off, u->bytes);
	}
}

void um_context_announce(struct umadv *adv, const struct um_cost *cost)
{
	struct um_op_state *o = &adv->op;

	if (!adv->device.gpu->api->announce && !adv->checking.on)
		return;
	o->announced = 1;
	o->cost = *cost;
	if (adv->device.gpu->api->announce)
		um_op_state_announce(o, &adv->device, o->stream, cost, &adv->notices);
	if (adv->checking.on)
		um_checking_op(&adv->checking, o->stream, o->name);
}

/* Reports the op to device, checker, recorder, trace and activity sinks. `known`: the recorder has it already. */
static void report_op(struct umadv *adv, const struct um_op *op, um_stream stream, int known)
{
	struct um_activity_source *activities = &adv->sinks.activities;
	struct um_event e = {.kind = UM_EV_OP, .op = *op};

	e.op.label = adv->op.label || !um_nvtx_follower ? adv->op.label : um_nvtx_follower->label();
	if (!adv->op.cpu)
		um_context_announce(adv, &op->cost);
	e.op.n_uses -= adv->op.workspace != NULL;
	if (known)
		um_sinks_trace(&adv->sinks, &e, stream);
	else
		um_context_feed(adv, &e, stream);
	if (!um_activity_source_on(activities) || adv->op.cpu)
		return;
	um_activity_source_op(activities, adv->iterations.op_serial - 1, &e.op);
	if (adv->replan.executor)
		um_executor_number(adv->replan.executor, adv->iterations.op_serial - 1);
}

/* Records an op that is the schedule's next as a repetition. 0: it has to be recorded in full. */
static inline int repeat_op(struct umadv *adv, const struct um_sched_op *so, const struct umadv_op_info *info)
{
	struct um_iter_op *kept;

	if (info->relaunch && adv->op.outs.n)
		return 0; /* the hash does not cover the output ranges */
	kept = um_recorder_repeat(&adv->iterations.recorder, so->hash, adv->op.uses, adv->op.n_uses);
	if (!kept)
		return 0;
	kept->cost = (struct um_cost){info->flops, info->bytes, info->ns};
	kept->phase = info->phase;
	kept->relaunchable = info->relaunch != NULL;
	return 1;
}

/* The op uses its tensors from now on. */
static inline void note_uses(const struct um_op_state *o, uint64_t serial, unsigned stream)
{
	for (const struct um_use *u = o->uses, *end = u + o->n_uses; u < end; u++) {
		struct um_tensor *t = u->tensor;

		t->used_op = serial;
		t->streams |= stream;
		t->flags &= ~(unsigned)UM_TENSOR_DEAD;
	}
}

/* Does the plan's next op need its hints and nothing else, until an iteration begins, or the context changes? */
static int is_plain(const struct umadv *adv)
{
	const struct um_replan *r = &adv->replan;

	return r->executor && r->cursor.on && adv->op.beside_plan && um_executor_active(r->executor) &&
	       !um_follow_waits(r->state) && !r->begins && !r->absent && !r->taken &&
	       !um_op_timer_listens(&r->times.timer) && !r->clock.due && !adv->iterations.finder.on &&
	       !adv->device.gpu->api->announce && !um_sinks_listened(&adv->sinks);
}

/* The executor has left its plan, or leaves it with this op. */
static void __attribute__((cold))
leave_plain(struct umadv *adv, int left, unsigned stream, const struct umadv_op_info *info)
{
	const struct um_op op = um_op_state_op(&adv->op, (int32_t)stream, info);

	adv->op.plain = 0;
	if (left)
		replay_without_plan(adv, &op, stream);
	else
		um_context_leave(adv);
}

/* Processes the plan's next op on the expected tensors. 0: it needs more than its hints, and nothing was done. */
static inline int replay_plain(struct umadv *adv, const struct um_sched_op *so, unsigned stream,
			       const struct umadv_op_info *info)
{
	struct um_iterations *it = &adv->iterations;
	struct um_op_state *o = &adv->op;
	struct um_cursor *c = &adv->replan.cursor;
	int err;

	if (!o->plain || adv->pending.shared || info->relaunch || it->ops >= it->closures.n ||
	    !repeat_op(adv, so, info))
		return 0;
	um_assert_op_path(is_plain(adv));
	it->closures.at[it->ops].fn = NULL;
	it->op_serial++;
	it->ops++;
	o->n++;
	um_cursor_advance(c);
	err = um_executor_op(adv->replan.executor, c->op - 1, stream, c, o->uses, o->n_uses);
	if (err)
		leave_plain(adv, err > 0, stream, info);
	note_uses(o, it->op_serial, 1u << stream);
	return 1;
}

/* Launched again, an op with a workspace would use memory that is not its own any more. */
static inline int keep_closure(struct umadv *adv, const struct umadv_op_info *info)
{
	struct umadv_op_info once;

	if (!adv->op.workspace)
		return um_iterations_keep_closure(&adv->iterations, info);
	once = *info;
	once.relaunch = NULL;
	return um_iterations_keep_closure(&adv->iterations, &once);
}

/* Resolves the tensors of the op and begins an unmarked iteration if one is due. 0, -EINVAL; -ENOMEM: the op is ignored
 * and the iteration is recorded as incomplete. */
static inline int look_up(struct umadv *adv, unsigned stream, const struct umadv_op_info *info,
			  const struct um_sched_op **known)
{
	const struct um_registry *registry = &adv->tensors.registry;
	int err = *known ? 0 : um_op_state_resolve(&adv->op, &adv->tensors, info, &adv->notices);

	if (!err && adv->iterations.finder.on)
		*known = um_context_find(adv, stream, info, *known);

	if (!err && info->relaunch)
		err = um_op_state_resolve_outs(&adv->op, registry, info);
	if (!err)
		err = um_op_state_add_workspace(&adv->op);
	if (!err)
		err = keep_closure(adv, info);
	if (err == -ENOMEM) {
		adv->notices.errors++;
		adv->iterations.recorder.it.incomplete = 1;
		um_context_leave(adv);
		if (adv->replan.executor)
			um_executor_guard_all(adv->replan.executor, stream);
	}
	return err;
}

/* The op without its relaunch, if that made other content. */
static const struct umadv_op_info *refuse_relaunch(const struct umadv *adv, const struct umadv_op_info *info,
						   struct umadv_op_info *to)
{
	if (!info->relaunch || !um_content_check_refuses(&adv->contents, adv->op.name))
		return info;
	*to = *info;
	to->relaunch = NULL;
	return to;
}

/* `known`: the schedule's op, if this is its next one on the expected tensors. */
static __attribute__((noinline)) int op_in_full(struct umadv *adv, um_stream stream, unsigned number,
						const struct umadv_op_info *info, const struct um_sched_op *known)
{
	struct um_op_state *o = &adv->op;
	struct um_replan *r = &adv->replan;
	struct umadv_op_info plain;
	struct um_op op;
	int err, repeated;

	if (um_context_joint_changed(adv)) {
		um_context_take_joint(adv);
		known = NULL;
	}
	info = refuse_relaunch(adv, info, &plain);
	err = look_up(adv, number, info, &known);
	o->prefetches = UM_OP_PREFETCHES_NONE;
	o->timed = -1;
	if (err)
		return err == -ENOMEM ? 0 : err;
	adv->iterations.op_serial++;
	adv->iterations.ops++;
	repeated = known && repeat_op(adv, known, info);
	if (!repeated || adv->device.gpu->api->announce || um_sinks_listened(&adv->sinks)) {
		op = um_op_state_op(o, (int32_t)number, info);
		report_op(adv, &op, stream, repeated);
	} else if (adv->horizon.host.capacity && r->executor && !um_executor_active(r->executor)) {
		op = um_op_state_op(o, (int32_t)number, info);
	}
	if (um_op_timer_listens(&r->times.timer))
		um_op_timer_stop_op(&r->times.timer, stream);
	if (r->clock.due && !o->cpu)
		um_replan_time(r, stream);
	if (o->joint)
		um_context_use_joint(adv, stream);
	if (o->cpu)
		replay_cpu(adv, &op, known ? NULL : info);
	else if (r->executor)
		replay(adv, &op, number, info, known != NULL);
	else
		prefetch_on_use(adv);
	note_uses(o, adv->iterations.op_serial, o->cpu ? 0 : 1u << number);
	o->plain = is_plain(adv);
	if (o->cpu) {
		o->n_cpu++;
		if (adv->iterations.finder.step != UM_OP_PERIOD_GOES_ON)
			um_context_find_last(adv);
		return 0;
	}
	if (adv->pending.shared)
		um_pending_launches_op(&adv->pending, o->uses, o->n_uses);
	if (++o->n == UM_OPS_OUTSIDE && !adv->iterations.n && r->executor)
		um_mistake_no_iteration(&adv->notices);
	if (r->times.timer.state == UM_OP_TIMER_RUNS && r->cursor.on)
		o->timed = r->cursor.op - 1;
	o->begins = o->prefetches || o->timed >= 0;
	if (adv->sinks.trace.writer)
		um_trace_sink_launch(&adv->sinks.trace);
	if (adv->iterations.finder.step != UM_OP_PERIOD_GOES_ON)
		um_context_find_last(adv);
	return 0;
}

static inline void begin_op(struct um_op_state *o, um_stream stream, const char *name)
{
	o->begins = 0;
	o->announced = 0;
	o->name = name;
	o->stream = stream;
}

static void forget_offer(struct um_op_state *o)
{
	o->n_ws = 0;
	o->workspace = NULL;
}

/* The op has offered workspaces: it is recorded in full. */
static int __attribute__((cold))
op_with_offer(struct umadv *adv, um_stream stream, unsigned number, const struct umadv_op_info *info)
{
	int err = op_in_full(adv, stream, number, info, NULL);

	forget_offer(&adv->op);
	return err;
}

/* Captured work does not run now: the op is ignored, with what it has offered. */
static int __attribute__((cold)) ignore_captured(struct umadv *adv)
{
	adv->tensors.pool.captured = 1;
	if (um_context_take_offer(adv))
		forget_offer(&adv->op);
	return 0;
}

int um_context_op(struct umadv *adv, um_stream stream, const char *name, const struct umadv_op_info *info)
{
	const struct um_sched_op *known;
	unsigned number;

	um_assert_locked(adv);
	begin_op(&adv->op, stream, name ? name : "op");
	if (capturing(adv, stream))
		return ignore_captured(adv);
	number = find_stream(adv, stream);
	if (um_context_take_offer(adv))
		return op_with_offer(adv, stream, number, info);
	known = um_op_state_expected(&adv->op, &adv->tensors.registry, &adv->replan.cursor, (int32_t)number, info);
	return known && replay_plain(adv, known, number, info) ? 0 : op_in_full(adv, stream, number, info, known);
}

int um_context_host(struct umadv *adv, const char *name, const struct umadv_use *uses, size_t n_uses)
{
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .n_uses = n_uses};
	const struct um_sched_op *known;
	int err;

	um_assert_locked(adv);
	begin_op(&adv->op, NULL, name ? name : "host");
	known = um_op_state_expected(&adv->op, &adv->tensors.registry, &adv->replan.cursor, UM_STREAM_CPU, &info);
	adv->op.cpu = 1;
	err = !known && um_context_host_beside(adv, &info)
		      ? 0
		      : op_in_full(adv, NULL, (unsigned)UM_STREAM_CPU, &info, known);
	adv->op.cpu = 0;
	return err;
}
