/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context.h"

#include "runtime/environment.h"

#include "gpu/simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- open, close -------------------------------------------------------------------------------------------------- */

static void log_environment(void *user, const char *line)
{
	um_notices_log(user, UMADV_LOG_WARN, "%s", line);
}

/* Initialises all members, so that they can be closed after any failure. */
static int init(struct umadv *adv, int opened)
{
	const struct um_plan_host host = {.device = &adv->device, .options = &adv->options, .tensors = &adv->tensors};
	int err, err2;

	um_tensors_init(&adv->tensors, adv->device.gpu);
	um_sinks_init(&adv->sinks, adv->device.gpu, &adv->notices);
	err = um_iterations_init(&adv->iterations);
	err2 = um_replan_init(&adv->replan, &host, &adv->notices);
	return opened ? opened : err ? err : err2;
}

static void quiesce(void *context)
{
	um_context_quiesce(context);
}

static void abandon(void *context)
{
	struct umadv *adv = context;

	um_arbiter_abandon(&adv->sharing.arbiter);
}

int um_context_open(struct umadv **out, const struct umadv_options *options, struct um_gpu *gpu,
		    const struct um_profile *profile)
{
	struct umadv *adv = calloc(1, sizeof *adv);
	int err;

	if (!adv) {
		if (gpu)
			gpu->api->close(gpu);
		return -ENOMEM;
	}
	pthread_mutex_init(&adv->lock, NULL);
	adv->fork_exit = (struct um_fork_exit){.generation = um_fork_generation,
					       .lock = &adv->lock,
					       .quiesce = quiesce,
					       .abandon = abandon,
					       .context = adv};
	adv->device.gpu = gpu;
	err = um_options_take(&adv->options, options);
	um_notices_init(&adv->notices, &adv->options.pub);
	if (!gpu)
		um_environment_check(log_environment, &adv->notices);
	if (err == -EINVAL)
		um_notices_log(&adv->notices, UMADV_LOG_ERROR, "%s", adv->options.problem);
	if (!err)
		err = um_chosen_device_open(&adv->device, &adv->options, gpu, profile, &adv->notices);
	if (!err && !gpu)
		um_sharing_open(&adv->sharing, &adv->device, &adv->options, &adv->notices);
	err = init(adv, err);
	if (!err)
		err = um_context_open_hints(adv);
	if (err) {
		um_context_close(adv);
		return err;
	}
	um_nvtx_listen();
	adv->iterations.nvtx_marks = atomic_load(&um_nvtx_marks);
	um_sinks_open(&adv->sinks, &adv->options, &adv->device, &adv->fork_exit, adv->replan.executor);
	if (adv->options.pub.check == UMADV_CHECK_ON && adv->device.simulated)
		um_checking_open(&adv->checking, adv->device.gpu, &adv->notices);
	um_notices_log(&adv->notices, UMADV_LOG_INFO, "%s, budget %llu MiB, strategy %s", adv->device.gpu->caps.name,
		       (unsigned long long)(adv->device.starved ? 0 : adv->device.budget >> 20),
		       um_strategy_name(adv->options.strategy));
	if (adv->replan.executor || um_log_sinks_on(&adv->sinks.log))
		um_iterations_search(&adv->iterations);
	um_fork_exit_add(&adv->fork_exit);
	*out = adv;
	return 0;
}

void um_context_know_stream_ends(struct umadv *adv)
{
	adv->tensors.pool.streams.ends_known = 1;
	adv->replan.times.timer.ends_known = 1;
	adv->sinks.trace.ends_known = 1;
}

static int listen_to(struct umadv *adv, struct um_activity_sink *sink, int watched)
{
	adv->op.plain = 0;
	return um_sinks_listen(&adv->sinks, adv->replan.executor, sink, watched);
}

int um_context_watch(struct umadv *adv, struct um_activity_sink *sink)
{
	return listen_to(adv, sink, 1);
}

int um_context_listen(struct umadv *adv, struct um_activity_sink *sink)
{
	return listen_to(adv, sink, 0);
}

static void close_executor(struct umadv *adv)
{
	adv->op.plain = 0;
	if (adv->replan.executor && um_replan_close_executor(&adv->replan)) {
		adv->left_behind = 1;
		um_notices_warn(&adv->notices, UM_WARN_GATES, "the device does not answer: a hint is left behind");
	}
}

void um_context_quiesce(struct umadv *adv)
{
	struct umadv_stats stats;

	close_executor(adv);
	um_context_stats(adv, &stats);
	um_sinks_close(&adv->sinks, &adv->tensors.registry, &stats);
	um_sharing_close(&adv->sharing, adv->device.gpu);
}

