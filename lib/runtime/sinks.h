/* SPDX-License-Identifier: Apache-2.0
 *
 * sinks.h - outputs of a context: the umtrace, activities for sinks, the run log, NVTX marks
 *
 * in    events, ops, tensors, hints
 * out   files, calls of activity sinks
 * owns  the writers
 *
 * Op path: one branch if there are no outputs, otherwise the cost of the outputs. Not thread-safe: the caller holds the
 * context's lock.
 */
#ifndef UM_RUNTIME_SINKS_H
#define UM_RUNTIME_SINKS_H

#include "replay/executor.h"
#include "runtime/activity_source.h"
#include "runtime/fork_exit.h"
#include "runtime/log_sink.h"
#include "runtime/trace_sink.h"

struct um_sinks {
	struct um_trace_sink trace; /* the umtrace */
	struct um_activity_source activities; /* other sinks */
	struct um_log_sinks log; /* the run log, and marks */
	struct um_notices *notices; /* borrowed */
};

void um_sinks_init(struct um_sinks *s, struct um_gpu *gpu, struct um_notices *notices);

/* Opens the outputs that the options name; failures are logged and counted. `executor` (may be NULL) reports its
 * hints. */
void um_sinks_open(struct um_sinks *s, const struct um_options *options, const struct um_chosen_device *device,
		   struct um_fork_exit *process, struct um_executor *executor);

/* `sink` (borrowed) receives tensors, ops, uses and hints from now on. `watched`: it is the watcher of the simulated
 * device. 0, -ENOMEM, -ENOSPC. */
int um_sinks_listen(struct um_sinks *s, struct um_executor *executor, struct um_activity_sink *sink, int watched);

/* Reports a hint that the calling thread has issued. */
void um_sinks_hint(struct um_sinks *s, const struct um_issued_hint *hint);

static inline int um_sinks_listened(const struct um_sinks *s)
{
	return s->trace.writer || um_activity_source_on(&s->activities);
}

/* Writes an event to the trace. `stream`: of an op. */
void um_sinks_trace(struct um_sinks *s, const struct um_event *e, um_stream stream);

void um_sinks_close(struct um_sinks *s, const struct um_registry *registry, const struct umadv_stats *stats);

#endif
