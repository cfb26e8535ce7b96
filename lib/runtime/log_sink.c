/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/log_sink.h"

#include "runtime/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void give_up(struct umadv *adv, int err)
{
	adv->stats.errors++;
	um_context_warn(adv, UM_WARN_RUN_LOG, "the run log could not be written: %s", strerror(-err));
}

static void mark(void *user, const struct um_hint_given *hint)
{
	const struct umadv *adv = user;
	struct um_activity a = um_activity_source_hint_as(&adv->telling, hint);

	um_nvtx_hint(&adv->reporting.nvtx, &a); /* a mark that is missing is missing */
}

um_hint_ear *um_log_sinks_given(const struct um_log_sinks *r)
{
	return r->marks ? mark : NULL;
}

/* Before the log: who listens first says who hears of hints at once. */
static void open_marks(struct umadv *adv)
{
	struct um_log_sinks *r = &adv->reporting;
	enum umadv_nvtx nvtx = adv->options.pub.nvtx;

	if (nvtx == UMADV_NVTX_OFF || !um_nvtx_open(&r->nvtx) || nvtx == UMADV_NVTX_ITERATIONS)
		return;
	r->marks = 1;
	if (um_context_listen(adv, &r->nvtx.sink)) {
		adv->stats.errors++;
		um_context_warn(adv, UM_WARN_RUN_LOG, "iterations alone are marked: no memory");
	}
}

static int ignore(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	(void)a;
	return 0;
}

/* Before the log, whose first line says whether they are in it. */
static void open_counters(struct umadv *adv)
{
	char why[200] = "they are added to the run log, and UMADVISE_RUN_LOG names none";

	if (!adv->options.pub.counters)
		return;
	if (adv->options.pub.run_log && adv->options.pub.device != UMADV_DEVICE_AUTO)
		snprintf(why, sizeof why, "the context has no CUDA device");
	else if (adv->options.pub.run_log && *adv->gpu->caps.why)
		snprintf(why, sizeof why, "%s", adv->gpu->caps.why);
	else if (adv->options.pub.run_log)
		adv->reporting.counters =
			!um_counters_open((int64_t)um_activity_source_now(&adv->telling), why, sizeof why);
	if (adv->reporting.counters)
		return;
	adv->stats.errors++;
	um_context_warn(adv, UM_WARN_COUNTERS, "no counters of unified memory: %s", why);
}

/* What the driver has told goes to the log, `last`: all of it; without a log, nowhere. */
static void take_counters(struct umadv *adv, int last)
{
	struct um_log_sinks *r = &adv->reporting;
	struct um_activity_sink nowhere = {ignore};
	uint64_t lost = 0;
	int code;

	if (!r->counters)
		return;
	code = um_counters_take((int64_t)um_activity_source_now(&adv->telling), last,
				r->log ? um_log_sink(r->log) : &nowhere, &lost);
	r->lost += lost;
	if (last)
		r->counters = 0;
	if (!code)
		return;
	adv->stats.errors++;
	um_context_warn(adv, UM_WARN_COUNTERS, "counters of unified memory may be missing: CUPTI error %d", code);
}

static void open_log(struct umadv *adv)
{
	struct um_capture_library l = {.simulated = adv->gpu->caps.virtual_time,
				       .counters = adv->reporting.counters,
				       .pid = (uint64_t)getpid(),
				       .capacity_bytes = adv->gpu->caps.capacity,
				       .budget_bytes = adv->budget};
	struct um_log_sinks *r = &adv->reporting;
	struct um_diag diag;
	char line[800];

	if (!adv->options.pub.run_log)
		return;
	snprintf(l.version, sizeof l.version, "libumadvise %s", umadv_version());
	snprintf(l.device, sizeof l.device, "%s", adv->gpu->caps.name);
	snprintf(l.why, sizeof l.why, "%s", adv->gpu->caps.why);
	snprintf(l.strategy, sizeof l.strategy, "%s", um_strategy_name(adv->options.strategy));
	if (um_log_open(&r->log, adv->options.pub.run_log, &l, adv->options.pub.run_log_bytes,
			(int64_t)um_activity_source_now(&adv->telling), &diag)) {
		r->log = NULL;
		adv->stats.errors++;
		um_diag_line(&diag, line, sizeof line);
		um_context_warn(adv, UM_WARN_RUN_LOG, "no run log is written: %s", line);
	} else if (um_context_listen(adv, um_log_sink(r->log))) {
		give_up(adv, -ENOMEM);
	}
	if (r->log && um_log_other_path(r->log))
		um_context_log(adv, UMADV_LOG_WARN,
			       "the run log of this context is %s: another context or process writes %s",
			       um_log_other_path(r->log), adv->options.pub.run_log);
	um_context_stats(adv, &r->before);
}

