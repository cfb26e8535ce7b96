/* SPDX-License-Identifier: Apache-2.0 */
#include "advisor.h"

#include "gpu/null.h"
#include "gpu/sim.h"
#include "io/profile_file.h"
#include "io/umtrace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void vlog(struct umadv *adv, enum umadv_log_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level > adv->options.pub.log_level)
		return;
	vsnprintf(line, sizeof line, fmt, ap);
	if (adv->options.pub.log)
		adv->options.pub.log(adv->options.pub.log_user, level, line);
	else
		fprintf(stderr, "umadvise: %s\n", line);
}

void um_advisor_log(struct umadv *adv, enum umadv_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(adv, level, fmt, ap);
	va_end(ap);
}

void um_advisor_warn(struct umadv *adv, enum um_warned cause, const char *fmt, ...)
{
	va_list ap;

	if (adv->warned & (unsigned)cause)
		return;
	adv->warned |= (unsigned)cause;
	va_start(ap, fmt);
	vlog(adv, UMADV_LOG_WARN, fmt, ap);
	va_end(ap);
}

/* --- open, close ------------------------------------------------------------------------------------------------ */

/* Nothing alive needs what is in this range of our own memory. */
static int may_discard(void *user, uint64_t addr, uint64_t bytes)
{
	struct umadv *adv = user;
	uint64_t end = addr + bytes;
	int ours = 0;

	for (size_t i = 0; i < adv->pool.regions.n && !ours; i++) {
		const struct um_pool_region *r = &adv->pool.regions.at[i];

		ours = addr >= r->addr && end <= r->addr + r->bytes;
	}
	if (!ours)
		return 0;
	struct um_tree_node *n = um_tree_floor(&adv->registry.live, addr, UINT64_MAX);

	for (n = n ? n : um_tree_first(&adv->registry.live); n; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);
		uint64_t serial_of_iter = adv->op_serial - adv->cursor.op;

		if (t->addr >= end)
			break;
		if (t->addr + t->bytes <= addr || t->flags & UM_TENSOR_DEAD)
			continue;
		if (!(t->flags & UM_TENSOR_TRANSIENT) || t->used_op > serial_of_iter)
			return 0;
	}
	return 1;
}

static int open_device(struct umadv *adv, struct um_gpu *gpu)
{
	const struct umadv_options *o = &adv->options.pub;
	const char *name = o->profile ? o->profile : "v100";
	struct um_diag diag;
	char line[800];
	int err;

	um_diag_init(&diag, name);
	err = um_profile_get(name, &adv->profile, &diag);
	if (err) {
		um_diag_line(&diag, line, sizeof line);
		um_advisor_log(adv, UMADV_LOG_ERROR, "profile %s", line);
		if (gpu)
			gpu->api->close(gpu);
		return err;
	}
	if (gpu) {
		adv->gpu = gpu;
	} else if (o->device == UMADV_DEVICE_SIM) {
		struct um_sim_options so = {.profile = &adv->profile, .capacity = o->budget, .backed = 1, .poison = o->check};

		err = um_sim_open(&adv->gpu, &so);
	} else {
		err = um_null_open(&adv->gpu, UINT64_MAX / 2, 0);
		if (!err) {
			adv->gpu->caps.concurrent_managed = 0;
			snprintf(adv->gpu->caps.why, sizeof adv->gpu->caps.why,
			         "this version drives the simulated GPU only: no hints are issued");
		}
	}
	if (err)
		return err;
	adv->simulated = adv->gpu->caps.virtual_time;
	adv->budget = o->budget ? o->budget : adv->gpu->caps.capacity;
	return 0;
}

