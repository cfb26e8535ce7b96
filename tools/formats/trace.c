/* SPDX-License-Identifier: Apache-2.0
 *
 * A sink that stores events in an array, and lists and strings in an arena that never moves, so that an event's
 * pointers stay valid.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/vec.h"
#include "io/arena.h"
#include "io/umtrace.h"
#include "model/workspace.h"
#include "formats/trace_bytes.h"

struct um_trace {
	struct um_sink sink; /* first */
	struct um_umtrace_header header;
	UM_VEC(struct um_event) events;
	uint64_t uses; /* of all ops */
	struct um_trace_caps caps;
	struct um_arena arena;
	struct um_trace_bytes touched; /* while loading */
	uint64_t peak_bytes, iterations, largest_bytes;
	size_t largest; /* SIZE_MAX: no op */
	int inserted; /* its iterations are not those of the file */
};

static int keep_name(struct um_trace *t, const char **name)
{
	if (!*name)
		return 0;
	*name = um_arena_intern(&t->arena, *name);
	return *name ? 0 : -ENOMEM;
}

/* Copies a list of `n` elements; an empty list stays NULL or not, which `relaunch` distinguishes. */
static int keep_list(struct um_trace *t, const void *list, size_t n, size_t size, const void **out)
{
	static const uint64_t nothing;

	*out = n ? um_arena_copy(&t->arena, list, n * size) : list ? &nothing : NULL;
	return n && !*out ? -ENOMEM : 0;
}

/* An op of several algorithms needs at least that. */
static uint64_t smallest_workspace(const struct um_op *op)
{
	return op->n_ws ? op->ws[um_workspace_pick(op->ws, op->n_ws, 0)].bytes : 0;
}

static int keep_op(struct um_trace *t, struct um_op *op)
{
	const void *uses, *relaunch, *ws;
	uint64_t bytes;
	int rc = 0;

	bytes = 0;
	if (op->stream != UM_STREAM_CPU)
		rc = um_trace_bytes_op(&t->touched, op, &bytes);
	bytes += smallest_workspace(op);

	if (!rc)
		rc = keep_name(t, &op->name);
	if (!rc)
		rc = keep_name(t, &op->label);
	if (!rc)
		rc = keep_list(t, op->uses, op->n_uses, sizeof *op->uses, &uses);
	if (!rc)
		rc = keep_list(t, op->relaunch, op->n_relaunch, sizeof *op->relaunch, &relaunch);
	if (!rc)
		rc = keep_list(t, op->ws, op->n_ws, sizeof *op->ws, &ws);
	if (rc)
		return rc;
	op->uses = uses;
	op->relaunch = relaunch;
	op->ws = ws;
	if (t->largest == SIZE_MAX || bytes > t->largest_bytes) {
		t->largest = t->events.n;
		t->largest_bytes = bytes;
	}
	return 0;
}

static int keep(struct um_sink *sink, const struct um_event *event)
{
	struct um_trace *t = (struct um_trace *)sink;
	struct um_event ev = *event;
	int rc = 0;

	t->uses += ev.kind == UM_EV_OP ? ev.op.n_uses : 0;
	if (t->events.n >= t->caps.events || t->uses > t->caps.uses)
		return -E2BIG;
	switch (ev.kind) {
	case UM_EV_ALLOC:
		rc = keep_name(t, &ev.alloc.name);
		if (!rc)
			rc = um_trace_bytes_add(&t->touched, ev.alloc.id.v, ev.alloc.bytes);
		break;
	case UM_EV_OP:
		rc = keep_op(t, &ev.op);
		break;
	case UM_EV_ITER:
		rc = keep_name(t, &ev.iter.name);
		t->iterations++;
		break;
	case UM_EV_FREE:
	case UM_EV_DEAD: /* no line of a file has it */
		break;
	}
	return rc ? rc : um_vec_push(&t->events, ev);
}

static struct um_trace *trace_new(struct um_diag *diag, const char *name)
{
	struct um_trace *t = calloc(1, sizeof *t);

	if (!t) {
		if (diag)
			um_diag_init(diag, name);
		um_diag_set(diag, ENOMEM, 0, "out of memory");
		return NULL;
	}
	t->sink.feed = keep;
	t->largest = SIZE_MAX;
	t->caps = (struct um_trace_caps){UM_TRACE_EVENTS, UM_TRACE_USES};
	return t;
}

