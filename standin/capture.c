/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c - stream capture of the stand-in driver
 *
 * Work on a capturing stream becomes a node after the last one of that stream. An event recorded there remembers the
 * position, and a stream that waits for it joins the capture. Work that cannot be captured invalidates the capture:
 * from then on every call on it is an error, until it is ended.
 */
#include "standin/graph.h"

enum mode { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };
enum status { NOT_CAPTURING, CAPTURING, BROKEN };

struct um_capture {
	unsigned refs;
	struct um_graph *graph; /* NULL after the graph was returned */
	struct um_stream_handle *origin;
	UM_VEC(struct um_stream_handle *) members;
	uint64_t id;
	uint64_t thread;
	enum mode mode;
	int blocking; /* a member is ordered with the legacy default stream */
	int broken, ended;
};

static UM_VEC(struct um_capture *) active;
static uint64_t last_id;
static _Thread_local enum mode thread_mode;

static uint64_t this_thread(void)
{
	static _Thread_local uint64_t self;
	static uint64_t threads;

	if (!self)
		self = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return self;
}

void um_capture_put(struct um_capture *c)
{
	if (--c->refs)
		return;
	um_graph_free(c->graph);
	um_vec_fini(&c->members);
	free(c);
}

/* Ends the capture: its streams leave it at their next use. */
struct um_capture *um_capture_of(struct um_stream_handle *s)
{
	if (s->capture && s->capture->ended) {
		um_capture_put(s->capture);
		s->capture = NULL;
		um_vec_clear(&s->last);
	}
	return s->capture;
}

static int broken(struct um_capture *c, int why)
{
	if (c->broken)
		return UM_CU_CAPTURE_INVALIDATED;
	c->broken = 1;
	return why;
}

int um_capture_break(struct um_stream_handle *s)
{
	return broken(s->capture, UM_CU_CAPTURE_UNSUPPORTED);
}

int um_capture_guard(struct um_stream_handle *s)
{
	int err = UM_CUDA_OK;

	if (um_capture_of(s) || s->sim != UM_LEGACY_STREAM)
		return UM_CUDA_OK;
	for (size_t i = 0; i < active.n; i++)
		if (active.at[i]->blocking) {
			broken(active.at[i], 0);
			err = UM_CU_CAPTURE_IMPLICIT;
		}
	return err;
}

/* Does this thread's mode, or the capture's own, forbid calls of this kind? */
static int forbids(const struct um_capture *c)
{
	int mine = c->thread == this_thread();

	if (thread_mode == MODE_RELAXED)
		return 0;
	if (mine)
		return c->mode != MODE_RELAXED;
	return thread_mode == MODE_GLOBAL && c->mode == MODE_GLOBAL;
}

int um_capture_unsafe(void)
{
	int err = UM_CUDA_OK;

	for (size_t i = 0; i < active.n; i++)
		if (forbids(active.at[i])) {
			broken(active.at[i], 0);
			err = UM_CU_CAPTURE_UNSUPPORTED;
		}
	return err;
}

int um_capture_any(void)
{
	for (size_t i = 0; i < active.n; i++)
		broken(active.at[i], 0);
	return active.n ? UM_CU_CAPTURE_UNSUPPORTED : UM_CUDA_OK;
}

/* --- what streams are part of it ---------------------------------------------------------------------------------- */

static int join(struct um_capture *c, struct um_stream_handle *s)
{
	if (um_vec_push(&c->members, s))
		return UM_CUDA_NO_MEMORY;
	s->capture = c;
	c->refs++;
	um_vec_clear(&s->last);
	c->blocking |= !(s->flags & UM_STREAM_NON_BLOCKING);
	return UM_CUDA_OK;
}

void um_capture_leave(struct um_stream_handle *s)
{
	struct um_capture *c = um_capture_of(s);

	if (!c)
		return;
	broken(c, 0);
	for (size_t i = 0; i < c->members.n; i++)
		if (c->members.at[i] == s)
			c->members.at[i] = c->members.at[--c->members.n];
	if (c->origin == s) { /* it can no longer be ended */
		c->origin = NULL;
		c->ended = 1;
		for (size_t i = 0; i < active.n; i++)
			if (active.at[i] == c)
				active.at[i] = active.at[--active.n];
	}
	s->capture = NULL;
	um_capture_put(c);
}