int um_advisor_open(struct umadv **out, const struct umadv_options *options, struct um_gpu *gpu)
{
	struct umadv *adv = calloc(1, sizeof *adv);
	struct um_executor_host host = {.may_discard = may_discard};
	struct um_diag diag;
	char line[800];
	int err;

	if (!adv) {
		if (gpu)
			gpu->api->close(gpu);
		return -ENOMEM;
	}
	pthread_mutex_init(&adv->lock, NULL);
	host.user = adv;
	um_registry_init(&adv->registry);
	um_iteration_init(&adv->last);
	um_plan_init(&adv->plan);
	um_plan_init(&adv->warm);
	um_program_init(&adv->program);
	um_cursor_init(&adv->cursor);
	adv->stats.first_hinted_iteration = UINT64_MAX;

	err = um_options_take(&adv->options, options);
	if (err == -EINVAL)
		um_advisor_log(adv, UMADV_LOG_ERROR, "%s", adv->options.problem);
	if (err) {
		if (gpu)
			gpu->api->close(gpu);
		goto fail;
	}
	err = open_device(adv, gpu);
	if (err)
		goto fail;
	um_pool_init(&adv->pool, adv->gpu);
	err = um_recorder_init(&adv->recorder);
	if (!err)
		err = um_learner_init(&adv->learner);
	if (err)
		goto fail;
	if (adv->options.strategy == UM_STRATEGY_LOOKAHEAD && adv->gpu->caps.concurrent_managed) {
		err = um_executor_open(&adv->executor, adv->gpu, &host);
		if (err == -ENOMEM)
			goto fail;
	}
	if (adv->options.pub.trace) {
		um_diag_init(&diag, adv->options.pub.trace);
		if (um_umtrace_writer_open(&adv->writer, adv->options.pub.trace, "libumadvise", "program", &diag)) {
			um_diag_line(&diag, line, sizeof line);
			um_advisor_warn(adv, UM_WARN_TRACE, "no trace is written: %s", line);
			adv->writer = NULL;
		}
	}
	um_advisor_log(adv, UMADV_LOG_INFO, "%s, budget %llu MiB, strategy %s", adv->gpu->caps.name,
	               (unsigned long long)(adv->budget >> 20), um_strategy_name(adv->options.strategy));
	*out = adv;
	return 0;
fail:
	um_advisor_close(adv);
	return err;
}

