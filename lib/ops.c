/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.c - an op is announced: ranges become tensors, who listens hears of it, hints that are due go out
 */
#include "advisor.h"

#include "gpu/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int32_t stream_number(const struct umadv *adv, um_stream stream)
{
	unsigned i = 0;

	while (i < adv->pool.n_streams && adv->pool.streams[i] != stream)
		i++;
	return (int32_t)i;
}

/* Is this the op that the schedule has next, on tensors that are who they are expected to be? Then nothing is looked
 * up: its uses are in adv->uses. */
static const struct um_sched_op *expected(struct umadv *adv, int32_t stream, const char *name,
					  const struct umadv_op_info *info)
{
	struct um_cursor *c = &adv->cursor;
	const struct um_sched_op *so = um_cursor_next(c);
	const struct um_sched_use *su = so ? &c->sched->uses.at[so->first_use] : NULL;

	um_vec_clear(&adv->uses);
	if (!so || so->n_uses != info->n_uses || so->stream != stream || strcmp(so->name, name) != 0 ||
	    um_vec_reserve(&adv->uses, so->n_uses))
		return NULL;
	for (uint32_t i = 0; i < so->n_uses; i++, su++) {
		const struct umadv_use *u = &info->uses[i];

		if ((u->access & UM_UPDATE) != su->access ||
		    (u->touched && u->touched < su->bytes ? u->touched : su->bytes) != su->touched ||
		    !um_cursor_knows(c, su, (uint64_t)(uintptr_t)u->ptr, u->bytes, &adv->uses.at[i]))
			return NULL;
	}
	adv->uses.n = so->n_uses;
	return so;
}