void um_log_sinks_open(struct umadv *adv)
{
	open_marks(adv);
	open_counters(adv);
	open_log(adv);
	if (!adv->reporting.log)
		take_counters(adv, 1);
}

static void look(struct umadv *adv, int last, uint64_t *counts, uint64_t *levels)
{
	struct umadv_stats *b = &adv->reporting.before, s;

	take_counters(adv, last);
	um_context_stats(adv, &s);
	const uint64_t grown[UM_LIBRARY_COUNTS] = {
		[UM_LIBRARY_OPS] = s.ops - b->ops,
		[UM_LIBRARY_ISSUED] = s.hints_issued - b->hints_issued,
		[UM_LIBRARY_REFUSED] = s.hints_refused - b->hints_refused,
		[UM_LIBRARY_DROPPED] = s.hints_dropped - b->hints_dropped,
		[UM_LIBRARY_PREFETCH] = s.prefetch_bytes - b->prefetch_bytes,
		[UM_LIBRARY_EVICT] = s.evict_bytes - b->evict_bytes,
		[UM_LIBRARY_DISCARD] = s.discard_bytes - b->discard_bytes,
		[UM_LIBRARY_PLANS] = s.plans - b->plans,
		[UM_LIBRARY_LEFT] = s.divergences - b->divergences,
		[UM_LIBRARY_UNKNOWN] = s.unknown_pointers - b->unknown_pointers,
		[UM_LIBRARY_CAPTURED] = s.captured - b->captured,
		[UM_LIBRARY_ERRORS] = s.errors - b->errors,
		[UM_LIBRARY_LOST] = adv->reporting.lost,
	};
	const uint64_t held[UM_LIBRARY_LEVELS] = {
		[UM_LIBRARY_PLAN_NS] = s.plan_ns,	    [UM_LIBRARY_IN_CORE_NS] = s.in_core_ns,
		[UM_LIBRARY_PLAN_PEAK] = s.plan_peak_bytes, [UM_LIBRARY_TENSORS] = s.tensors_live,
		[UM_LIBRARY_LIVE] = s.bytes_live,	    [UM_LIBRARY_LIVE_PEAK] = s.bytes_live_peak,
		[UM_LIBRARY_MEASURED] = s.measured,
	};

	memcpy(counts, grown, sizeof grown);
	memcpy(levels, held, sizeof held);
	*b = s;
	adv->reporting.lost = 0;
}

void um_log_sinks_iter(struct umadv *adv, uint64_t n, const char *name)
{
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	int err;

	um_nvtx_iter(&adv->reporting.nvtx, n, name);
	if (!adv->reporting.log)
		return;
	look(adv, 0, counts, levels);
	err = um_log_turn(adv->reporting.log, (int64_t)um_activity_source_now(&adv->telling), counts, levels, n, name);
	if (err)
		give_up(adv, err);
}

/* What was not freed ends with the context, and others may get its addresses. */
static void close_marks(struct umadv *adv)
{
	struct um_log_sinks *r = &adv->reporting;

	for (struct um_tree_node *n = r->marks ? um_tree_first(&adv->registry.live) : NULL; n; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);
		struct um_activity a = {.kind = UM_ACT_TENSOR_END, .address = t->addr, .op = UM_ACT_NO_OP};

		um_activity_feed(&r->nvtx.sink, &a);
	}
	r->marks = 0;
	um_nvtx_close(&r->nvtx);
}

void um_log_sinks_close(struct umadv *adv)
{
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	int err;

	close_marks(adv);
	if (!adv->reporting.log)
		return;
	look(adv, 1, counts, levels);
	err = um_log_close(adv->reporting.log, (int64_t)um_activity_source_now(&adv->telling), counts, levels);
	adv->reporting.log = NULL;
	if (err)
		give_up(adv, err);
}
