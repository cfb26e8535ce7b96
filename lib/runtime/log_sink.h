/* SPDX-License-Identifier: Apache-2.0
 *
 * log_sink.h - the library's own log (io/log.h), what the driver counts for it (gpu/counters.h), and marks for
 * a profiler (io/nvtx.h): who is told what, and when
 *
 * in    a context; where its iterations begin
 * out   a umlog file; marks
 * owns  the log
 *
 * Iteration path. The front desk holds the lock.
 */
#ifndef UM_RUNTIME_LOG_SINK_H
#define UM_RUNTIME_LOG_SINK_H

#include "gpu/counters.h"
#include "io/log.h"
#include "io/nvtx.h"
#include "replay/hint_results.h"
#include "umadvise.h"

struct um_log_sinks {
	struct um_log *log; /* NULL: none */
	struct um_nvtx nvtx;
	int marks; /* of more than iterations */
	int counters; /* they are ours */
	uint64_t lost; /* of their records, in the part at hand */
	struct umadv_stats before; /* as of the beginning of the part at hand */
};

/* Begins the log that the options ask for, if they do, and marks, if a profiler is there for them. What goes wrong is
 * said and counted. */
void um_log_sinks_open(struct umadv *adv);
/* Iteration `n` begins, called `name` (may be NULL): what was before is written. */
void um_log_sinks_iter(struct umadv *adv, uint64_t n, const char *name);
void um_log_sinks_close(struct umadv *adv);

/* Who hears at once of a hint that was given: um_hint_ears.given, for the context as its user. */
um_hint_ear *um_log_sinks_given(const struct um_log_sinks *r);

#endif
