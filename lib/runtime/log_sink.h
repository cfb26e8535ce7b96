/* SPDX-License-Identifier: Apache-2.0
 *
 * log_sink.h - the library's own log (io/log.h), what the driver counts for it (gpu/counters.h), and marks for
 * a profiler (io/nvtx.h): who is told what, and when
 *
 * in    options, statistics; where iterations begin
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
	const struct um_activity_source *activities; /* whose clock is used */
	struct um_notices *notices;
	int (*listen)(void *user, struct um_activity_sink *sink); /* the sink hears activities from now on */
	void *user; /* until um_log_sinks_open returns */
};

struct um_log_sinks {
	struct um_log_sinks_host host; /* borrowed until close */
	struct um_log *log; /* NULL: none */
	struct um_nvtx nvtx;
	int marks; /* of more than iterations */
	int counters; /* they are ours */
	uint64_t lost; /* of their records, in the part at hand */
	struct umadv_stats before; /* as of the beginning of the part at hand */
};

/* Begins the log that the options ask for, if they do, and marks, if a profiler is there for them. What goes wrong is
 * logged and counted. */
void um_log_sinks_open(struct um_log_sinks *r, const struct um_log_sinks_host *host);
/* Iteration `n` begins, called `name` (may be NULL): what was before is written. `stats`: now. */
void um_log_sinks_iter(struct um_log_sinks *r, uint64_t n, const char *name, const struct umadv_stats *stats);
void um_log_sinks_close(struct um_log_sinks *r, const struct um_registry *registry, const struct umadv_stats *stats);

static inline int um_log_sinks_on(const struct um_log_sinks *r)
{
	return r->log != NULL;
}

#endif
