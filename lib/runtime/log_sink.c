/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/log_sink.h"

#include "io/rank.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void report_error(struct um_log_sinks *r, int err)
{
	r->host.notices->errors++;
	um_notices_warn(r->host.notices, UM_WARN_RUN_LOG, "the run log could not be written: %s", strerror(-err));
}

/* Before the log: the executor's listener is set by the first sink, and hints must reach marks at once. */
static void open_marks(struct um_log_sinks *r)
{
	enum umadv_nvtx nvtx = r->host.options->pub.nvtx;

	if (nvtx == UMADV_NVTX_OFF || !um_nvtx_open(&r->nvtx) || nvtx == UMADV_NVTX_ITERATIONS)
		return;
	r->marks = 1;
	if (r->host.listen(r->host.user, &r->nvtx.sink)) {
		r->host.notices->errors++;
		um_notices_warn(r->host.notices, UM_WARN_RUN_LOG, "out of memory: only iterations are marked");
	}
}

static int ignore(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	(void)a;
	return 0;
}

/* Before the log, since its first line says whether it contains counters. */
static void open_counters(struct um_log_sinks *r)
{
	char why[200] = "they need a run log: set UMADVISE_RUN_LOG";

	if (!r->host.options->pub.counters)
		return;
	if (r->host.options->pub.run_log && r->host.options->pub.device != UMADV_DEVICE_AUTO)
		snprintf(why, sizeof why, "the context has no CUDA device");
	else if (r->host.options->pub.run_log && *r->host.device->gpu->caps.why)
		snprintf(why, sizeof why, "%s", r->host.device->gpu->caps.why);
	else if (r->host.options->pub.run_log)
		r->counters = !um_counters_open((int64_t)um_activity_source_now(r->host.activities), why, sizeof why);
	if (r->counters)
		return;
	r->host.notices->errors++;
	um_notices_warn(r->host.notices, UM_WARN_COUNTERS, "no counters of unified memory: %s", why);
}

/* Moves the driver's counter records to the log, `last`: all of them; without a log they are dropped. */
static void take_counters(struct um_log_sinks *r, int last)
{
	struct um_activity_sink dropped = {ignore};
	uint64_t lost = 0;
	int code;

	if (!r->counters)
		return;
	code = um_counters_take((int64_t)um_activity_source_now(r->host.activities), last,
				r->log ? um_log_sink(r->log) : &dropped, &lost);
	r->lost += lost;
	if (last)
		r->counters = 0;
	if (!code)
		return;
	r->host.notices->errors++;
	um_notices_warn(r->host.notices, UM_WARN_COUNTERS, "counters of unified memory may be missing: CUPTI error %d",
			code);
}

static void take_rank(struct um_capture_rank *to)
{
	struct um_rank r;

	um_rank_find(&r);
	if (!r.launcher)
		return;
	*to = (struct um_capture_rank){
		.is = 1, .rank = r.rank, .ranks = r.size, .local_rank = r.local_rank, .local_ranks = r.local_size};
	if (gethostname(to->host, sizeof to->host - 1))
		to->host[0] = '\0';
}

static void open_log(struct um_log_sinks *r)
{
	struct um_capture_library l = {.simulated = r->host.device->gpu->caps.virtual_time,
				       .counters = r->counters,
				       .pid = (uint64_t)getpid(),
				       .capacity_bytes = r->host.device->gpu->caps.capacity,
				       .budget_bytes = r->host.device->starved ? 0 : r->host.device->budget};
	struct um_diag diag;
	char line[800];

	if (!r->host.options->pub.run_log)
		return;
	snprintf(l.version, sizeof l.version, "libumadvise %s", umadv_version());
	snprintf(l.device, sizeof l.device, "%s", r->host.device->gpu->caps.name);
	snprintf(l.why, sizeof l.why, "%s", r->host.device->gpu->caps.why);
	snprintf(l.strategy, sizeof l.strategy, "%s", um_strategy_name(r->host.options->strategy));
	take_rank(&l.rank);
	if (um_log_open(&r->log, r->host.options->pub.run_log, &l, r->host.options->pub.run_log_bytes,
			(int64_t)um_activity_source_now(r->host.activities), &diag)) {
		r->log = NULL;
		r->host.notices->errors++;
		um_diag_line(&diag, line, sizeof line);
		um_notices_warn(r->host.notices, UM_WARN_RUN_LOG, "no run log is written: %s", line);
	} else if (r->host.listen(r->host.user, um_log_sink(r->log))) {
		report_error(r, -ENOMEM);
	}
	if (r->log && um_log_other_path(r->log))
		um_notices_log(r->host.notices, UMADV_LOG_WARN,
			       "the run log of this context is %s: another context or process writes %s",
			       um_log_other_path(r->log), r->host.options->pub.run_log);
	r->before.errors = r->host.notices->errors;
}

