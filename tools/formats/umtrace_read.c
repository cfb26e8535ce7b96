/* SPDX-License-Identifier: Apache-2.0
 *
 * One line, one object, one event; the object is freed before the next line is read. Only a map persists: the bytes of
 * each tensor, 0 after its free (a size is never 0), because a number has one life.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "io/id_map.h"
#include "io/lines.h"
#include "io/op_read.h"
#include "io/umtrace.h"

struct reader {
	struct um_op_names names; /* first: bytes_of converts it to the reader */
	struct um_sink *sink;
	struct um_diag *diag;
	struct um_id_map tensors; /* t -> bytes, 0 dead */
	uint64_t live_bytes;
	uint64_t iterations;
	struct um_op_line op;
};

void um_umtrace_header_fini(struct um_umtrace_header *h)
{
	free(h->source);
	free(h->workload);
	*h = (struct um_umtrace_header){0};
}

static int bytes_of(const struct um_op_names *names, const struct um_json *j, uint64_t t, uint64_t *bytes)
{
	const struct reader *r = (const struct reader *)names;
	const uint64_t *known = um_id_map_find(&r->tensors, t);

	if (!known)
		return um_json_refuse(j, "tensor %" PRIu64 " was never allocated: want one that is alive", t);
	if (!*known)
		return um_json_refuse(j, "tensor %" PRIu64 " is dead: want one that is alive", t);
	*bytes = *known;
	return 0;
}

/* The sink's error is the caller's to explain; this line is the default. */
static int feed(const struct reader *r, const struct um_json *j, const struct um_event *ev)
{
	int rc = um_sink_feed(r->sink, ev);

	if (rc == -E2BIG)
		return um_diag_set(r->diag, E2BIG, j->line,
				   "too long to be loaded: a trace of at most %u events and %u ranges fits. "
				   "Record fewer iterations",
				   UM_TRACE_EVENTS, UM_TRACE_USES);
	return rc ? um_diag_set(r->diag, -rc, j->line, "cannot take this event: %s", strerror(-rc)) : 0;
}

static int read_alloc(struct reader *r, const struct um_json *j)
{
	struct um_event ev = {.kind = UM_EV_ALLOC};
	const char *role = NULL;
	uint64_t t, bytes;
	int rc = um_json_u64(j, "t", UM_JSON_MUST, 0, INT64_MAX - 1, &t);

	if (!rc)
		rc = um_json_u64(j, "bytes", UM_JSON_MUST, 1, INT64_MAX, &bytes);
	if (!rc)
		rc = um_json_str(j, "name", UM_JSON_MAY, &ev.alloc.name);
	if (!rc)
		rc = um_json_str(j, "role", UM_JSON_MAY, &role);
	if (rc)
		return rc;
	if (role && um_role_parse(role) < 0)
		return um_json_refuse(j, "`role` is %s: want param, grad, optim, act, input, workspace, comm or other",
				      um_json_show(json_object_get(j->root, "role")).text);
	if (um_id_map_find(&r->tensors, t))
		return um_json_refuse(j, "tensor %" PRIu64 " again: want a number that was never used", t);
	if (bytes > (uint64_t)INT64_MAX - r->live_bytes)
		return um_json_refuse(
			j, "tensor %" PRIu64 " of %" PRIu64 " bytes brings the live bytes over 2^63: want less", t,
			bytes);
	if (um_id_map_add(&r->tensors, t, bytes))
		return um_diag_set(r->diag, ENOMEM, j->line, "out of memory");
	r->live_bytes += bytes;
	ev.alloc.id.v = t + 1;
	ev.alloc.bytes = bytes;
	ev.alloc.role = role ? (enum um_role)um_role_parse(role) : UM_ROLE_OTHER;
	return feed(r, j, &ev);
}

static int read_free(struct reader *r, const struct um_json *j)
{
	struct um_event ev = {.kind = UM_EV_FREE};
	uint64_t t, bytes = 0;
	int rc = um_json_u64(j, "t", UM_JSON_MUST, 0, INT64_MAX - 1, &t);

	if (!rc)
		rc = bytes_of(&r->names, j, t, &bytes);
	if (rc)
		return rc;
	*um_id_map_find(&r->tensors, t) = 0;
	r->live_bytes -= bytes;
	ev.free.id.v = t + 1;
	return feed(r, j, &ev);
}

static int read_uses(struct reader *r, const struct um_json *j, int host)
{
	struct um_event ev = {.kind = UM_EV_OP};
	struct um_op_line *op = &r->op;
	const char *label = NULL;
	int rc = um_op_line_read(op, j, &r->names);

	if (!rc)
		rc = um_json_str(j, "label", UM_JSON_MAY, &label);
	if (rc)
		return rc;
	for (size_t i = 0; i < op->uses.n; i++) {
		struct um_use *u = &op->uses.at[i];

		u->id.v++;
		/* a partly touched range keeps some content, so it is not overwritten as a whole
		 */
		if (u->touched < u->bytes)
			u->access |= u->access == UM_WRITE ? UM_READ : 0;
	}
	for (size_t i = 0; i < op->relaunch.n; i++)
		op->relaunch.at[i].v++;
	ev.op = (struct um_op){
		.name = op->name,
		.label = label,
		.uses = op->uses.at,
		.n_uses = (uint32_t)op->uses.n,
		.cost = op->cost,
		.stream = op->stream,
		.phase = op->phase,
		.collective = (uint8_t)op->collective,
		.relaunch = op->relaunchable ? op->relaunch.at : NULL,
		.n_relaunch = (uint32_t)op->relaunch.n,
		.relaunchable = op->relaunchable,
		.ws = op->ws.n ? op->ws.at : NULL,
		.n_ws = (uint32_t)op->ws.n,
	};
	if (host)
		ev.op.stream = UM_STREAM_CPU;
	rc = feed(r, j, &ev);
	/* restores the file's numbers, which clear the op's map */
	for (size_t i = 0; i < op->uses.n; i++)
		op->uses.at[i].id.v--;
	return rc;
}