void um_advisor_close(struct umadv *adv)
{
	if (!adv)
		return;
	um_executor_close(adv->executor);
	if (adv->writer && um_umtrace_writer_close(adv->writer, 1))
		um_advisor_warn(adv, UM_WARN_TRACE, "the trace could not be written");
	if (adv->gpu) {
		um_pool_fini(&adv->pool);
		um_registry_fini(&adv->registry);
		adv->gpu->api->close(adv->gpu);
	}
	um_learner_fini(&adv->learner);
	um_recorder_fini(&adv->recorder);
	um_cursor_fini(&adv->cursor);
	um_program_fini(&adv->program);
	um_plan_fini(&adv->plan);
	um_plan_fini(&adv->warm);
	um_iteration_fini(&adv->last);
	um_vec_fini(&adv->uses);
	um_vec_fini(&adv->outs);
	for (size_t i = 0; i < adv->closures.n; i++)
		free(adv->closures.at[i].arg);
	um_vec_fini(&adv->closures);
	for (unsigned i = 0; i < UM_POOL_STREAMS; i++)
		um_vec_fini(&adv->announced[i].access);
	um_options_fini(&adv->options);
	pthread_mutex_destroy(&adv->lock);
	free(adv);
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

static void feed(struct umadv *adv, const struct um_event *e)
{
	if (um_sink_feed(&adv->recorder.sink, e))
		adv->stats.errors++;
	if (adv->writer && um_sink_feed(adv->writer, e)) {
		um_umtrace_writer_close(adv->writer, 0);
		adv->writer = NULL;
		um_advisor_warn(adv, UM_WARN_TRACE, "the trace could not be written");
	}
}

/* Where the plan says, if it says and that is free; else where there is room. */
static int take_place(struct umadv *adv, uint64_t bytes, uint64_t *addr)
{
	int planned = adv->executor && um_executor_active(adv->executor);

	for (int choice = 0; choice < 2; choice++) {
		uint64_t place = um_cursor_place(&adv->cursor, bytes, choice);

		if (place != UINT64_MAX && um_pool_take_at(&adv->pool, place, bytes) == 0) {
			*addr = place;
			return 0;
		}
	}
	adv->misplaced += (uint64_t)planned;
	return um_pool_take(&adv->pool, bytes, planned, addr);
}

static int add_tensor(struct umadv *adv, uint64_t addr, uint64_t bytes, const char *name, enum um_role role, unsigned flags)
{
	struct um_event e = {.kind = UM_EV_ALLOC};
	struct um_tensor *t;
	int err = um_registry_add(&adv->registry, addr, bytes, name, role, flags, &t);

	if (err)
		return err;
	t->born_iter = adv->iteration;
	e.alloc.id = t->id;
	e.alloc.tensor = t;
	e.alloc.bytes = bytes;
	e.alloc.name = t->name;
	e.alloc.role = role;
	feed(adv, &e);
	if (adv->cursor.on && adv->cursor.sched && um_cursor_alloc(&adv->cursor, t))
		um_advisor_leave(adv);
	adv->stats.tensors_live++;
	if (!t->parent) {
		adv->stats.bytes_live += bytes;
		if (adv->stats.bytes_live > adv->stats.bytes_live_peak)
			adv->stats.bytes_live_peak = adv->stats.bytes_live;
	}
	return 0;
}

int um_advisor_alloc(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, void **ptr)
{
	int unmanaged = role == UM_ROLE_COMM;
	uint64_t addr;
	void *p = NULL;
	int err;

	if (unmanaged) {
		if (!adv->gpu->api->cudaMalloc || adv->gpu->api->cudaMalloc(adv->gpu, &p, bytes))
			return -ENOMEM;
		addr = (uint64_t)(uintptr_t)p;
	} else {
		err = take_place(adv, bytes, &addr);
		if (err)
			return err;
	}
	err = add_tensor(adv, addr, bytes, name, role, unmanaged ? UM_TENSOR_UNMANAGED : 0);
	if (err) {
		if (unmanaged)
			adv->gpu->api->cudaFree(adv->gpu, p);
		else
			um_pool_give(&adv->pool, addr, bytes);
		return err;
	}
	*ptr = (void *)(uintptr_t)addr;
	return 0;
}

int um_advisor_adopt(struct umadv *adv, void *ptr, uint64_t bytes, const char *name, enum um_role role)
{
	return add_tensor(adv, (uint64_t)(uintptr_t)ptr, bytes, name, role, UM_TENSOR_ADOPTED);
}

static int remove_tensor(struct umadv *adv, struct um_tensor *t)
{
	struct um_event e = {.kind = UM_EV_FREE};
	uint64_t bytes = t->bytes;
	int inner = t->parent != NULL;

	if (t->n_children)
		return -EINVAL;
	e.free.id = t->id;
	e.free.tensor = t;
	feed(adv, &e);
	um_registry_remove(&adv->registry, t);
	adv->stats.tensors_live--;
	if (!inner)
		adv->stats.bytes_live -= bytes;
	return 0;
}

/* The live tensor that starts at ptr (of `bytes`, if not 0). */
static struct um_tensor *starts_at(struct umadv *adv, const void *ptr, uint64_t bytes)
{
	struct um_tensor *t = um_registry_find(&adv->registry, (uint64_t)(uintptr_t)ptr);

	while (t && bytes && t->bytes != bytes)
		t = t->parent;
	return t && t->addr == (uint64_t)(uintptr_t)ptr ? t : NULL;
}

int um_advisor_free(struct umadv *adv, void *ptr)
{
	struct um_tensor *t = starts_at(adv, ptr, 0);

	while (t && t->flags & UM_TENSOR_ADOPTED)
		t = t->parent;
	if (!t || t->addr != (uint64_t)(uintptr_t)ptr)
		return -EINVAL;
	uint64_t addr = t->addr, bytes = t->bytes;
	int unmanaged = t->flags & UM_TENSOR_UNMANAGED;
	int err = remove_tensor(adv, t);

	if (err)
		return err;
	if (unmanaged)
		adv->gpu->api->cudaFree(adv->gpu, ptr);
	else
		um_pool_give(&adv->pool, addr, bytes);
	return 0;
}

int um_advisor_disown(struct umadv *adv, void *ptr, uint64_t bytes)
{
	struct um_tensor *t = starts_at(adv, ptr, bytes);

	if (!t || !(t->flags & UM_TENSOR_ADOPTED))
		return -EINVAL;
	return remove_tensor(adv, t);
}

int um_advisor_transient(struct umadv *adv, void *ptr)
{
	struct um_tensor *t = starts_at(adv, ptr, 0);

	if (!t)
		return -EINVAL;
	t->flags |= UM_TENSOR_TRANSIENT;
	return 0;
}

int um_advisor_dead(struct umadv *adv, void *ptr)
{
	struct um_event e = {.kind = UM_EV_DEAD};
	struct um_tensor *t = starts_at(adv, ptr, 0);

	if (!t)
		return -EINVAL;
	t->flags |= UM_TENSOR_DEAD;
	e.free.id = t->id;
	e.free.tensor = t;
	feed(adv, &e);
	return 0;
}

/* --- ops -------------------------------------------------------------------------------------------------------- */

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
			um_advisor_warn(adv, UM_WARN_POINTER, "op uses %p, which is no known tensor: ignored, as all such uses",
			                uses[i].ptr);
			continue;
		}
		struct um_use u = {.id = t->id, .tensor = t, .off = addr - t->addr, .access = uses[i].access & UM_UPDATE};

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