static int after_also(struct um_stream_handle *s, struct um_node *n)
{
	for (size_t i = 0; i < s->last.n; i++)
		if (s->last.at[i] == n)
			return UM_CUDA_OK;
	return um_vec_push(&s->last, n) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

/* --- work --------------------------------------------------------------------------------------------------------- */

/* Sets or clears the event's position in the capture. */
void um_capture_mark(struct um_cuda_event *e, struct um_stream_handle *s)
{
	struct um_capture *c = s ? s->capture : NULL;

	if (c)
		c->refs++;
	if (e->capture)
		um_capture_put(e->capture);
	e->capture = c;
	um_vec_clear(&e->last);
}

static int record(struct um_stream_handle *s, struct um_cuda_event *e)
{
	um_capture_mark(e, s);
	for (size_t i = 0; i < s->last.n; i++)
		if (um_vec_push(&e->last, s->last.at[i]))
			return UM_CUDA_NO_MEMORY;
	return UM_CUDA_OK;
}

int um_capture_wait(struct um_stream_handle *s, struct um_cuda_event *e)
{
	struct um_capture *c = um_capture_of(s);
	int err = UM_CUDA_OK;

	if (!e->capture)
		return broken(c, UM_CU_CAPTURE_ISOLATION);
	if (e->capture->ended)
		return c ? broken(c, UM_CU_CAPTURED_EVENT) : UM_CU_CAPTURED_EVENT;
	if (e->capture->broken)
		return UM_CU_CAPTURE_INVALIDATED;
	if (c && c != e->capture) {
		broken(e->capture, 0);
		return broken(c, UM_CU_CAPTURE_MERGE);
	}
	if (!c && s->sim == UM_LEGACY_STREAM)
		return broken(e->capture, UM_CU_CAPTURE_IMPLICIT);
	if (!c)
		err = join(e->capture, s);
	for (size_t i = 0; i < e->last.n && !err; i++)
		err = after_also(s, e->last.at[i]);
	return err;
}

static const enum um_node_type type_of[] = {
	[UM_WORK_KERNEL] = UM_NODE_KERNEL,
	[UM_WORK_COPY] = UM_NODE_COPY,
	[UM_WORK_SET] = UM_NODE_SET,
	[UM_WORK_HOST] = UM_NODE_HOST,
};

/* The next node of the stream depends on `n`. */
static int follow(struct um_stream_handle *s, struct um_node *n)
{
	um_vec_clear(&s->last);
	return um_vec_push(&s->last, n) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

int um_capture_add(struct um_stream_handle *s, const struct um_work *w)
{
	struct um_capture *c = s->capture;
	struct um_node *n;
	int err = c->broken ? UM_CU_CAPTURE_INVALIDATED : UM_CUDA_OK;

	if (err || w->kind == UM_WORK_RECORD || w->kind == UM_WORK_WAIT) {
		if (!err)
			err = w->kind == UM_WORK_RECORD ? record(s, w->event) : um_capture_wait(s, w->event);
		um_work_drop(w);
		return err;
	}
	n = um_node_add(c->graph, type_of[w->kind], s->last.at, s->last.n);
	if (!n) {
		um_work_drop(w);
		return UM_CUDA_NO_MEMORY;
	}
	return um_node_work(n, w) ? UM_CUDA_NO_MEMORY : follow(s, n);
}

int um_capture_child(struct um_stream_handle *s, const struct um_graph *g)
{
	struct um_capture *c = s->capture;
	struct um_graph *copy;
	struct um_node *n;

	if (c->broken)
		return UM_CU_CAPTURE_INVALIDATED;
	copy = um_graph_copy(g);
	n = copy ? um_node_add(c->graph, UM_NODE_GRAPH, s->last.at, s->last.n) : NULL;
	if (!n) {
		um_graph_free(copy);
		return UM_CUDA_NO_MEMORY;
	}
	n->child = copy;
	return follow(s, n);
}

/* --- begin and end ------------------------------------------------------------------------------------------------ */

static int start(struct um_stream_handle *s, int mode)
{
	struct um_capture *c;
	int err;

	if (s->sim == UM_LEGACY_STREAM)
		return UM_CU_CAPTURE_UNSUPPORTED;
	if (um_capture_of(s))
		return UM_CU_ILLEGAL_STATE;
	c = calloc(1, sizeof *c);
	if (!c)
		return UM_CUDA_NO_MEMORY;
	c->refs = 1; /* until it has been joined */
	c->graph = um_graph_new();
	c->origin = s;
	c->thread = this_thread();
	c->mode = (enum mode)mode;
	c->id = ++last_id;
	err = c->graph && !um_vec_reserve(&active, 1) ? join(c, s) : UM_CUDA_NO_MEMORY;
	if (!err)
		active.at[active.n++] = c;
	um_capture_put(c);
	return err;
}

UM_CALL(cuStreamBeginCapture_v2, void *stream, int mode)
{
	int err = um_standin_enter(__func__);
	struct um_stream_handle *s;

	if (err || mode < MODE_GLOBAL || mode > MODE_RELAXED)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	s = um_stream_find(stream);
	err = s ? start(s, mode) : UM_CU_INVALID_HANDLE;
	um_standin_unlock();
	return err;
}
UM_FORWARD(cuStreamBeginCapture_v2_ptsz, (void *s, int mode), cuStreamBeginCapture_v2(um_ptsz(s), mode))
UM_FORWARD(cuStreamBeginCapture, (void *s), cuStreamBeginCapture_v2(s, MODE_GLOBAL))
UM_FORWARD(cuStreamBeginCapture_ptsz, (void *s), cuStreamBeginCapture_v2(um_ptsz(s), MODE_GLOBAL))

/* Marks all predecessors of the nodes in `index`. Nodes are in topological order. */
static void mark_before(struct um_graph *g, struct um_node *const *last, size_t n)
{
	for (size_t i = 0; i < g->node.n; i++)
		g->node.at[i]->index = 0;
	for (size_t i = 0; i < n; i++)
		last[i]->index = 1;
	for (size_t i = g->node.n; i-- > 0;)
		for (size_t k = 0; g->node.at[i]->index && k < g->node.at[i]->after.n; k++)
			g->node.at[i]->after.at[k]->index = 1;
}

/* Have all other streams been joined to the stream that ends the capture? */
static int joined(struct um_capture *c)
{
	mark_before(c->graph, c->origin->last.at, c->origin->last.n);
	for (size_t i = 0; i < c->members.n; i++)
		for (size_t k = 0; k < c->members.at[i]->last.n; k++)
			if (!c->members.at[i]->last.at[k]->index)
				return 0;
	return 1;
}

static int finish(struct um_stream_handle *s, void **graph)
{
	struct um_capture *c = um_capture_of(s);
	int err = UM_CUDA_OK;

	if (!c)
		return UM_CU_ILLEGAL_STATE;
	if (c->origin != s)
		return broken(c, UM_CU_CAPTURE_UNMATCHED);
	if (c->mode != MODE_RELAXED && c->thread != this_thread())
		return broken(c, UM_CU_CAPTURE_WRONG_THREAD);
	if (c->broken)
		err = UM_CU_CAPTURE_INVALIDATED;
	else if (!joined(c))
		err = UM_CU_CAPTURE_UNJOINED;
	for (size_t i = 0; i < active.n; i++)
		if (active.at[i] == c)
			active.at[i] = active.at[--active.n];
	if (!err) {
		*graph = c->graph;
		c->graph = NULL;
	}
	c->ended = 1;
	um_capture_of(s);
	return err;
}

UM_CALL(cuStreamEndCapture, void *stream, void **graph)
{
	int err = um_standin_enter(__func__);
	struct um_stream_handle *s;

	if (err || !graph)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*graph = NULL;
	um_standin_lock();
	s = um_stream_find(stream);
	err = s ? finish(s, graph) : UM_CU_INVALID_HANDLE;
	um_standin_unlock();
	return err;
}
UM_FORWARD(cuStreamEndCapture_ptsz, (void *s, void **graph), cuStreamEndCapture(um_ptsz(s), graph))

UM_CALL(cuThreadExchangeStreamCaptureMode, int *mode)
{
	int err = um_standin_enter(__func__);
	enum mode old = thread_mode;

	if (err || !mode || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
		return err ? err : UM_CUDA_INVALID_VALUE;
	thread_mode = (enum mode) * mode;
	*mode = old;
	return UM_CUDA_OK;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

struct info {
	int status;
	unsigned long long id;
	void *graph;
	struct um_node *const *last;
	size_t n;
};

/* A query of the legacy default stream counts as a use. */
static int look(void *stream, struct info *out)
{
	struct um_stream_handle *s;
	struct um_capture *c;
	int err;

	*out = (struct info){NOT_CAPTURING, 0, NULL, NULL, 0};
	um_standin_lock();
	s = um_stream_find(stream);
	err = s ? um_capture_guard(s) : UM_CU_INVALID_HANDLE;
	c = err ? NULL : um_capture_of(s);
	if (c)
		*out = (struct info){c->broken ? BROKEN : CAPTURING, c->id, c->graph, s->last.at, s->last.n};
	um_standin_unlock();
	return err;
}

UM_CALL(cuStreamIsCapturing, void *stream, int *status)
{
	int err = um_standin_enter(__func__);
	struct info info;

	err = err ? err : !status ? UM_CUDA_INVALID_VALUE : look(stream, &info);
	if (!err)
		*status = info.status;
	return err;
}
UM_FORWARD(cuStreamIsCapturing_ptsz, (void *s, int *status), cuStreamIsCapturing(um_ptsz(s), status))

static int get_info(const char *name, void *stream, int *status, unsigned long long *id, void **graph,
		    struct um_node *const **last, const void **edges, size_t *n)
{
	int err = um_standin_enter(name);
	struct info info;

	err = err ? err : !status ? UM_CUDA_INVALID_VALUE : look(stream, &info);
	if (err)
		return err;
	*status = info.status;
	if (id)
		*id = info.id;
	if (graph)
		*graph = info.graph;
	if (last)
		*last = info.last;
	if (edges)
		*edges = NULL; /* plain ones, all of them */
	if (n)
		*n = info.n;
	return UM_CUDA_OK;
}

#define INFO_2 void *s, int *status, unsigned long long *id, void **graph, struct um_node *const **last, size_t *n
#define INFO_3                                                                                                         \
	void *s, int *status, unsigned long long *id, void **graph, struct um_node *const **last, const void **edges,  \
		size_t *n

UM_FORWARD(cuStreamGetCaptureInfo, (void *s, int *status, unsigned long long *id),
	   get_info(__func__, s, status, id, NULL, NULL, NULL, NULL))
UM_FORWARD(cuStreamGetCaptureInfo_ptsz, (void *s, int *status, unsigned long long *id),
	   cuStreamGetCaptureInfo(um_ptsz(s), status, id))
UM_FORWARD(cuStreamGetCaptureInfo_v2, (INFO_2), get_info(__func__, s, status, id, graph, last, NULL, n))
UM_FORWARD(cuStreamGetCaptureInfo_v2_ptsz, (INFO_2), cuStreamGetCaptureInfo_v2(um_ptsz(s), status, id, graph, last, n))
UM_FORWARD(cuStreamGetCaptureInfo_v3, (INFO_3), get_info(__func__, s, status, id, graph, last, edges, n))
UM_FORWARD(cuStreamGetCaptureInfo_v3_ptsz, (INFO_3),
	   cuStreamGetCaptureInfo_v3(um_ptsz(s), status, id, graph, last, edges, n))

/* Flags: 0 adds dependencies of the stream's next node, 1 replaces them. */
UM_CALL(cuStreamUpdateCaptureDependencies, void *stream, struct um_node **after, size_t n, unsigned flags)
{
	int err = um_standin_enter(__func__);
	struct um_stream_handle *s;

	if (err || flags > 1 || (n && !after))
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	s = um_stream_find(stream);
	if (!s || !um_capture_of(s))
		err = s ? UM_CU_ILLEGAL_STATE : UM_CU_INVALID_HANDLE;
	else if (flags)
		um_vec_clear(&s->last);
	for (size_t i = 0; i < n && !err; i++)
		err = after[i]->graph == s->capture->graph ? after_also(s, after[i]) : UM_CUDA_INVALID_VALUE;
	um_standin_unlock();
	return err;
}
UM_FORWARD(cuStreamUpdateCaptureDependencies_ptsz, (void *s, struct um_node **after, size_t n, unsigned flags),
	   cuStreamUpdateCaptureDependencies(um_ptsz(s), after, n, flags))
UM_FORWARD(cuStreamUpdateCaptureDependencies_v2,
	   (void *s, struct um_node **after, const void *edges, size_t n, unsigned flags),
	   ((void)edges, cuStreamUpdateCaptureDependencies(s, after, n, flags)))
UM_FORWARD(cuStreamUpdateCaptureDependencies_v2_ptsz,
	   (void *s, struct um_node **after, const void *edges, size_t n, unsigned flags),
	   ((void)edges, cuStreamUpdateCaptureDependencies(um_ptsz(s), after, n, flags)))

const struct um_entry um_capture_entries[] = {
	{"cuStreamBeginCapture", 10000, cuStreamBeginCapture, cuStreamBeginCapture_ptsz},
	{"cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz},
	{"cuStreamEndCapture", 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz},
	{"cuThreadExchangeStreamCaptureMode", 10010, cuThreadExchangeStreamCaptureMode, NULL},
	{"cuStreamIsCapturing", 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz},
	{"cuStreamGetCaptureInfo", 10010, cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz},
	{"cuStreamGetCaptureInfo", 11030, cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz},
	{"cuStreamGetCaptureInfo", 12030, cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz},
	{"cuStreamUpdateCaptureDependencies", 11030, cuStreamUpdateCaptureDependencies,
	 cuStreamUpdateCaptureDependencies_ptsz},
	{"cuStreamUpdateCaptureDependencies", 12030, cuStreamUpdateCaptureDependencies_v2,
	 cuStreamUpdateCaptureDependencies_v2_ptsz},
	{0},
};
