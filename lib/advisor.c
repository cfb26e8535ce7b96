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

static int open_device(struct umadv *adv, struct um_gpu *gpu, const struct um_profile *profile)
{
	const struct umadv_options *o = &adv->options.pub;
	const char *name = o->profile ? o->profile : "v100";
	struct um_diag diag;
	char line[800];
	int err = 0;

	um_diag_init(&diag, name);
	if (profile)
		adv->profile = *profile;
	else
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
		struct um_sim_options so = {
			.profile = &adv->profile, .capacity = o->budget, .backed = 1, .poison = o->check};

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

int um_advisor_open(struct umadv **out, const struct umadv_options *options, struct um_gpu *gpu,
		    const struct um_profile *profile)
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
	err = open_device(adv, gpu, profile);
	if (err)
		goto fail;
	um_pool_init(&adv->pool, adv->gpu);
	err = um_recorder_init(&adv->recorder);
	if (!err)
		err = um_learner_init(&adv->learner);
	if (err)
		goto fail;
	if (adv->options.strategy == UM_STRATEGY_LOOKAHEAD && adv->gpu->caps.concurrent_managed) {
		host.evict_ns = adv->profile.c_pf + adv->profile.c_pf_cpu;
		host.link_ns = (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (adv->profile.d2h * adv->profile.eta));
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
	um_vec_fini(&adv->touches);
	um_options_fini(&adv->options);
	pthread_mutex_destroy(&adv->lock);
	free(adv);
}

/* --- events, iterations, figures ---------------------------------------------------------------------------------- */

void um_advisor_feed(struct umadv *adv, const struct um_event *e)
{
	if (um_sink_feed(&adv->recorder.sink, e))
		adv->stats.errors++;
	if (adv->writer && um_sink_feed(adv->writer, e)) {
		um_umtrace_writer_close(adv->writer, 0);
		adv->writer = NULL;
		um_advisor_warn(adv, UM_WARN_TRACE, "the trace could not be written");
	}
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
	um_advisor_feed(adv, &e);
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
