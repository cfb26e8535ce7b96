/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_sink.h - writes events as a umtrace, with measured times on a real device
 *
 * in    events; launches of ops
 * out   a umtrace file
 * owns  the writer, the latest op, which is not written yet, and the events after it
 *
 * A measured op is written at the next event, after waiting for the device. So a recorded program runs one op after the
 * other. On a stream that may be destroyed (app_stream.h) the end of an op is recorded only when the next op is on that
 * stream; until then, events wait. If it is on another one, the op's time is the program's. Not thread-safe: the caller
 * holds the lock.
 */
#ifndef UM_RUNTIME_TRACE_SINK_H
#define UM_RUNTIME_TRACE_SINK_H

#include "base/diag.h"
#include "base/vec.h"
#include "gpu/app_stream.h"
#include "model/sink.h"

#define UM_TRACE_SINK_LATER 1024 /* events that wait for the end of an op */

struct um_trace_sink {
	struct um_sink *writer; /* NULL: nothing is written */
	struct um_gpu *gpu; /* NULL: nothing is measured */
	um_event_handle start, end;
	int held;
	struct um_op op; /* held: its lists are the copies below */
	um_stream stream;
	int started; /* held: `start` was recorded */
	int ends_known; /* as in struct um_app_streams */
	UM_VEC(char) name, label;
	UM_VEC(struct um_use) uses;
	UM_VEC(struct um_tensor_id) relaunch;
	UM_VEC(struct um_workspace) ws;
	UM_VEC(struct um_event) later; /* held: the events after the op; they own their names */
};

/* 0, or -errno and nothing is written. `gpu` NULL: times are those that the program gives. */
int um_trace_sink_open(struct um_trace_sink *t, const char *path, struct um_gpu *gpu, struct um_diag *diag);

/* 0, or -errno: writing ends. */
int um_trace_sink_feed(struct um_trace_sink *t, const struct um_event *e, um_stream stream);
void um_trace_sink_launch(struct um_trace_sink *t); /* the op fed last is about to be launched */
int um_trace_sink_close(struct um_trace_sink *t);

#endif
