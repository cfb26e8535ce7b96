/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context.h"

#include "runtime/discard_guard.h"
#include "runtime/environment.h"
#include "runtime/fork_exit.h"

#include "gpu/device.h"
#include "gpu/null.h"
#include "devices/devices.h"
#include "base/text.h"
#include "io/profile_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void vlog(struct umadv *adv, enum umadv_log_level level, const char *fmt, va_list ap)
{
	char text[512], room[4 * sizeof text];
	const char *line = text;

	if (level > adv->options.pub.log_level)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	line = um_text_visible(text, room, sizeof room);
	if (adv->options.pub.log)
		adv->options.pub.log(adv->options.pub.log_user, level, line);
	else
		fprintf(stderr, "umadvise: %s\n", line);
}

void um_context_log(struct umadv *adv, enum umadv_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(adv, level, fmt, ap);
	va_end(ap);
}

void um_context_warn(struct umadv *adv, enum um_warned cause, const char *fmt, ...)
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

static void clip(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole)
{
	const struct umadv *adv = user;
	const struct um_arena_pool_region *r = um_arena_pool_region_at(&adv->pool, *addr, *bytes);

	if (r)
		*whole = (struct um_executor_range){r->addr, r->bytes};
	else
		um_registry_clip(&adv->registry, addr, bytes);
}

void um_context_clip(const struct umadv *adv, uint64_t *addr, uint64_t *bytes)
{
	if (!um_arena_pool_region_at(&adv->pool, *addr, *bytes))
		um_registry_clip(&adv->registry, addr, bytes);
}

static int may_discard(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	const struct umadv *adv = user;
	const struct um_discard_guard guard = {&adv->registry, &adv->pool, adv->uses, adv->n_uses,
					       adv->op_serial - adv->iter_ops};

	return um_discard_allowed(&guard, addr, bytes, waits);
}

/* A context without a device: allocations are host memory. */
static int open_none(struct umadv *adv, const char *why)
{
	int err = um_null_open(&adv->gpu, UINT64_MAX / 2, 0);

	if (err)
		return err;
	adv->gpu->caps.concurrent_managed = 0;
	snprintf(adv->gpu->caps.name, sizeof adv->gpu->caps.name, "none");
	snprintf(adv->gpu->caps.why, sizeof adv->gpu->caps.why, "%s", why);
	return 0;
}

/* The CUDA device of the process. What else is allocated on it needs room, too: some of what is free is left. */
static int open_cuda(struct umadv *adv)
{
	struct um_device_options options = {.ordinal = -1};
	char why[160] = "";
	int err = um_device_open(&adv->gpu, &options, why, sizeof why);

	if (err == -ENODEV) {
		um_context_log(adv, UMADV_LOG_WARN, "%s: no hints are issued", why);
		return open_none(adv, why);
	}
	if (err)
		return err;
	adv->cuda = 1;
	if (*adv->gpu->caps.why)
		um_context_log(adv, UMADV_LOG_WARN, "%s: %s", adv->gpu->caps.name, adv->gpu->caps.why);
	return 0;
}

/* The profile that was asked for. One that UMADVISE_PROFILE names and that cannot be read is ignored. */
static int named_profile(struct umadv *adv, const char *name)
{
	struct um_diag diag;
	char line[800];
	int err;

	um_diag_init(&diag, name);
	err = um_profile_get(name, &adv->profile, &diag);
	if (!err)
		return 0;
	um_diag_line(&diag, line, sizeof line);
	adv->profile_ignored = err != -ENOMEM && um_variable_is("UMADVISE_PROFILE", name);
	um_context_log(adv, adv->profile_ignored ? UMADV_LOG_WARN : UMADV_LOG_ERROR, "profile %s", line);
	if (adv->profile_ignored) {
		um_variable_ignored("UMADVISE_PROFILE", line, sizeof line);
		um_context_log(adv, UMADV_LOG_WARN, "%s", line);
	}
	return err;
}

/* How the device does things: as the user says, as the stand-in says, or as a device of this name is assumed to. */
static int find_profile(struct umadv *adv)
{
	const char *name = adv->options.pub.profile;
	const struct um_profile *assumed;
	int err = name ? named_profile(adv, name) : 0;

	if (name && !adv->profile_ignored)
		return err;
	if (adv->cuda && !um_device_standin_profile(adv->gpu, &adv->profile))
		return 0;
	if (adv->cuda && (assumed = um_profile_of_device(adv->gpu->caps.name))) {
		adv->profile = *assumed;
		return 0;
	}
	if (adv->cuda)
		um_context_log(adv, UMADV_LOG_INFO, "no profile of %s: taken for a v100; umadvise calibrate makes one",
			       adv->gpu->caps.name);
	adv->profile = *um_profile_find("v100");
	return 0;
}