void um_context_close(struct umadv *adv)
{
	if (!adv || um_fork_exit_is_dead(&adv->fork_exit))
		return;
	um_fork_exit_remove(&adv->fork_exit);
	um_context_lock(adv);
	um_context_quiesce(adv);
	um_context_unlock(adv);
	if (adv->joint.entered)
		um_joint_leave_all(adv->joint.context);
	um_replan_fini(&adv->replan);
	um_horizon_fini(&adv->horizon);
	um_predictor_fini(&adv->predictor);
	if (adv->device.gpu && !adv->left_behind) {
		um_on_use_fini(&adv->on_use);
		um_tensors_fini(&adv->tensors);
		um_chosen_device_close(&adv->device);
	}
	um_checking_fini(&adv->checking, &adv->notices);
	um_content_check_fini(&adv->contents);
	um_iterations_fini(&adv->iterations);
	um_op_state_fini(&adv->op);
	um_vec_fini(&adv->offers);
	um_options_fini(&adv->options);
	pthread_mutex_destroy(&adv->lock);
	free(adv);
}

/* --- events, iterations, figures ---------------------------------------------------------------------------------- */

void um_context_feed(struct umadv *adv, const struct um_event *e, um_stream stream)
{
	um_iterations_feed(&adv->iterations, e, &adv->notices);
	um_sinks_trace(&adv->sinks, e, stream);
}

/* Stops the hints after an error of the device. The program receives the error from its own CUDA calls. */
static void check_device(struct umadv *adv)
{
	int code = um_chosen_device_lost(&adv->device);

	if (code && adv->replan.executor) {
		um_notices_warn(&adv->notices, UM_WARN_LOST, "the device reported error %d: hints are switched off",
				code);
		close_executor(adv);
		um_sharing_close(&adv->sharing, adv->device.gpu);
	}
	if (adv->replan.executor && um_executor_stuck(adv->replan.executor))
		um_notices_warn(&adv->notices, UM_WARN_GATES,
				"prefetches are not submitted in time: for a while ops do not wait for them. If hints "
				"and ops share a hardware queue, CUDA_DEVICE_MAX_CONNECTIONS=32 helps");
}

/* Reports the outcome of hints and the begin of an iteration to the sinks. */
static void report_iteration(struct umadv *adv, const char *name)
{
	struct um_sinks *s = &adv->sinks;
	struct umadv_stats stats = {0};

	if (um_activity_source_on(&s->activities) && adv->replan.executor)
		um_executor_report_hints(adv->replan.executor);
	if (um_log_sinks_on(&s->log))
		um_context_stats(adv, &stats);
	um_log_sinks_iter(&s->log, adv->iterations.n, name, &stats);
}

/* An iteration ended. 1: the number of iterations that repeat together has changed, and the plan was dropped. */
static int find_period(struct umadv *adv)
{
	struct um_iterations *it = &adv->iterations;
	const struct um_iteration *last = &it->last;

	if (adv->options.strategy != UM_STRATEGY_LOOKAHEAD ||
	    !um_iteration_period_end(&it->period, last->incomplete ? 0 : last->signature, (uint32_t)last->ops.n))
		return 0;
	um_notices_log(&adv->notices, UMADV_LOG_INFO, "iterations repeat in groups of %u: a group is planned as one",
		       it->period.length);
	um_replan_forget(&adv->replan);
	if (it->period.length == 1) /* a period that has ended is no reason to expect the next iteration again */
		adv->replan.wrong_guesses = UM_MAX_GUESSES;
	return 1;
}

/* The iteration has no hints: page faults decide what is resident. */
static void forget_resident(struct umadv *adv)
{
	adv->horizon.partial = 1;
	um_horizon_forget(&adv->horizon);
	um_on_use_forget(&adv->on_use);
	adv->op.beside_plan = 0;
}

/* The time of the iteration that ends. It is not known where page faults served ops, or the CPU accessed tensors. Nor
 * does it compare with a plan whose ops were measured. */
static struct um_plan_hold_estimate estimate_iteration(struct umadv *adv)
{
	const struct um_iteration *last = &adv->iterations.last;
	const struct um_replan *r = &adv->replan;
	struct um_plan_hold_estimate e;
	int known = !um_horizon_lap(&adv->horizon, &e.ns, &e.stall_ns) && e.ns && um_horizon_knows(&adv->horizon) &&
		    !(r->host.device->real && r->times.measured);

	for (size_t i = 0; known && i < last->ops.n; i++)
		known = last->ops.at[i].stream != UM_STREAM_CPU;
	return known ? e : (struct um_plan_hold_estimate){0};
}