void um_log_sinks_open(struct um_log_sinks *r, const struct um_log_sinks_host *host)
{
	r->host = *host;
	open_marks(r);
	open_counters(r);
	open_log(r);
	if (!r->log)
		take_counters(r, 1);
}

static void read_values(struct um_log_sinks *r, int last, const struct umadv_stats *stats, uint64_t *counts,
			uint64_t *levels)
{
	struct umadv_stats *b = &r->before, s = *stats;

	take_counters(r, last);
	s.errors = r->host.notices->errors;
	const uint64_t increase[UM_LIBRARY_COUNTS] = {
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
		[UM_LIBRARY_SCHEDULED] = s.hints_scheduled - b->hints_scheduled,
		[UM_LIBRARY_PREDICTED] = s.hints_predicted - b->hints_predicted,
		[UM_LIBRARY_ANNOUNCED] = s.hints_announced - b->hints_announced,
		[UM_LIBRARY_SCHEDULED_BYTES] = s.prefetch_scheduled_bytes - b->prefetch_scheduled_bytes,
		[UM_LIBRARY_PREDICTED_BYTES] = s.prefetch_predicted_bytes - b->prefetch_predicted_bytes,
		[UM_LIBRARY_ANNOUNCED_BYTES] = s.prefetch_announced_bytes - b->prefetch_announced_bytes,
		[UM_LIBRARY_KEPT] = s.kept_bytes - b->kept_bytes,
		[UM_LIBRARY_LIMITED] = s.limited_iterations - b->limited_iterations,
		[UM_LIBRARY_LOST] = r->lost,
	};
	const uint64_t current[UM_LIBRARY_LEVELS] = {
		[UM_LIBRARY_PLAN_NS] = s.plan_ns,
		[UM_LIBRARY_IN_CORE_NS] = s.in_core_ns,
		[UM_LIBRARY_PLAN_PEAK] = s.plan_peak_bytes,
		[UM_LIBRARY_TENSORS] = s.tensors_live,
		[UM_LIBRARY_LIVE] = s.bytes_live,
		[UM_LIBRARY_LIVE_PEAK] = s.bytes_live_peak,
		[UM_LIBRARY_MEASURED] = s.measured,
		[UM_LIBRARY_PLAYED_NS] = s.played_ns,
		[UM_LIBRARY_BUDGET] = r->host.device->granted == UINT64_MAX ? 0 : s.budget_bytes,
	};

	memcpy(counts, increase, sizeof increase);
	memcpy(levels, current, sizeof current);
	*b = s;
	r->lost = 0;
}

void um_log_sinks_iter(struct um_log_sinks *r, uint64_t n, const char *name, const struct umadv_stats *stats)
{
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	int err;

	um_nvtx_iter(&r->nvtx, n, name);
	if (!r->log)
		return;
	read_values(r, 0, stats, counts, levels);
	err = um_log_next_part(r->log, (int64_t)um_activity_source_now(r->host.activities), counts, levels, n, name);
	if (err)
		report_error(r, err);
}

/* Ends the marks of live tensors: their addresses may be reused after the context is closed. */
static void close_marks(struct um_log_sinks *r, const struct um_registry *registry)
{
	for (struct um_tree_node *n = r->marks ? um_tree_first(&registry->live) : NULL; n; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);
		struct um_activity a = {.kind = UM_ACT_TENSOR_END, .address = t->addr, .op = UM_ACT_NO_OP};

		um_activity_feed(&r->nvtx.sink, &a);
	}
	r->marks = 0;
	um_nvtx_close(&r->nvtx);
}

void um_log_sinks_close(struct um_log_sinks *r, const struct um_registry *registry, const struct umadv_stats *stats)
{
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	int err;

	close_marks(r, registry);
	if (!r->log)
		return;
	read_values(r, 1, stats, counts, levels);
	err = um_log_close(r->log, (int64_t)um_activity_source_now(r->host.activities), counts, levels);
	r->log = NULL;
	if (err)
		report_error(r, err);
}