static int open_device(struct umadv *adv, const struct um_profile *profile)
{
	const struct umadv_options *o = &adv->options.pub;
	int err = 0, too_small = o->budget && o->budget < UM_BLOCK_BYTES;

	if (!adv->gpu && o->device == UMADV_DEVICE_AUTO)
		err = open_cuda(adv);
	else if (!adv->gpu && o->device == UMADV_DEVICE_NONE)
		err = open_none(adv, "no device was asked for");
	if (profile)
		adv->profile = *profile;
	else if (!err)
		err = find_profile(adv);
	if (!err && !adv->gpu) {
		struct um_simulator_options so = {.profile = &adv->profile,
						  .capacity = too_small ? UM_BLOCK_BYTES : o->budget,
						  .poison = o->check != UMADV_CHECK_OFF,
						  .check = o->check == UMADV_CHECK_ON};

		err = um_simulator_find("sim")->open(&adv->gpu, &so);
		adv->simulated = !err;
	}
	if (err)
		return err;
	adv->real = adv->gpu->caps.concurrent_managed && !adv->gpu->caps.virtual_time;
	adv->budget = o->budget ? o->budget : adv->gpu->caps.capacity;
	if (!o->budget && adv->real)
		adv->budget -= adv->budget / 20; /* others allocate there, too */
	if (too_small) {
		adv->options.strategy = UM_STRATEGY_ON_DEMAND;
		um_context_log(adv, UMADV_LOG_WARN,
			       "no hints: the budget of %llu bytes is less than one block of %llu MiB",
			       (unsigned long long)o->budget, UM_BLOCK_BYTES >> 20);
	}
	return 0;
}

static void open_trace(struct umadv *adv)
{
	const char *path = adv->options.pub.trace;
	struct um_diag diag;
	char line[800];

	if (!path)
		return;
	if (um_process_claim_trace(adv)) {
		um_context_warn(adv, UM_WARN_TRACE,
				"no trace of this context is written: another context of the process writes %s", path);
		return;
	}
	um_diag_init(&diag, path);
	if (um_trace_sink_open(&adv->tracing, path, adv->real ? adv->gpu : NULL, &diag)) {
		um_diag_line(&diag, line, sizeof line);
		um_context_warn(adv, UM_WARN_TRACE, "no trace is written: %s", line);
	}
}

static void say_environment(void *user, const char *line)
{
	um_context_log(user, UMADV_LOG_WARN, "%s", line);
}

/* The default budget is no limit: it leaves room for others. */
int um_context_device_is_larger(const struct umadv *adv)
{
	return adv->options.pub.budget && adv->budget / UM_BLOCK_BYTES < adv->gpu->caps.capacity / UM_BLOCK_BYTES;
}

/* How the strategy issues its hints: by an executor, or as ops are announced. 0 or -ENOMEM. */
static int open_hints(struct umadv *adv, struct um_executor_host *host)
{
	int larger = um_context_device_is_larger(adv);
	int err;

	if (!adv->gpu->caps.concurrent_managed)
		return 0;
	if (adv->options.strategy == UM_STRATEGY_PREFETCH_ON_USE)
		return um_on_use_init(&adv->on_use, adv->gpu, larger ? adv->budget / UM_BLOCK_BYTES : UINT64_MAX,
				      um_context_on_use, adv);
	if (!um_strategy_plans(adv->options.strategy))
		return 0;
	host->budget_blocks = larger ? adv->budget / UM_BLOCK_BYTES : 0;
	host->evict_ns = adv->profile.c_pf + adv->profile.c_pf_cpu;
	host->link_ns = (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (adv->profile.d2h * adv->profile.eta));
	err = um_executor_open(&adv->executor, adv->gpu, host);
	return err == -ENOMEM ? err : 0;
}

