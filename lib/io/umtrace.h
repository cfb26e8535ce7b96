/* SPDX-License-Identifier: Apache-2.0
 *
 * umtrace.h - umtrace files: a reader (file -> sink) and a writer (a sink)
 *
 * Format: doc/umtrace.md. Plain or gzip, detected by content, not by name. "-" is standard input / output. Tensor ids
 * in events are t + 1. The reader checks all rules of the format (ids unique, alive when used, ranges inside,
 * iterations without a gap, finite numbers, no duplicate keys) and refuses with file, line and reason. Lines over
 * UM_IO_LINE_MAX bytes are refused.
 *
 * A diag is initialised by the function that takes it and may be NULL. A range with `touched` is never passed on as
 * overwritten as a whole.
 */
#ifndef UM_IO_UMTRACE_H
#define UM_IO_UMTRACE_H

#include "base/diag.h"
#include "model/sink.h"

#define UM_IO_LINE_MAX (4u << 20)

/* Header keys. Strings are owned by the struct; um_umtrace_header_fini frees them. */
struct um_umtrace_header {
	char *source, *workload;
};

void um_umtrace_header_fini(struct um_umtrace_header *h);

/* Reads a whole file into `sink`. `header` may be NULL, else is filled before the first event and owned by the
 * caller (emptied again on failure).
 * 0 or -errno (-EINVAL: refused, see diag; what the sink returned otherwise). */
int um_umtrace_read(const char *path, struct um_sink *sink, struct um_umtrace_header *header, struct um_diag *diag);

/* The same from memory (for fuzzing). */
int um_umtrace_read_mem(const void *data, size_t bytes, struct um_sink *sink, struct um_umtrace_header *header,
			struct um_diag *diag);

/* A writer is a sink. It writes to a temporary beside `path` (gzip if the name ends in .gz) and renames at close. */
int um_umtrace_writer_open(struct um_sink **out, const char *path, const char *source, const char *workload,
			   struct um_diag *diag);
/* Ends the file: 0 and the file exists, or -errno and nothing remains. `keep` 0: discard it. */
int um_umtrace_writer_close(struct um_sink *writer, int keep);

/* Maximum number of events of a trace in memory, where an op takes some 200 bytes: a longer trace is refused
 * (-E2BIG). */
#define UM_TRACE_EVENTS (8u << 20)
#define UM_TRACE_USES (32u << 20)

struct um_trace_caps {
	uint64_t events, uses;
};

/* A whole trace in memory, for the player and `trace stat`. Owns copies of everything. */
struct um_trace;

int um_trace_load(struct um_trace **out, const char *path, struct um_diag *diag);
int um_trace_load_mem(struct um_trace **out, const void *data, size_t bytes, struct um_diag *diag);
int um_trace_load_capped(struct um_trace **out, const void *data, size_t bytes, const struct um_trace_caps *caps,
			 struct um_diag *diag);
/* A trace of the events that `feed` passes to the sink, with the header of `from` and marked as that is. 0 or what
 * `feed` returned. */
int um_trace_derive(struct um_trace **out, const struct um_trace *from, int (*feed)(void *user, struct um_sink *to),
		    void *user);
void um_trace_free(struct um_trace *t);
const struct um_umtrace_header *um_trace_header(const struct um_trace *t);
size_t um_trace_length(const struct um_trace *t);
/* The i-th event; everything it points to lives as long as the trace. */
const struct um_event *um_trace_event(const struct um_trace *t, size_t i);
/* The most bytes of live tensors at once, without rounding; of each, those that ops of its life touch (a look-up: the
 * blocks of its pages). */
uint64_t um_trace_peak_bytes(const struct um_trace *t);
uint64_t um_trace_iterations(const struct um_trace *t);
/* Iterations begin before these events (increasing), which are not written in the file, and the trace ends before event
 * `end`. 0 or -ENOMEM. */
int um_trace_insert_iterations(struct um_trace *t, const size_t *at, size_t n, size_t end);
int um_trace_is_marked(const struct um_trace *t); /* its iterations are those of the file */
/* The op that touches the most bytes, counted likewise: its event index (SIZE_MAX: there is no op) and those bytes. */
size_t um_trace_largest_op(const struct um_trace *t, uint64_t *bytes);

#endif
