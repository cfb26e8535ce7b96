/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context.h"

#include "runtime/discard_guard.h"
#include "runtime/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_IN_BLOCK 64 /* tensors of one block that are looked at for its next use */

/* --- hints -------------------------------------------------------------------------------------------------------- */

static void clip(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole)
{
	const struct umadv *adv = user;

	um_tensors_clip(&adv->tensors, addr, bytes, whole);
}

static struct um_discard_guard guard_of(struct umadv *adv)
{
	return (struct um_discard_guard){&adv->tensors.registry, &adv->tensors.pool, adv->op.uses, adv->op.n_uses,
					 um_iterations_before(&adv->iterations)};
}

static int may_discard(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	struct umadv *adv = user;
	const struct um_discard_guard guard = guard_of(adv);

	if (um_pending_launches_use(&adv->pending, addr, bytes))
		return 0;
	return um_discard_allowed(&guard, addr, bytes, waits);
}

static unsigned users(void *user, uint64_t addr, uint64_t bytes)
{
	const struct um_discard_guard guard = guard_of(user);

	return um_discard_users(&guard, addr, bytes);
}

static enum um_residency residency(void *user, uint64_t addr)
{
	const struct umadv *adv = user;

	return adv->op.beside_plan ? UM_RESIDENCY_UNKNOWN : um_horizon_residency(&adv->horizon, addr);
}

static void warn_host(struct umadv *adv)
{
	um_notices_warn(
		&adv->notices, UM_WARN_HOST,
		"host memory: evicted data take more than the %llu MiB that are available (%s): the program may be "
		"killed",
		(unsigned long long)(adv->device.host_budget >> 20), adv->device.host_limit);
}

/* Makes a hint call of prefetch-on-use, on_use.h. */
static void issue_hint(void *user, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream)
{
	struct umadv *adv = user;
	struct um_activity_source *activities = &adv->sinks.activities;
	struct um_gpu *gpu = adv->device.gpu;
	struct um_executor_counts *counts = &adv->replan.counts;
	int listened = um_activity_source_on(activities), in = kind == UM_ACTION_PREFETCH;
	struct um_location to = in ? um_on_device(gpu->caps.device) : um_on_host();
	struct um_issued_hint h = {.kind = kind, .addr = addr, .bytes = bytes, .op = adv->iterations.op_serial - 1};

	if (adv->on_use.exceeds)
		warn_host(adv);
	um_tensors_clip(&adv->tensors, &h.addr, &h.bytes, NULL);
	if (!h.bytes)
		return;
	h.begin = listened ? um_activity_source_now(activities) : 0;
	h.code = gpu->api->cudaMemPrefetchAsync(gpu, (void *)(uintptr_t)h.addr, h.bytes, to, 0, stream);
	if (listened) {
		h.end = um_activity_source_now(activities);
		um_sinks_hint(&adv->sinks, &h);
	}
	if (h.code) {
		counts->refused++;
		return;
	}
	counts->issued++;
	counts->issued_by.hints[UM_HINT_ANNOUNCED]++;
	*(in ? &counts->prefetch_bytes : &counts->evict_bytes) += h.bytes;
	counts->issued_by.prefetch_bytes[UM_HINT_ANNOUNCED] += in ? h.bytes : 0;
	adv->iterations.hinted |= !adv->replan.executor;
}

/* --- open, close -------------------------------------------------------------------------------------------------- */

static void log_environment(void *user, const char *line)
{
	um_notices_log(user, UMADV_LOG_WARN, "%s", line);
}

/* No live tensor lies in the block. */
static int is_dead(void *user, uint64_t addr)
{
	const struct umadv *adv = user;
	uint64_t bytes = UM_BLOCK_BYTES;

	um_registry_clip(&adv->tensors.registry, &addr, &bytes);
	return !bytes;
}

/* Of two tensors in a block: the block is used as soon as one of them is, and dies with the last of them. */
static struct um_predicted_next join(struct um_predicted_next a, struct um_predicted_next b)
{
	if (a.freed != b.freed)
		return a.freed ? b : a;
	return (a.op < b.op) != a.freed ? a : b;
}

/* What probably happens to the live tensors of the block next. A block of many small tensors is always in use. */
static struct um_predicted_next next_use(void *user, uint64_t addr)
{
	const struct umadv *adv = user;
	const struct um_registry *r = &adv->tensors.registry;
	const struct um_tensor *t = um_registry_find(r, addr);
	struct um_tree_node *n = um_tree_ceil(&r->live, addr + 1, 0);
	struct um_predicted_next first = {.freed = 1};
	int most = MOST_IN_BLOCK;

	for (; t; t = t->parent)
		first = join(first, um_predictor_next(&adv->predictor, t));
	for (; n && n->a < addr + UM_BLOCK_BYTES; n = um_tree_next(n)) {
		if (!most--)
			return (struct um_predicted_next){.op = adv->predictor.n_ops + 1};
		t = um_tree_entry(n, struct um_tensor, node);
		first = join(first, um_predictor_next(&adv->predictor, t));
	}
	return first;
}