int um_context_open(struct umadv **out, const struct umadv_options *options, struct um_gpu *gpu,
		    const struct um_profile *profile)
{
	struct umadv *adv = calloc(1, sizeof *adv);
	struct um_executor_host host = {.may_discard = may_discard, .clip = clip};
	int err;

	if (!adv) {
		if (gpu)
			gpu->api->close(gpu);
		return -ENOMEM;
	}
	pthread_mutex_init(&adv->lock, NULL);
	adv->gpu = gpu;
	adv->simulated = gpu && gpu->caps.virtual_time && gpu->api->simulation;
	host.user = adv;
	host.streams = &adv->pool.streams;
	um_registry_init(&adv->registry);
	um_iteration_init(&adv->last);
	um_plan_init(&adv->plan);
	um_plan_init(&adv->warm);
	um_compiled_plan_init(&adv->program);
	um_cursor_init(&adv->cursor);
	adv->stats.first_hinted_iteration = UINT64_MAX;

	err = um_options_take(&adv->options, options);
	if (!gpu)
		um_environment_check(say_environment, adv);
	if (err == -EINVAL)
		um_context_log(adv, UMADV_LOG_ERROR, "%s", adv->options.problem);
	if (!err)
		err = open_device(adv, profile);
	um_arena_pool_init(&adv->pool, adv->gpu);
	um_op_timer_init(&adv->stopwatch, adv->gpu);
	um_activity_source_init(&adv->telling, adv->gpu);
	if (err)
		goto fail;
	err = um_recorder_init(&adv->recorder);
	if (!err)
		err = um_learner_init(&adv->learner);
	if (!err)
		err = open_hints(adv, &host);
	if (err)
		goto fail;
	open_trace(adv);
	um_log_sinks_open(adv);
	um_checking_open(adv);
	um_context_log(adv, UMADV_LOG_INFO, "%s, budget %llu MiB, strategy %s", adv->gpu->caps.name,
		       (unsigned long long)(adv->budget >> 20), um_strategy_name(adv->options.strategy));
	um_fork_add(adv);
	*out = adv;
	return 0;
fail:
	um_context_close(adv);
	return err;
}

static void add_counts(const struct umadv *adv, struct umadv_stats *to)
{
	struct um_executor_counts c;

	um_executor_counts(adv->executor, &c);
	to->hints_issued += c.issued;
	to->hints_refused += c.refused;
	to->hints_dropped += c.dropped;
	to->prefetch_bytes += c.prefetch_bytes;
	to->evict_bytes += c.evict_bytes;
	to->discard_bytes += c.discard_bytes;
}

static void hear(void *user, const struct um_hint_given *hint)
{
	struct umadv *adv = user;

	um_activity_source_hint(&adv->telling, hint);
}

static int add_listener(struct umadv *adv, struct um_activity_sink *sink, int watcher)
{
	struct um_hint_ears ears = {hear, um_log_sinks_given(&adv->reporting), adv};
	int err = adv->executor && !um_activity_source_on(&adv->telling) ? um_executor_listen(adv->executor, &ears) : 0;

	return err ? err : um_activity_source_add(&adv->telling, sink, watcher);
}

int um_context_watch(struct umadv *adv, struct um_activity_sink *sink)
{
	return add_listener(adv, sink, 1);
}

int um_context_listen(struct umadv *adv, struct um_activity_sink *sink)
{
	return add_listener(adv, sink, 0);
}

/* What it did stays counted. */
static void close_executor(struct umadv *adv)
{
	if (adv->executor)
		add_counts(adv, &adv->stats);
	um_executor_close(adv->executor);
	adv->executor = NULL;
}

void um_context_quiesce(struct umadv *adv)
{
	close_executor(adv);
	um_log_sinks_close(adv);
	um_activity_source_fini(&adv->telling);
	if (um_trace_sink_close(&adv->tracing))
		um_context_warn(adv, UM_WARN_TRACE, "the trace could not be written");
}

static void forget_closures(struct umadv *adv)
{
	for (size_t i = 0; i < adv->closures.n; i++)
		free(adv->closures.at[i].arg);
	um_vec_fini(&adv->closures);
}