static int32_t stream_number(const struct umadv *adv, um_stream stream)
{
	unsigned i = 0;

	while (i < adv->pool.n_streams && adv->pool.streams[i] != stream)
		i++;
	return (int32_t)i;
}

/* What the simulated kernel that follows will touch. */
static void announce(struct umadv *adv, um_stream stream, const struct um_cost *cost)
{
	struct um_announced *a = NULL;

	for (unsigned i = 0; i < UM_POOL_STREAMS && !a; i++)
		if (adv->announced[i].access.cap && adv->announced[i].stream == stream)
			a = &adv->announced[i];
	if (!a)
		a = &adv->announced[adv->next_announced++ % UM_POOL_STREAMS];
	um_vec_clear(&a->access);
	a->stream = stream;
	a->ns = um_profile_op_ns(&adv->profile, cost);
	if (um_vec_reserve(&a->access, adv->uses.n + 1)) {
		adv->stats.errors++;
		return;
	}
	for (size_t i = 0; i < adv->uses.n; i++) {
		const struct um_use *u = &adv->uses.at[i];

		a->access.at[a->access.n++] = (struct um_sim_access){
		        .ptr = (void *)(uintptr_t)(u->tensor->addr + u->off), .bytes = u->bytes, .touched = u->touched,
		        .access = u->access};
	}
}

