/* SPDX-License-Identifier: Apache-2.0
 *
 * log_sink.h - writes the run log (io/log.h) with the driver's counters (gpu/counters.h), and NVTX marks (io/nvtx.h)
 *
 * in    options, statistics, beginnings of iterations
 * out   a umlog file; marks
 * owns  the log
 *
 * Iteration path. The caller holds the context's lock.
 */
#ifndef UM_RUNTIME_LOG_SINK_H
#define UM_RUNTIME_LOG_SINK_H

#include "gpu/counters.h"
#include "io/log.h"
#include "io/nvtx.h"
#include "record/registry.h"
#include "runtime/activity_source.h"
#include "runtime/chosen_device.h"

struct um_log_sinks_host {
	const struct um_options *options;
	const struct um_chosen_device *device;
	const struct um_activity_source *activities; /* its clock is used */
	struct um_notices *notices;
	int (*listen)(void *user, struct um_activity_sink *sink); /* the sink receives activities from now on */
	void *user; /* until um_log_sinks_open returns */
};

struct um_log_sinks {
	struct um_log_sinks_host host; /* borrowed until close */
	struct um_log *log; /* NULL: none */
	struct um_nvtx nvtx;
	int marks; /* tensors, ops and hints are marked, not only iterations */
	int counters; /* the driver's counters are enabled for this context */
	uint64_t lost; /* counter records dropped in the current part */
	struct umadv_stats before; /* at the beginning of the current part */
};

/* Opens the run log if the options request one, and marks if a profiler is attached. Failures are logged and
 * counted. */
void um_log_sinks_open(struct um_log_sinks *r, const struct um_log_sinks_host *host);
/* Iteration `n` begins, named `name` (may be NULL): writes the previous part. `stats`: current. */
void um_log_sinks_iter(struct um_log_sinks *r, uint64_t n, const char *name, const struct umadv_stats *stats);
void um_log_sinks_close(struct um_log_sinks *r, const struct um_registry *registry, const struct umadv_stats *stats);

static inline int um_log_sinks_on(const struct um_log_sinks *r)
{
	return r->log != NULL;
}

#endif
