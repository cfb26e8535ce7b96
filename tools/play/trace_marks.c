/* SPDX-License-Identifier: Apache-2.0 */
#include "play/trace_marks.h"

#include "runtime/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct search {
	const struct um_trace *trace;
	struct umadv *adv;
	void **ptr; /* by id: where the tensor lives, NULL dead */
	UM_VEC(struct umadv_use) uses;
	UM_VEC(size_t) ops; /* event of each op */
	UM_VEC(size_t) marks; /* events; an iteration begins before each */
	uint32_t length; /* ops of the period found last */
};

/* Iterations of `length` ops began after the ops before number `last`. */
static int add_marks(struct search *s, size_t last, uint32_t length, uint64_t iterations)
{
	size_t after = s->marks.n ? s->marks.at[s->marks.n - 1] : 0;

	s->length = length;
	for (uint64_t k = iterations; k--;) {
		size_t op = last - k * length, event = op ? s->ops.at[op - 1] + 1 : s->ops.at[0];

		/* the periods may begin within an iteration of the period before */
		if ((!s->marks.n || event > after) && um_vec_push(&s->marks, event))
			return -ENOMEM;
	}
	return 0;
}

static int feed_op(struct search *s, size_t event, const struct um_op *op)
{
	struct umadv_op_info info = {.struct_size = sizeof info};
	uint64_t before = s->adv->iterations.n;
	int err;

	um_vec_clear(&s->uses);
	if (um_vec_reserve(&s->uses, op->n_uses) || um_vec_push(&s->ops, event))
		return -ENOMEM;
	for (uint32_t i = 0; i < op->n_uses; i++) {
		const struct um_use *u = &op->uses[i];

		s->uses.at[s->uses.n++] = umadv_use_((char *)s->ptr[u->id.v] + u->off, u->bytes, u->touched, u->access);
	}
	info.uses = s->uses.at;
	info.n_uses = s->uses.n;
	err = umadv_op_ex(s->adv, (void *)(uintptr_t)op->stream, op->name, &info);
	if (err || s->adv->iterations.n == before)
		return err;
	return add_marks(s, s->ops.n - s->adv->iterations.ops, /* one where it began with this op, else none */
			 um_op_period_length(&s->adv->iterations.finder.period), s->adv->iterations.n - before);
}

static int feed(struct search *s, size_t i)
{
	const struct um_event *e = um_trace_event(s->trace, i);
	int err;

	switch (e->kind) {
	case UM_EV_ALLOC:
		return umadv_alloc(s->adv, &s->ptr[e->alloc.id.v], e->alloc.bytes, NULL, UMADV_OTHER);
	case UM_EV_FREE:
		err = umadv_free(s->adv, s->ptr[e->free.id.v]);
		s->ptr[e->free.id.v] = NULL;
		return err;
	case UM_EV_OP:
		return feed_op(s, i, &e->op);
	default:
		return 0;
	}
}

static int search(struct search *s)
{
	struct umadv_options o = {.struct_size = sizeof o,
				  .device = UMADV_DEVICE_NONE,
				  .strategy = "on-demand",
				  .log_level = UMADV_LOG_ERROR,
				  .nvtx = UMADV_NVTX_OFF};
	size_t ids = 0;
	int err;

	for (size_t i = 0; i < um_trace_length(s->trace); i++) {
		const struct um_event *e = um_trace_event(s->trace, i);

		if (e->kind == UM_EV_ALLOC && e->alloc.id.v >= ids)
			ids = (size_t)e->alloc.id.v + 1;
	}
	s->ptr = calloc(ids + 1, sizeof *s->ptr);
	err = s->ptr ? um_context_open(&s->adv, &o, NULL, NULL) : -ENOMEM;
	if (err)
		return err;
	um_iterations_search(&s->adv->iterations);
	for (size_t i = 0; i < um_trace_length(s->trace) && !err; i++)
		err = feed(s, i);
	return err;
}

/* Where the last whole iteration ends: an event. */
static size_t find_end(const struct search *s)
{
	size_t ops = 0;

	while (ops < s->ops.n && s->ops.at[s->ops.n - 1 - ops] >= s->marks.at[s->marks.n - 1])
		ops++;
	return ops < s->length && s->marks.n > 1 ? s->marks.at[s->marks.n - 1] : um_trace_length(s->trace);
}

int um_trace_marks_find(struct um_trace *t)
{
	struct search s = {.trace = t};
	size_t end;
	int err = search(&s);

	if (!err && !s.ops.n)
		err = -ENODATA;
	if (!err && !s.marks.n)
		err = um_vec_push(&s.marks, s.ops.at[0]);
	if (!err) {
		end = find_end(&s);
		while (s.marks.at[s.marks.n - 1] >= end)
			s.marks.n--;
		err = um_trace_insert_iterations(t, s.marks.at, s.marks.n, end);
	}
	um_context_close(s.adv);
	free(s.ptr);
	um_vec_fini(&s.uses);
	um_vec_fini(&s.ops);
	um_vec_fini(&s.marks);
	return err;
}
