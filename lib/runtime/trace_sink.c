/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/trace_sink.h"

#include "io/target.h"
#include "io/umtrace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int um_trace_sink_open(struct um_trace_sink *t, const char *path, struct um_gpu *gpu, struct um_diag *diag)
{
	int err;

	memset(t, 0, sizeof *t);
	um_diag_init(diag, path);
	err = um_target_check(path, "{\"umtrace\":");
	if (err)
		um_diag_set(diag, -err, 0, "cannot write: %s",
			    err != -EEXIST ? strerror(-err)
					   : "the file exists and is not a umtrace: remove it, or name another file");
	else
		err = um_umtrace_writer_open(&t->writer, path, "libumadvise", "program", diag);
	if (err) {
		t->writer = NULL;
		return err;
	}
	if (gpu && !gpu->api->cudaEventCreateWithFlags(gpu, &t->start, 0)) {
		if (!gpu->api->cudaEventCreateWithFlags(gpu, &t->end, 0))
			t->gpu = gpu;
		else
			gpu->api->cudaEventDestroy(gpu, t->start);
	}
	return 0;
}

static void finish(struct um_trace_sink *t)
{
	if (t->gpu) {
		t->gpu->api->cudaEventDestroy(t->gpu, t->start);
		t->gpu->api->cudaEventDestroy(t->gpu, t->end);
	}
	um_vec_fini(&t->name);
	um_vec_fini(&t->label);
	um_vec_fini(&t->uses);
	um_vec_fini(&t->relaunch);
	um_vec_fini(&t->ws);
	um_vec_fini(&t->later);
	memset(t, 0, sizeof *t);
}

static int stop(struct um_trace_sink *t, int err)
{
	um_umtrace_writer_close(t->writer, 0);
	finish(t);
	return err;
}

void um_trace_sink_launch(struct um_trace_sink *t)
{
	if (t->held)
		t->started = !t->gpu->api->cudaEventRecord(t->gpu, t->start, t->stream);
}

/* May a call use the handle of the op's stream if it does not name it? */
static int may_use(const struct um_trace_sink *t)
{
	return t->ends_known || um_app_stream_is_default(t->stream);
}

static const char **name_of(struct um_event *e)
{
	return e->kind == UM_EV_ALLOC ? &e->alloc.name : e->kind == UM_EV_ITER ? &e->iter.name : NULL;
}

/* Keeps an event for after the held op. 0; -ENOMEM; -ENOSPC: too many. */
static int keep(struct um_trace_sink *t, const struct um_event *e)
{
	struct um_event copy = *e;
	const char **name = name_of(&copy);

	if (t->later.n == UM_TRACE_SINK_LATER)
		return -ENOSPC;
	if (um_vec_reserve(&t->later, 1) || (name && *name && !(*name = strdup(*name))))
		return -ENOMEM;
	if (copy.kind != UM_EV_ITER)
		copy.free.tensor = NULL; /* it may be freed by then; also alloc's */
	t->later.at[t->later.n++] = copy;
	return 0;
}

/* Frees the kept events, and writes them first, unless the op before them failed with `err`. */
static int write_later(struct um_trace_sink *t, int err)
{
	for (struct um_event *e = t->later.at; e < t->later.at + t->later.n; e++) {
		const char **name = name_of(e);

		if (!err)
			err = um_sink_feed(t->writer, e);
		if (name)
			free((char *)(uintptr_t)*name);
	}
	um_vec_clear(&t->later);
	return err;
}

/* Writes the held op, with its measured time if there is one, then the kept events. The call names `stream`, or none:
 * UM_STREAM_NONE. */
static int flush(struct um_trace_sink *t, um_stream stream)
{
	struct um_event e = {.kind = UM_EV_OP};
	float ms;

	if (!t->held)
		return 0;
	t->held = 0;
	if (t->started && (t->stream == stream || may_use(t)) &&
	    !t->gpu->api->cudaEventRecord(t->gpu, t->end, t->stream) &&
	    !t->gpu->api->cudaEventSynchronize(t->gpu, t->end) &&
	    !t->gpu->api->cudaEventElapsedTime(t->gpu, &ms, t->start, t->end) && ms >= 0)
		t->op.cost.ns = (uint64_t)((double)ms * 1e6 + 0.5);
	e.op = t->op;
	return write_later(t, um_sink_feed(t->writer, &e));
}

/* Copies the op with its name and lists. */
static int hold(struct um_trace_sink *t, const struct um_op *op, um_stream stream)
{
	size_t n = strlen(op->name) + 1, n_label = op->label ? strlen(op->label) + 1 : 0;

	um_vec_clear(&t->name);
	um_vec_clear(&t->label);
	um_vec_clear(&t->uses);
	um_vec_clear(&t->relaunch);
	um_vec_clear(&t->ws);
	if (um_vec_reserve(&t->name, n) || um_vec_reserve(&t->label, n_label) ||
	    um_vec_reserve(&t->uses, op->n_uses + 1u) || um_vec_reserve(&t->relaunch, op->n_relaunch + 1u) ||
	    um_vec_reserve(&t->ws, op->n_ws + 1u))
		return -ENOMEM;
	memcpy(t->name.at, op->name, n);
	if (n_label)
		memcpy(t->label.at, op->label, n_label);
	if (op->n_uses)
		memcpy(t->uses.at, op->uses, op->n_uses * sizeof *op->uses);
	if (op->n_relaunch)
		memcpy(t->relaunch.at, op->relaunch, op->n_relaunch * sizeof *op->relaunch);
	if (op->n_ws)
		memcpy(t->ws.at, op->ws, op->n_ws * sizeof *op->ws);
	t->op = *op;
	t->op.name = t->name.at;
	t->op.label = n_label ? t->label.at : NULL;
	t->op.uses = t->uses.at;
	t->op.relaunch = t->relaunch.at;
	t->op.ws = t->ws.at;
	t->stream = stream;
	t->started = 0;
	t->held = 1;
	return 0;
}

int um_trace_sink_feed(struct um_trace_sink *t, const struct um_event *e, um_stream stream)
{
	int err;

	if (!t->writer)
		return 0;
	if (t->held && t->started && e->kind != UM_EV_OP && !may_use(t) && !keep(t, e))
		return 0;
	err = flush(t, e->kind == UM_EV_OP ? stream : UM_STREAM_NONE);
	if (!err)
		err = e->kind == UM_EV_OP && t->gpu ? hold(t, &e->op, stream) : um_sink_feed(t->writer, e);
	return err ? stop(t, err) : 0;
}

int um_trace_sink_close(struct um_trace_sink *t)
{
	int err;

	if (!t->writer)
		return 0;
	err = flush(t, UM_STREAM_NONE);
	if (err)
		return stop(t, err);
	err = um_umtrace_writer_close(t->writer, 1);
	finish(t);
	return err;
}