static void prefetch_on_use(struct umadv *adv, um_stream stream)
{
	for (size_t i = 0; i < adv->uses.n; i++) {
		const struct um_use *u = &adv->uses.at[i];

		if (u->tensor->flags & UM_TENSOR_UNMANAGED)
			continue;
		if (adv->gpu->api->cudaMemPrefetchAsync(adv->gpu, (void *)(uintptr_t)(u->tensor->addr + u->off), u->bytes,
		                                        um_on_device(adv->gpu->caps.device), 0, stream)) {
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
	const struct um_pool *a = &adv->pool;
	struct um_executor_range *used = malloc((a->regions.n + 1) * sizeof *used);
	size_t n = 0;

	adv->adopt = 0;
	if (!used) {
		adv->stats.errors++;
		return;
	}
	for (size_t i = 0; i < a->regions.n; i++) {
		uint64_t bytes = a->regions.at[i].used_hi - a->regions.at[i].addr;

		used[n++] = (struct um_executor_range){a->regions.at[i].addr,
		                                       (bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES};
	}
	if (um_executor_adopt(adv->executor, &adv->program, adv->budget / UM_BLOCK_BYTES, used, n))
		adv->stats.errors++;
	else
		adv->stats.plans++;
	free(used);
}

static void replay(struct umadv *adv, const struct um_op *op, um_stream stream)
{
	struct um_cursor *c = &adv->cursor;

	if (!c->on || !c->sched)
		return;
	if (um_cursor_op(c, op)) {
		um_advisor_leave(adv);
		return;
	}
	if (adv->adopt && c->op == 1)
		take_up(adv);
	if (!um_executor_active(adv->executor))
		return;
	adv->hinted = 1;
	if (um_executor_op(adv->executor, c->op - 1, stream, c))
		um_advisor_leave(adv);
}

int um_advisor_op(struct umadv *adv, um_stream stream, const char *name, const struct umadv_op_info *info)
{
	struct um_event e = {.kind = UM_EV_OP};
	int err = resolve(adv, info->uses, info->n_uses);

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
	um_pool_see_stream(&adv->pool, stream);
	adv->op_serial++;
	adv->iter_ops++;
	e.op = (struct um_op){
	        .name = name ? name : "op",
	        .uses = adv->uses.at,
	        .n_uses = (uint32_t)adv->uses.n,
	        .cost = {info->flops, info->bytes, info->ns},
	        .stream = stream_number(adv, stream),
	        .phase = info->phase,
	        .relaunch = adv->outs.at,
	        .n_relaunch = info->relaunch ? (uint32_t)adv->outs.n : 0,
	        .relaunchable = info->relaunch != NULL,
	};
	if (adv->simulated)
		announce(adv, stream, &e.op.cost);
	feed(adv, &e);
	if (adv->executor)
		replay(adv, &e.op, stream);
	else if (adv->options.strategy == UM_STRATEGY_PREFETCH_ON_USE && adv->gpu->caps.concurrent_managed)
		prefetch_on_use(adv, stream);
	for (size_t i = 0; i < adv->uses.n; i++) {
		adv->uses.at[i].tensor->used_op = adv->op_serial;
		adv->uses.at[i].tensor->flags &= ~(unsigned)UM_TENSOR_DEAD;
	}
	adv->stats.ops++;
	return 0;
}

int um_advisor_run(struct umadv *adv, um_stream stream, void (*fn)(void *), void *arg)
{
	struct um_sim_kernel k = {.fn = fn, .arg = arg};

	if (!adv->simulated)
		return -ENODEV;
	for (unsigned i = 0; i < UM_POOL_STREAMS; i++) {
		const struct um_announced *a = &adv->announced[i];

		if (a->access.cap && a->stream == stream) {
			k.ns = a->ns;
			k.access = a->access.at;
			k.n_access = (uint32_t)a->access.n;
		}
	}
	return um_sim_run(adv->gpu, stream, &k) ? -EIO : 0;
}

int um_advisor_iter(struct umadv *adv, const char *name)
{
	struct um_event e = {.kind = UM_EV_ITER};

	if (adv->hinted) {
		adv->stats.hinted_iterations++;
		if (adv->stats.first_hinted_iteration == UINT64_MAX && adv->iteration)
			adv->stats.first_hinted_iteration = adv->iteration - 1;
	}
	adv->hinted = 0;
	um_recorder_take(&adv->recorder, &adv->last);
	e.iter.n = adv->iteration;
	e.iter.name = name;
	feed(adv, &e);
	if (adv->executor) {
		if (adv->iteration)
			um_advisor_learn(adv);
		else if (adv->warm.sched.ops.n)
			um_advisor_start_warm(adv);
	}
	adv->misplaced = 0;
	adv->iter_ops = 0;
	adv->iteration++;
	adv->stats.iterations = adv->iteration;
	return 0;
}

uint64_t um_advisor_hints(const struct umadv *adv)
{
	return adv->stats.hints_issued + (adv->executor ? um_executor_queued(adv->executor) : 0);
}

void um_advisor_stats(struct umadv *adv, struct umadv_stats *out)
{
	*out = adv->stats;
	if (adv->executor) {
		struct um_executor_counts c;

		um_executor_counts(adv->executor, &c);
		out->hints_issued += c.issued;
		out->hints_refused += c.refused;
		out->hints_dropped += c.dropped;
		out->prefetch_bytes += c.prefetch_bytes;
		out->evict_bytes += c.evict_bytes;
		out->discard_bytes += c.discard_bytes;
	}
	if (adv->hinted) {
		out->hinted_iterations++;
		if (out->first_hinted_iteration == UINT64_MAX && adv->iteration)
			out->first_hinted_iteration = adv->iteration - 1;
	}
	out->plan_ns = adv->plan.predicted_ns;
	out->in_core_ns = adv->plan.in_core_ns;
	out->budget_bytes = adv->budget;
}