/* Of each tensor that is alive, the bytes that ops of its life touch. */
static void find_peak(struct um_trace *t)
{
	uint64_t live = 0, with;

	for (size_t i = 0; i < t->events.n; i++) {
		const struct um_event *e = &t->events.at[i];

		if (e->kind == UM_EV_ALLOC)
			live += um_trace_bytes_of(&t->touched, e->alloc.id.v);
		else if (e->kind == UM_EV_FREE)
			live -= um_trace_bytes_of(&t->touched, e->free.id.v);
		with = live + (e->kind == UM_EV_OP ? smallest_workspace(&e->op) : 0);
		t->peak_bytes = with > t->peak_bytes ? with : t->peak_bytes;
	}
}

static int trace_done(struct um_trace *t, int rc, struct um_trace **out)
{
	if (!rc)
		find_peak(t);
	um_trace_bytes_fini(&t->touched);
	if (rc)
		um_trace_free(t);
	else
		*out = t;
	return rc;
}

int um_trace_load(struct um_trace **out, const char *path, struct um_diag *diag)
{
	struct um_trace *t = trace_new(diag, path);

	return t ? trace_done(t, um_umtrace_read(path, &t->sink, &t->header, diag), out) : -ENOMEM;
}

int um_trace_load_mem(struct um_trace **out, const void *data, size_t bytes, struct um_diag *diag)
{
	struct um_trace *t = trace_new(diag, "memory");

	return t ? trace_done(t, um_umtrace_read_mem(data, bytes, &t->sink, &t->header, diag), out) : -ENOMEM;
}

int um_trace_load_capped(struct um_trace **out, const void *data, size_t bytes, const struct um_trace_caps *caps,
			 struct um_diag *diag)
{
	struct um_trace *t = trace_new(diag, "memory");

	if (!t)
		return -ENOMEM;
	t->caps = *caps;
	return trace_done(t, um_umtrace_read_mem(data, bytes, &t->sink, &t->header, diag), out);
}

/* 0 or -ENOMEM. */
static int copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

int um_trace_derive(struct um_trace **out, const struct um_trace *from, int (*feed)(void *user, struct um_sink *to),
		    void *user)
{
	struct um_trace *t = trace_new(NULL, "memory");
	int err;

	if (!t)
		return -ENOMEM;
	err = copy_text(&t->header.source, from->header.source);
	if (!err)
		err = copy_text(&t->header.workload, from->header.workload);
	if (!err)
		err = feed(user, &t->sink);
	t->inserted = from->inserted;
	return trace_done(t, err, out);
}

void um_trace_free(struct um_trace *t)
{
	if (!t)
		return;
	um_umtrace_header_fini(&t->header);
	um_vec_fini(&t->events);
	um_arena_fini(&t->arena);
	um_trace_bytes_fini(&t->touched);
	free(t);
}

const struct um_umtrace_header *um_trace_header(const struct um_trace *t)
{
	return &t->header;
}

size_t um_trace_length(const struct um_trace *t)
{
	return t->events.n;
}

const struct um_event *um_trace_event(const struct um_trace *t, size_t i)
{
	assert(i < t->events.n);
	return &t->events.at[i];
}

uint64_t um_trace_peak_bytes(const struct um_trace *t)
{
	return t->peak_bytes;
}

uint64_t um_trace_iterations(const struct um_trace *t)
{
	return t->iterations;
}

int um_trace_insert_iterations(struct um_trace *t, const size_t *at, size_t n, size_t end)
{
	size_t to;

	if (t->largest != SIZE_MAX && t->largest >= end)
		end = t->events.n; /* what is cut off is not like what stays */
	to = end + n;

	if (to > t->events.n && um_vec_reserve(&t->events, to - t->events.n))
		return -ENOMEM;
	t->events.n = to;
	for (size_t i = end, left = n; left; i--) {
		if (i < end)
			t->events.at[--to] = t->events.at[i];
		if (at[left - 1] != i)
			continue;
		left--;
		t->events.at[--to] = (struct um_event){.kind = UM_EV_ITER, .iter.n = left};
		if (t->largest != SIZE_MAX && t->largest >= i)
			t->largest++;
	}
	t->iterations = n;
	t->inserted = 1;
	return 0;
}

int um_trace_is_marked(const struct um_trace *t)
{
	return !t->inserted;
}

size_t um_trace_largest_op(const struct um_trace *t, uint64_t *bytes)
{
	*bytes = t->largest_bytes;
	return t->largest;
}
