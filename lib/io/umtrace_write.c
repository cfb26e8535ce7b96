/* SPDX-License-Identifier: Apache-2.0
 *
 * umtrace_write.c - writes a umtrace
 *
 * Each event becomes its line at once. A whole tensor is written as its id alone, so the writer remembers the sizes of
 * live tensors. `dead` has no line in the format and is omitted, which loses a permission, never content.
 */
#include <errno.h>
#include <stdlib.h>

#include "io/id_map.h"
#include "io/out.h"
#include "io/umtrace.h"
#include "io/uses_write.h"

struct writer {
	struct um_sink sink; /* first */
	struct um_out *out;
	struct um_id_map sizes; /* id -> bytes, of live tensors */
	uint64_t iterations; /* counted here: a feed may start at any iteration, a file starts at 0 */
};

static int write_alloc(struct writer *w, const struct um_event *ev)
{
	if (ev->alloc.id.v == 0 || um_id_map_find(&w->sizes, ev->alloc.id.v))
		return -EINVAL;
	if (um_id_map_add(&w->sizes, ev->alloc.id.v, ev->alloc.bytes))
		return -ENOMEM;
	um_out_str(w->out, "{\"ev\":\"alloc\",\"t\":");
	um_out_u64(w->out, ev->alloc.id.v - 1);
	um_out_str(w->out, ",\"bytes\":");
	um_out_u64(w->out, ev->alloc.bytes);
	um_out_key_str(w->out, ",\"name\":", ev->alloc.name);
	if (ev->alloc.role != UM_ROLE_OTHER)
		um_out_key_str(w->out, ",\"role\":", um_role_name(ev->alloc.role));
	um_out_str(w->out, "}\n");
	return 0;
}

static int write_free(struct writer *w, const struct um_event *ev)
{
	if (!um_id_map_find(&w->sizes, ev->free.id.v))
		return -EINVAL;
	um_id_map_remove(&w->sizes, ev->free.id.v);
	um_out_str(w->out, "{\"ev\":\"free\",\"t\":");
	um_out_u64(w->out, ev->free.id.v - 1);
	um_out_str(w->out, "}\n");
	return 0;
}

static uint64_t whole(const void *user, uint64_t id)
{
	const uint64_t *bytes = um_id_map_find(&((const struct writer *)user)->sizes, id);

	return bytes ? *bytes : 0;
}

static void write_relaunch(struct um_out *o, const struct um_op *op)
{
	if (!op->relaunchable)
		return;
	um_out_str(o, ",\"relaunch\":[");
	for (uint32_t i = 0; i < op->n_relaunch; i++) {
		um_out_str(o, i ? "," : "");
		um_out_u64(o, op->relaunch[i].v - 1);
	}
	um_out_str(o, "]");
}

static int write_op(struct writer *w, const struct um_event *ev)
{
	const struct um_op *op = &ev->op;
	struct um_uses_view view = {op->uses, op->n_uses, 1, w, whole};

	for (uint32_t i = 0; i < op->n_uses; i++)
		if (!um_id_map_find(&w->sizes, op->uses[i].id.v))
			return -EINVAL;
	um_out_str(w->out, op->stream == UM_STREAM_CPU ? "{\"ev\":\"host\",\"name\":" : "{\"ev\":\"op\",\"name\":");
	um_out_json_str(w->out, op->name);
	um_out_key_str(w->out, ",\"label\":", op->label);
	um_uses_write(w->out, &view);
	um_cost_write(w->out, &op->cost);
	write_relaunch(w->out, op);
	um_ws_write(w->out, op->ws, op->n_ws);
	um_launch_write(w->out, op->stream, op->phase, um_op_is_collective(op));
	um_out_str(w->out, "}\n");
	return 0;
}

static int feed(struct um_sink *sink, const struct um_event *ev)
{
	struct writer *w = (struct writer *)sink;
	int rc = um_out_error(w->out);

	if (rc)
		return rc;
	switch (ev->kind) {
	case UM_EV_ALLOC:
		rc = write_alloc(w, ev);
		break;
	case UM_EV_FREE:
		rc = write_free(w, ev);
		break;
	case UM_EV_OP:
		rc = write_op(w, ev);
		break;
	case UM_EV_ITER:
		um_out_str(w->out, "{\"ev\":\"iter\",\"n\":");
		um_out_u64(w->out, w->iterations++);
		um_out_key_str(w->out, ",\"name\":", ev->iter.name);
		um_out_str(w->out, "}\n");
		break;
	case UM_EV_DEAD:
		break;
	}
	/* a file with a missing line would have another meaning: discard it */
	if (rc)
		um_out_fail(w->out, rc);
	return um_out_error(w->out);
}

int um_umtrace_writer_open(struct um_sink **out, const char *path, const char *source, const char *workload,
			   struct um_diag *diag)
{
	struct writer *w = calloc(1, sizeof *w);
	int rc;

	if (!w) {
		if (diag)
			um_diag_init(diag, path);
		return um_diag_set(diag, ENOMEM, 0, "out of memory");
	}
	rc = um_out_open(&w->out, path, diag);
	if (rc) {
		free(w);
		return rc;
	}
	w->sink.feed = feed;
	um_out_str(w->out, "{\"umtrace\":1");
	um_out_key_str(w->out, ",\"source\":", source);
	um_out_key_str(w->out, ",\"workload\":", workload);
	um_out_str(w->out, "}\n");
	*out = &w->sink;
	return 0;
}

int um_umtrace_writer_close(struct um_sink *writer, int keep)
{
	struct writer *w = (struct writer *)writer;
	int rc = um_out_close(w->out, keep, NULL);

	um_id_map_fini(&w->sizes);
	free(w);
	return rc;
}