void um_context_close(struct umadv *adv)
{
	if (!adv || adv->generation != um_fork_generation)
		return;
	um_fork_remove(adv);
	pthread_mutex_lock(&adv->lock);
	um_context_quiesce(adv);
	pthread_mutex_unlock(&adv->lock);
	if (adv->gpu) {
		um_op_timer_fini(&adv->stopwatch);
		um_on_use_fini(&adv->on_use);
		um_arena_pool_fini(&adv->pool);
		um_registry_fini(&adv->registry);
		adv->gpu->api->close(adv->gpu);
	}
	um_checking_fini(adv);
	um_learner_fini(&adv->learner);
	um_recorder_fini(&adv->recorder);
	um_cursor_fini(&adv->cursor);
	um_compiled_plan_fini(&adv->program);
	um_plan_fini(&adv->plan);
	um_plan_fini(&adv->warm);
	um_iteration_fini(&adv->last);
	um_vec_fini(&adv->resolved);
	um_vec_fini(&adv->known.given);
	um_vec_fini(&adv->known.found);
	um_vec_fini(&adv->outs);
	forget_closures(adv);
	um_vec_fini(&adv->touches);
	um_options_fini(&adv->options);
	pthread_mutex_destroy(&adv->lock);
	free(adv);
}

/* --- events, iterations, figures ---------------------------------------------------------------------------------- */

/* The iteration is not recorded any more. */
static void stop_recording(struct umadv *adv)
{
	const struct um_record_caps *c = &adv->recorder.caps;

	forget_closures(adv);
	um_context_warn(adv, UM_WARN_LONG,
			"iteration %llu is too long to be planned, after %u operations: at most %u operations, "
			"%u ranges and %u tensors are kept. Mark shorter iterations with umadv_iter",
			(unsigned long long)(adv->iteration - 1), adv->iter_ops, c->ops, c->uses, c->tensors);
}

void um_context_feed(struct umadv *adv, const struct um_event *e, um_stream stream)
{
	if (um_sink_feed(&adv->recorder.sink, e))
		adv->stats.errors++;
	if (adv->recorder.too_long)
		stop_recording(adv);
	um_context_trace(adv, e, stream);
}

void um_context_trace(struct umadv *adv, const struct um_event *e, um_stream stream)
{
	if (um_trace_sink_feed(&adv->tracing, e, stream))
		um_context_warn(adv, UM_WARN_TRACE, "the trace could not be written");
}

/* A device that was lost takes no more hints: the error is the program's own, and it will hear of it. */
static void look_after_device(struct umadv *adv)
{
	int code = adv->cuda ? um_device_lost(adv->gpu) : 0;

	if (code && adv->executor) {
		um_context_warn(adv, UM_WARN_LOST, "the device reported error %d: no more hints", code);
		close_executor(adv);
	}
	if (adv->executor && um_executor_stuck(adv->executor))
		um_context_warn(adv, UM_WARN_GATES,
				"hints and ops share a hardware queue: ops do not wait for hints any more. "
				"CUDA_DEVICE_MAX_CONNECTIONS=32 helps");
}

int um_context_iter(struct umadv *adv, const char *name)
{
	struct um_event e = {.kind = UM_EV_ITER};

	if (adv->hinted) {
		adv->stats.hinted_iterations++;
		if (adv->stats.first_hinted_iteration == UINT64_MAX && adv->iteration)
			adv->stats.first_hinted_iteration = adv->iteration - 1;
	}
	adv->hinted = 0;
	look_after_device(adv);
	if (um_activity_source_on(&adv->telling) && adv->executor)
		um_executor_tell(adv->executor);
	um_log_sinks_iter(adv, adv->iteration, name);
	um_recorder_take(&adv->recorder, &adv->last);
	e.iter.n = adv->iteration;
	e.iter.name = name;
	um_context_feed(adv, &e, NULL);
	if (adv->executor) {
		if (adv->iteration)
			um_context_learn(adv);
		else if (adv->warm.sched.ops.n)
			um_context_start_warm(adv);
	}
	adv->misplaced = 0;
	adv->iter_ops = 0;
	adv->iteration++;
	adv->stats.iterations = adv->iteration;
	return 0;
}

uint64_t um_context_hints(const struct umadv *adv)
{
	return adv->stats.hints_issued + (adv->executor ? um_executor_queued(adv->executor) : 0);
}

void um_context_stats(struct umadv *adv, struct umadv_stats *out)
{
	*out = adv->stats;
	if (adv->executor)
		add_counts(adv, out);
	if (adv->hinted) {
		out->hinted_iterations++;
		if (out->first_hinted_iteration == UINT64_MAX && adv->iteration)
			out->first_hinted_iteration = adv->iteration - 1;
	}
	out->plan_ns = adv->plan.predicted_ns / (adv->laps ? adv->laps : 1);
	out->in_core_ns = adv->plan.in_core_ns / (adv->laps ? adv->laps : 1);
	out->budget_bytes = adv->budget;
}