/* Resolves the app's ranges to tensors, into adv->uses; the same range named twice is one use. */
static int resolve(struct umadv *adv, const struct umadv_use *uses, size_t n)
{
	um_vec_clear(&adv->uses);
	if (um_vec_reserve(&adv->uses, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t addr = (uint64_t)(uintptr_t)uses[i].ptr;
		struct um_tensor *t = um_registry_find(&adv->registry, addr);

		while (t && uses[i].bytes > t->bytes - (addr - t->addr) && t->parent)
			t = t->parent;
		if (!t) {
			adv->stats.unknown_pointers++;
			um_advisor_warn(adv, UM_WARN_POINTER,
					"op uses %p, which is no known tensor: ignored, as all such uses", uses[i].ptr);
			continue;
		}
		struct um_use u = {
			.id = t->id, .tensor = t, .off = addr - t->addr, .access = uses[i].access & UM_UPDATE};

		u.bytes = uses[i].bytes ? uses[i].bytes : t->bytes - u.off;
		u.touched = uses[i].touched && uses[i].touched < u.bytes ? uses[i].touched : u.bytes;
		if (!u.access || u.bytes > t->bytes - u.off)
			return -EINVAL;
		size_t k = 0;

		while (k < adv->uses.n && (adv->uses.at[k].id.v != u.id.v || adv->uses.at[k].off != u.off ||
					   adv->uses.at[k].bytes != u.bytes))
			k++;
		if (k < adv->uses.n)
			adv->uses.at[k].access |= u.access;
		else
			adv->uses.at[adv->uses.n++] = u;
	}
	return 0;
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
	struct um_announcement next = {.ns = um_profile_op_ns(&adv->profile, cost)};

	um_vec_clear(&adv->touches);
	if (um_vec_reserve(&adv->touches, adv->uses.n + 1)) {
		adv->stats.errors++;
		return;
	}
	for (size_t i = 0; i < adv->uses.n; i++) {
		const struct um_use *u = &adv->uses.at[i];

		adv->touches.at[adv->touches.n++] =
			(struct um_touch){.ptr = (void *)(uintptr_t)(u->tensor->addr + u->off),
					  .bytes = u->bytes,
					  .touched = u->touched,
					  .access = u->access};
	}
	next.touch = adv->touches.at;
	next.n = (uint32_t)adv->touches.n;
	if (adv->gpu->api->announce(adv->gpu, stream, &next))
		adv->stats.errors++;
}

static void prefetch_on_use(struct umadv *adv, um_stream stream)
{
	int telling = um_telling_on(&adv->telling);

	for (size_t i = 0; i < adv->uses.n; i++) {
		const struct um_use *u = &adv->uses.at[i];

		if (u->tensor->flags & UM_TENSOR_UNMANAGED)
			continue;
		struct um_hint_given h = {.kind = UM_ACTION_IN,
					  .addr = u->tensor->addr + u->off,
					  .bytes = u->bytes,
					  .op = adv->op_serial - 1,
					  .begin = telling ? um_telling_now(&adv->telling) : 0};

		h.code = adv->gpu->api->cudaMemPrefetchAsync(adv->gpu, (void *)(uintptr_t)h.addr, h.bytes,
							     um_on_device(adv->gpu->caps.device), 0, stream);
		if (telling) {
			h.end = um_telling_now(&adv->telling);
			um_telling_hint(&adv->telling, &h);
		}
		if (h.code) {
			adv->stats.hints_refused++;
			continue;
		}
		adv->stats.hints_issued++;
		adv->stats.prefetch_bytes += u->bytes;
		adv->hinted = 1;
	}
}

/* The first op of an iteration fits: from here on the program runs. */
static void take_up(struct umadv *adv)
{
	struct um_executor_range *used;
	size_t n = um_advisor_used(adv, &used);

	adv->adopt = 0;
	if (!used || um_executor_adopt(adv->executor, &adv->program, adv->budget / UM_BLOCK_BYTES, used, n,
					&adv->cursor))
		adv->stats.errors++;
	else
		adv->stats.plans++;
	free(used);
}

/* `known`: it is the schedule's next op. */
static void replay(struct umadv *adv, const struct um_op *op, um_stream stream, int known)
{
	struct um_cursor *c = &adv->cursor;

	um_executor_see(adv->executor, stream);
	um_executor_use(adv->executor, adv->uses.at, (uint32_t)adv->uses.n);
	if (!c->on || !c->sched)
		return;
	if (known) {
		um_cursor_pass(c);
	} else if (um_cursor_op(c, op)) {
		um_advisor_leave(adv);
		return;
	}
	if (adv->adopt && c->op == 1)
		take_up(adv);
	if (!um_executor_active(adv->executor))
		return;
	adv->hinted = 1;
	if (um_executor_op(adv->executor, c->op - 1, c))
		um_advisor_leave(adv);
}

/* What is captured does not run now, and a call on a capturing stream would become part of the graph, or spoil it. */
static int capturing(struct umadv *adv, um_stream stream)
{
	int status = 0, code = adv->gpu->api->cudaStreamIsCapturing(adv->gpu, stream, &status);

	if (code ? code != UM_CUDA_CAPTURING && code != UM_CUDA_CAPTURE_IMPLICIT : !status)
		return 0;
	adv->stats.captured++;
	um_advisor_warn(adv, UM_WARN_CAPTURE,
			"ops are announced on a stream that is being captured: ignored. "
			"Announce the launch of the graph");
	return 1;
}

static void tell(struct umadv *adv, const struct um_op *op)
{
	um_telling_op(&adv->telling, adv->op_serial - 1, op);
	if (adv->executor)
		um_executor_number(adv->executor, adv->op_serial - 1);
}

int um_advisor_op(struct umadv *adv, um_stream stream, const char *name, const struct umadv_op_info *info)
{
	struct um_event e = {.kind = UM_EV_OP};
	const struct um_sched_op *known;
	int32_t number = stream_number(adv, stream);
	int err;

	if (capturing(adv, stream))
		return 0;
	name = name ? name : "op";
	known = expected(adv, number, name, info);
	err = known ? 0 : resolve(adv, info->uses, info->n_uses);
	if (!err && info->relaunch)
		err = resolve_outs(adv, info);
	if (!err)
		err = keep_closure(adv, adv->iter_ops, info);
	if (err == -ENOMEM) {
		/* The op is not seen: what is learned of this iteration is worth nothing. */
		adv->stats.errors++;
		adv->recorder.it.incomplete = 1;
		um_advisor_leave(adv);
		return 0;
	}
	if (err)
		return err;
	if (number == (int32_t)adv->pool.n_streams)
		um_pool_see_stream(&adv->pool, stream);
	adv->op_serial++;
	adv->iter_ops++;
	e.op = (struct um_op){
		.name = name,
		.hash = known ? known->hash : 0,
		.uses = adv->uses.at,
		.n_uses = (uint32_t)adv->uses.n,
		.cost = {info->flops, info->bytes, info->ns},
		.stream = number,
		.phase = info->phase,
		.relaunch = adv->outs.at,
		.n_relaunch = info->relaunch ? (uint32_t)adv->outs.n : 0,
		.relaunchable = info->relaunch != NULL,
	};
	if (adv->gpu->api->announce)
		announce(adv, stream, &e.op.cost);
	um_advisor_feed(adv, &e, stream);
	if (um_telling_on(&adv->telling))
		tell(adv, &e.op);
	um_stopwatch_stop_op(&adv->stopwatch, stream);
	if (adv->executor)
		replay(adv, &e.op, stream, known != NULL);
	else if (adv->options.strategy == UM_STRATEGY_PREFETCH_ON_USE && adv->gpu->caps.concurrent_managed)
		prefetch_on_use(adv, stream);
	for (size_t i = 0; i < adv->uses.n; i++) {
		adv->uses.at[i].tensor->used_op = adv->op_serial;
		adv->uses.at[i].tensor->flags &= ~(unsigned)UM_TENSOR_DEAD;
	}
	adv->stats.ops++;
	if (adv->stopwatch.state == UM_STOPWATCH_RUNS && adv->cursor.on)
		um_stopwatch_start_op(&adv->stopwatch, stream, adv->cursor.op - 1);
	um_tracing_launch(&adv->tracing);
	return 0;
}

int um_advisor_run(struct umadv *adv, um_stream stream, void (*fn)(void *), void *arg)
{
	struct um_sim_kernel k = {.announced = 1, .fn = fn, .arg = arg};

	if (!adv->simulated)
		return -ENODEV;
	int code = um_sim_run(adv->gpu, stream, &k);

	return code == UM_CUDA_NO_MEMORY ? -ENOMEM : code ? -EIO : 0;
}
