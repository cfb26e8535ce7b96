/* SPDX-License-Identifier: Apache-2.0
 *
 * work.h - streams, events, captures and graphs of the stand-in driver
 *
 * in    handles of programs
 * out   the objects that they represent; work, executed or captured
 * owns  the list of streams; captures, graphs and events are reference-counted
 *
 * All of it is guarded by um_standin_lock(). Under that lock the simulator is not called: helper threads run inside the
 * simulator, with its lock held, and take this one.
 */
#ifndef UM_STANDIN_WORK_H
#define UM_STANDIN_WORK_H

#include "standin/standin.h"

#define UM_LEGACY_STREAM ((void *)1)
#define UM_THREAD_STREAM ((void *)2)

/* For the _ptsz forms: the default stream is the thread's own. */
static inline void *um_ptsz(void *stream)
{
	return stream ? stream : UM_THREAD_STREAM;
}

struct um_capture; /* capture.c */
struct um_graph; /* graph.h */
struct um_node;

struct um_stream_handle {
	um_stream sim;
	struct um_standin *of; /* its device */
	unsigned flags;
	int priority;
	uint64_t id;
	struct um_capture *capture; /* its current or ended capture; a reference */
	UM_VEC(struct um_node *) last; /* capturing: dependencies of its next node */
};

struct um_cuda_event {
	struct um_cuda_event *next; /* destroyed and unreferenced */
	um_event_handle sim;
	struct um_standin *of; /* the device on which it can be recorded */
	unsigned refs; /* references of the program and of work */
	struct um_capture *capture; /* last recorded in it; a reference */
	UM_VEC(struct um_node *) last; /* its predecessors there */
};

/* stream.c: the stream of a handle, or NULL; the call is about its device from now on. Under lock. */
struct um_stream_handle *um_stream_find(void *handle);
/* Not locked. The simulator's stream of a call that cannot be captured: a hint, a wait, a question. On a stream that
 * captures it breaks the capture. CUDA error code. */
int um_stream_uncaptured(void *stream, um_stream *sim);
/* Does it on a stream of the simulator. Takes the work's references, also on failure. `wait`: of copies only, as the
 * calls without Async do. */
int um_work_run(um_stream stream, const struct um_work *work, int wait);
/* The same on a driver stream, captured if that captures. */
int um_work_do(void *stream, const struct um_work *work, int wait);
void um_work_keep(const struct um_work *work); /* one more reference */
void um_work_drop(const struct um_work *work);

/* event.c. Locked. */
struct um_cuda_event *um_event_get(void *handle); /* one more reference, or NULL */
void um_cuda_event_put(struct um_cuda_event *e);
void um_events_reap(void); /* without lock: frees unreferenced ones */
um_event_handle um_standin_event(void *handle); /* the simulator's, or NULL */

/* capture.c. Locked. */
/* The capture that a stream is part of, or NULL. */
struct um_capture *um_capture_of(struct um_stream_handle *s);
void um_capture_put(struct um_capture *c);
/* 0: allowed; else an error: the work on `s` has broken a capture under way. */
int um_capture_guard(struct um_stream_handle *s);
/* The same for calls that concern all of the device: synchronizing, allocating. */
int um_capture_unsafe(void);
/* `s` captures: its work becomes a node, takes the references; or an error. */
int um_capture_add(struct um_stream_handle *s, const struct um_work *work);
/* Breaks the capture of `s`: returns the error code. */
int um_capture_break(struct um_stream_handle *s);
int um_capture_any(void); /* breaks all captures under way: 0 if there is none, else the error code */
void um_capture_leave(struct um_stream_handle *s); /* the stream is destroyed */
void um_capture_mark(struct um_cuda_event *e, struct um_stream_handle *s); /* recorded on `s`, or outside (NULL) */
int um_capture_wait(struct um_stream_handle *s, struct um_cuda_event *e); /* `s` joins the event's capture */
int um_capture_child(struct um_stream_handle *s, const struct um_graph *g); /* a graph launched on `s` */

#endif