void um_context_begin(struct umadv *adv, const char *name, struct um_iteration *found)
{
	struct um_iterations *it = &adv->iterations;
	struct um_event e = {.kind = UM_EV_ITER, .iter = {.n = it->n, .name = name}};
	int other = 0;

	adv->op.plain = 0;
	if (um_context_joint_changed(adv) || adv->joint.due)
		um_context_take_joint(adv);
	check_device(adv);
	report_iteration(adv, name);
	if (adv->horizon.host.capacity)
		um_predictor_begin(&adv->predictor);
	if (!um_iterations_mark(it)) /* one within a group */
		return;
	um_iterations_end(it);
	if (found)
		um_iterations_replace(it, found);
	um_iterations_feed(it, &e, &adv->notices);
	if (um_sharing_has_news(&adv->sharing))
		um_context_share(adv);
	adv->replan.estimate = estimate_iteration(adv);
	if (adv->replan.executor && it->n && find_period(adv))
		other = 1;
	else if (adv->replan.executor && um_replan_is_loaded(&adv->replan) && !adv->device.starved)
		other = um_replan_start_warm(&adv->replan);
	else if (adv->replan.executor && it->n)
		other = um_replan_end_iteration(&adv->replan, &it->last, it->n - 1);
	if (other)
		um_context_forget_uses(adv);
	if (um_replan_is_quiet(&adv->replan))
		forget_resident(adv);
	adv->replan.displaced = adv->replan.misplaced_bytes;
	adv->replan.misplaced = adv->replan.misplaced_bytes = adv->replan.absent = 0;
	um_iterations_begin(it);
}

int um_context_iter(struct umadv *adv, const char *name)
{
	struct um_iterations *it = &adv->iterations;
	struct um_event e = {.kind = UM_EV_ITER, .iter = {.n = it->marked++, .name = name}};

	um_assert_locked(adv);
	um_iterations_are_marked(it);
	um_sinks_trace(&adv->sinks, &e, NULL);
	um_context_begin(adv, name, NULL);
	return 0;
}

void um_context_take_mark(struct umadv *adv)
{
	adv->iterations.nvtx_marks = atomic_load(&um_nvtx_marks);
	if (!adv->iterations.by_program)
		um_context_iter(adv, um_nvtx_mark_name());
}

int um_context_warm(struct umadv *adv, struct um_plan *plan)
{
	if (!adv->replan.executor) {
		um_plan_fini(plan);
		return 0;
	}
	adv->op.plain = 0;
	um_replan_load(&adv->replan, plan);
	if (adv->iterations.n && !adv->device.starved && um_replan_start_warm(&adv->replan))
		um_context_forget_uses(adv);
	return 0;
}

uint64_t um_context_hints(const struct umadv *adv)
{
	const struct um_replan *r = &adv->replan;

	return r->counts.issued + (r->executor ? um_executor_queued(r->executor) : 0);
}

struct um_hints_by_source um_context_hints_by_source(const struct umadv *adv)
{
	struct um_hints_by_source sum = adv->replan.counts.issued_by;

	if (adv->replan.executor)
		um_executor_queued_by(adv->replan.executor, &sum);
	return sum;
}

void um_context_stats(struct umadv *adv, struct umadv_stats *out)
{
	memset(out, 0, sizeof *out);
	out->ops = adv->op.n;
	out->host_accesses = adv->op.n_cpu;
	out->unknown_pointers = adv->op.n_unknown;
	out->captured = adv->op.n_captured;
	out->errors = adv->notices.errors;
	out->relaunches = adv->n_relaunches;
	out->relaunch_errors = adv->n_relaunch_errors;
	out->relaunch_mismatches = adv->contents.wrong;
	um_iterations_stats(&adv->iterations, out);
	um_tensors_stats(&adv->tensors, out);
	um_replan_stats(&adv->replan, out);
	out->plan_ns /= adv->iterations.period.length;
	out->played_ns /= adv->iterations.period.length;
	out->in_core_ns /= adv->iterations.period.length;
}

/* --- the simulated device ----------------------------------------------------------------------------------------- */

int um_context_run(struct umadv *adv, um_stream stream, void (*fn)(void *), void *arg)
{
	struct um_sim_kernel k = {.announced = 1, .fn = fn, .arg = arg};
	struct um_gpu *gpu = adv->device.gpu;

	um_assert_locked(adv);
	if (!adv->device.simulated)
		return -ENODEV;
	struct um_checked_run *run = um_checking_launch(&adv->checking, &adv->tensors.registry, stream, &k);
	int code = gpu->api->simulation->run(gpu, stream, &k);

	if (code)
		um_checking_cancel(&adv->checking, run);
	um_checking_report(&adv->checking, &adv->notices);
	return code == UM_CUDA_NO_MEMORY ? -ENOMEM : code ? -EIO : 0;
}

int um_context_finish(struct umadv *adv)
{
	struct um_gpu *gpu = adv->device.gpu;

	um_assert_locked(adv);
	if (!adv->device.simulated)
		return -ENODEV;
	int code = gpu->api->simulation->sync(gpu);

	um_checking_report(&adv->checking, &adv->notices);
	um_content_check_report(&adv->contents, &adv->tensors.registry, &adv->notices);
	return code ? -EIO : 0;
}