/* Where the block is when the confirmed plan begins that was followed until this iteration. */
static enum um_residency plan_begins(void *user, uint64_t addr)
{
	const struct umadv *adv = user;
	const struct um_replan *r = &adv->replan;
	const struct um_compiled_plan *p = &r->program;
	size_t k;

	if (!p->resident || !um_follow_is_confirmed(r->state) || um_follow_waits(r->state))
		return UM_RESIDENCY_UNKNOWN;
	k = um_compiled_plan_find(p, addr);
	if (k == p->blocks.n || p->blocks.at[k] != addr)
		return UM_RESIDENCY_UNKNOWN;
	return p->resident[k] ? UM_RESIDENT : UM_NOT_RESIDENT;
}

static int open_horizon(struct umadv *adv)
{
	const struct um_profile *p = &adv->device.profile;
	uint64_t blocks = adv->device.budget / UM_BLOCK_BYTES;
	const struct um_horizon_host host = {.executor = adv->replan.executor,
					     .predictor = &adv->predictor,
					     .capacity = blocks < UM_HORIZON_MOST ? blocks : UM_HORIZON_MOST,
					     .new_ns = (int64_t)(p->c_pf + p->c_zero),
					     .in_ns = (int64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->h2d * p->eta)),
					     .out_ns = (int64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->d2h * p->eta)),
					     .dead = is_dead,
					     .next = next_use,
					     .plan_begins = plan_begins,
					     .user = adv};
	int err = um_predictor_init(&adv->predictor);

	if (!err)
		err = um_horizon_init(&adv->horizon, &host);
	if (!err)
		um_replan_predicts(&adv->replan);
	return err;
}

/* Opens the executor, prefetch-on-use, or both, as the strategy needs. 0 or -ENOMEM. Both are opened only if the device
 * memory is the budget: otherwise both would have to agree on the resident blocks. */
static int open_hints(struct umadv *adv)
{
	const struct um_chosen_device *d = &adv->device;
	struct um_executor_host host = {.may_discard = may_discard,
					.residency = residency,
					.users = users,
					.clip = clip,
					.user = adv,
					.streams = &adv->tensors.pool.streams};
	enum um_strategy strategy = adv->options.strategy;
	int err = 0;

	if (!um_gpu_takes_hints(d->gpu) || strategy == UM_STRATEGY_ON_DEMAND)
		return 0;
	if (strategy == UM_STRATEGY_PREFETCH_ON_USE) {
		err = um_on_use_init(&adv->on_use, d->gpu, d->larger ? d->budget / UM_BLOCK_BYTES : UINT64_MAX,
				     issue_hint, adv);
		return err || !d->host_budget ? err
					      : um_on_use_limit_host(&adv->on_use, d->host_budget / UM_BLOCK_BYTES);
	}
	err = um_replan_open(&adv->replan, &host);
	if (err || strategy != UM_STRATEGY_LOOKAHEAD || !adv->replan.executor || d->larger)
		return err;
	um_on_use_init(&adv->on_use, d->gpu, UINT64_MAX, issue_hint, adv);
	err = um_on_use_skip_resident(&adv->on_use, d->budget / UM_BLOCK_BYTES);
	return err ? err : open_horizon(adv);
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
	adv->fork_exit = (struct um_fork_exit){
		.generation = um_fork_generation, .lock = &adv->lock, .quiesce = quiesce, .context = adv};
	adv->device.gpu = gpu;
	err = um_options_take(&adv->options, options);
	um_notices_init(&adv->notices, &adv->options.pub);
	if (!gpu)
		um_environment_check(log_environment, &adv->notices);
	if (err == -EINVAL)
		um_notices_log(&adv->notices, UMADV_LOG_ERROR, "%s", adv->options.problem);
	if (!err)
		err = um_chosen_device_open(&adv->device, &adv->options, gpu, profile, &adv->notices);
	err = init(adv, err);
	if (!err)
		err = open_hints(adv);
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
		       (unsigned long long)(adv->device.budget >> 20), um_strategy_name(adv->options.strategy));
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
}

void um_context_close(struct umadv *adv)
{
	if (!adv || um_fork_exit_is_dead(&adv->fork_exit))
		return;
	um_fork_exit_remove(&adv->fork_exit);
	um_context_lock(adv);
	um_context_quiesce(adv);
	um_context_unlock(adv);
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

void um_context_begin(struct umadv *adv, const char *name, struct um_iteration *found)
{
	struct um_iterations *it = &adv->iterations;
	struct um_event e = {.kind = UM_EV_ITER, .iter = {.n = it->n, .name = name}};
	int other = 0;

	adv->op.plain = 0;
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
	if (adv->replan.executor && it->n && find_period(adv))
		other = 1;
	else if (adv->replan.executor && it->n)
		other = um_replan_end_iteration(&adv->replan, &it->last, it->n - 1);
	else if (adv->replan.executor && um_replan_is_loaded(&adv->replan))
		other = um_replan_start_warm(&adv->replan);
	if (other)
		um_context_forget_uses(adv);
	if (um_replan_is_quiet(&adv->replan))
		forget_resident(adv);
	adv->replan.misplaced = 0;
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
	if (adv->iterations.n && um_replan_start_warm(&adv->replan))
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
