/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/sinks.h"

#include <string.h>

void um_sinks_init(struct um_sinks *s, struct um_gpu *gpu, struct um_notices *notices)
{
	memset(s, 0, sizeof *s);
	s->notices = notices;
	um_activity_source_init(&s->activities, gpu);
}

static void open_trace(struct um_sinks *s, const char *path, const struct um_chosen_device *device,
		       struct um_fork_exit *process)
{
	struct um_diag diag;
	char line[800];

	if (um_fork_exit_claim_trace(process, path)) {
		um_notices_warn(s->notices, UM_WARN_TRACE,
				"no trace is written for this context: another context of the process writes %s", path);
		return;
	}
	um_diag_init(&diag, path);
	if (um_trace_sink_open(&s->trace, path, device->real ? device->gpu : NULL, &diag)) {
		um_diag_line(&diag, line, sizeof line);
		um_notices_warn(s->notices, UM_WARN_TRACE, "no trace is written: %s", line);
	}
}

struct log_listen {
	struct um_sinks *sinks;
	struct um_executor *executor;
};

static int listen_for_log(void *user, struct um_activity_sink *sink)
{
	const struct log_listen *l = user;

	return um_sinks_listen(l->sinks, l->executor, sink, 0);
}

void um_sinks_open(struct um_sinks *s, const struct um_options *options, const struct um_chosen_device *device,
		   struct um_fork_exit *process, struct um_executor *executor)
{
	struct log_listen l = {s, executor};
	const struct um_log_sinks_host host = {options, device, &s->activities, s->notices, listen_for_log, &l};

	if (options->pub.trace)
		open_trace(s, options->pub.trace, device, process);
	um_log_sinks_open(&s->log, &host);
}

static void report(void *user, const struct um_issued_hint *hint)
{
	struct um_sinks *s = user;

	um_activity_source_hint(&s->activities, hint);
}

static void mark(void *user, const struct um_issued_hint *hint)
{
	struct um_sinks *s = user;
	struct um_activity a = um_activity_source_hint_activity(&s->activities, hint);

	um_nvtx_hint(&s->log.nvtx, &a); /* a failed mark is not reported */
}

void um_sinks_hint(struct um_sinks *s, const struct um_issued_hint *hint)
{
	report(s, hint);
	if (s->log.marks)
		mark(s, hint);
}

int um_sinks_listen(struct um_sinks *s, struct um_executor *executor, struct um_activity_sink *sink, int watched)
{
	struct um_hint_listener listener = {report, s->log.marks ? mark : NULL, s};
	int err = executor && !um_activity_source_on(&s->activities) ? um_executor_listen(executor, &listener) : 0;

	return err ? err : um_activity_source_add(&s->activities, sink, watched);
}

void um_sinks_trace(struct um_sinks *s, const struct um_event *e, um_stream stream)
{
	if (um_trace_sink_feed(&s->trace, e, stream))
		um_notices_warn(s->notices, UM_WARN_TRACE, "the trace could not be written");
}

void um_sinks_close(struct um_sinks *s, const struct um_registry *registry, const struct umadv_stats *stats)
{
	um_log_sinks_close(&s->log, registry, stats);
	um_activity_source_fini(&s->activities);
	if (um_trace_sink_close(&s->trace))
		um_notices_warn(s->notices, UM_WARN_TRACE, "the trace could not be written");
}