static int read_op(struct reader *r, const struct um_json *j)
{
	return read_uses(r, j, 0);
}

static int read_host(struct reader *r, const struct um_json *j)
{
	return read_uses(r, j, 1);
}

static int read_iter(struct reader *r, const struct um_json *j)
{
	struct um_event ev = {.kind = UM_EV_ITER};
	int rc = um_json_u64(j, "n", UM_JSON_MUST, 0, INT64_MAX, &ev.iter.n);

	if (!rc)
		rc = um_json_str(j, "name", UM_JSON_MAY, &ev.iter.name);
	if (rc)
		return rc;
	if (ev.iter.n != r->iterations)
		return um_json_refuse(j, "iteration %" PRIu64 ": want %" PRIu64 " next, counted from 0 without a gap",
				      ev.iter.n, r->iterations);
	r->iterations++;
	return feed(r, j, &ev);
}

static int read_event(struct reader *r, const struct um_json *j)
{
	static const struct {
		const char *ev;
		int (*read)(struct reader *r, const struct um_json *j);
	} kinds[] = {
		{"alloc", read_alloc}, {"op", read_op}, {"free", read_free}, {"iter", read_iter}, {"host", read_host}};
	const char *ev;
	int rc = um_json_str(j, "ev", UM_JSON_MUST, &ev);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(ev, kinds[i].ev) == 0)
			return kinds[i].read(r, j);
	return um_json_refuse(j, "unknown `ev` %s: want alloc, op, host, free or iter",
			      um_json_show(json_object_get(j->root, "ev")).text);
}

static int read_header(const struct um_json *j, struct um_umtrace_header *header)
{
	const char *source = NULL, *workload = NULL;
	json_t *version = json_object_get(j->root, "umtrace");
	int rc;

	if (!version)
		return um_json_refuse(j, "no umtrace header: want {\"umtrace\":1,...} first");
	if (!json_is_integer(version) || json_integer_value(version) != 1)
		return um_json_refuse(j, "umtrace version %s: want 1", um_json_show(version).text);
	rc = um_json_str(j, "source", UM_JSON_MAY, &source);
	if (!rc)
		rc = um_json_str(j, "workload", UM_JSON_MAY, &workload);
	if (rc || !header)
		return rc;
	header->source = source ? strdup(source) : NULL;
	header->workload = workload ? strdup(workload) : NULL;
	if ((source && !header->source) || (workload && !header->workload))
		return um_diag_set(j->diag, ENOMEM, j->line, "out of memory");
	return 0;
}

static int read_lines(struct reader *r, struct um_lines *lines, struct um_umtrace_header *header)
{
	const char *text;
	size_t n;
	int rc;

	while ((rc = um_lines_next(lines, &text, &n)) > 0) {
		struct um_json j;

		rc = um_json_parse(&j, text, n, um_lines_number(lines), r->diag);
		if (!rc)
			rc = um_lines_number(lines) == 1 ? read_header(&j, header) : read_event(r, &j);
		um_json_fini(&j);
		if (rc)
			return rc;
	}
	if (!rc && um_lines_number(lines) == 0)
		rc = um_diag_set(r->diag, EINVAL, 0, "empty file: want a umtrace header");
	return rc;
}

/* Takes `lines`. */
static int read_all(struct um_lines *lines, struct um_sink *sink, struct um_umtrace_header *header,
		    struct um_diag *diag)
{
	struct reader r = {.names = {"tensor", bytes_of}, .sink = sink, .diag = diag};
	int rc;

	if (header)
		*header = (struct um_umtrace_header){0};
	rc = read_lines(&r, lines, header);
	um_op_line_fini(&r.op);
	um_id_map_fini(&r.tensors);
	um_lines_close(lines);
	if (rc && header)
		um_umtrace_header_fini(header);
	return rc;
}

int um_umtrace_read(const char *path, struct um_sink *sink, struct um_umtrace_header *header, struct um_diag *diag)
{
	struct um_lines *lines;
	int rc = um_lines_open(&lines, path, diag);

	return rc ? rc : read_all(lines, sink, header, diag);
}

int um_umtrace_read_mem(const void *data, size_t bytes, struct um_sink *sink, struct um_umtrace_header *header,
			struct um_diag *diag)
{
	struct um_lines *lines;
	int rc = um_lines_open_mem(&lines, data, bytes, "memory", diag);

	return rc ? rc : read_all(lines, sink, header, diag);
}
