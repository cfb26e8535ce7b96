/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/log_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DOMAIN "umadvise"

static int in_time(const void *x, const void *y)
{
	const struct um_activity *a = x, *b = y;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->correlation < b->correlation ? -1 : a->correlation > b->correlation; /* index in the queue */
}

/* Feeds all events that begin before `until`. */
int um_log_feed(struct um_log_reader *r, int64_t until)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < r->queue.n; i++)
		r->queue.at[i].correlation = i;
	if (r->queue.n)
		qsort(r->queue.at, r->queue.n, sizeof *r->queue.at, in_time);
	for (; n < r->queue.n && r->queue.at[n].begin < until && !err; n++) {
		struct um_activity a = r->queue.at[n];

		a.correlation = 0;
		/* Begin of a hint that took longer than a whole part. */
		if (a.begin < r->fed)
			a.begin = r->fed;
		if (a.end < a.begin)
			a.end = a.begin;
		r->fed = a.begin;
		err = um_activity_feed(r->sink, &a);
	}
	r->queue.n -= n;
	if (r->queue.n)
		memmove(r->queue.at, r->queue.at + n, r->queue.n * sizeof *r->queue.at);
	return err;
}

static int push(struct um_log_reader *r, struct um_activity a)
{
	a.process = r->capture->library.pid;
	a.thread = 1;
	a.device = a.stream = -1;
	if (a.end < a.begin)
		a.end = a.begin;
	return um_vec_push(&r->queue, a);
}

static int push_tensor(struct um_log_reader *r, uint32_t id, int alive, int64_t at)
{
	struct um_log_def *d = &r->defs.at.at[id];
	struct um_activity a = {.kind = alive ? UM_ACT_TENSOR : UM_ACT_TENSOR_END,
				.begin = at,
				.end = at,
				.op = UM_ACT_NO_OP,
				.name = d->name,
				.address = d->address,
				.bytes = d->bytes};
	uint32_t was = d->alive;

	um_log_defs_live(&r->defs, id, alive);
	return !was != !d->alive ? push(r, a) : 0;
}

/* Parts without events hide births and ends of tensors. */
static int settle_tensors(struct um_log_reader *r, const struct um_log_part *whole, int64_t at)
{
	size_t run = 0;
	int err = 0;

	for (uint32_t i = 0; i < r->defs.at.n && !err; i++) {
		int alive;

		while (run < whole->alive.n && whole->alive.at[run + 1] < i)
			run += 2;
		alive = run < whole->alive.n && whole->alive.at[run] <= i;
		if (alive && !r->defs.at.at[i].alive)
			err = push_tensor(r, i, 1, at);
		while (!alive && r->defs.at.at[i].alive && !err)
			err = push_tensor(r, i, 0, at);
	}
	return err;
}

static uint64_t op_of(const struct um_log_part *p, int64_t op)
{
	return op == UM_LOG_NO_OP ? UM_ACT_NO_OP : p->first_op + (uint64_t)op;
}

static int push_op(struct um_log_reader *r, const struct um_log_part *whole, const struct um_log_event *e, int64_t at,
		   uint64_t number)
{
	struct um_activity a = {.kind = UM_ACT_OP, .begin = at, .end = at, .op = number, .name = e->name};
	int err = push(r, a);

	a.kind = UM_ACT_USE;
	a.name = NULL;
	for (uint32_t i = 0; i < e->n_uses && !err; i++) {
		const struct um_log_use *u = &whole->uses.at[e->first_use + i];

		a.address = u->address;
		a.bytes = u->bytes;
		a.access = u->access;
		err = push(r, a);
	}
	return err;
}

/* Scales a time of a whole part to a similar part of another length. */
static int64_t moment(const struct um_log_part *p, const struct um_log_part *whole, int64_t t)
{
	int64_t ns = whole->end - whole->begin;

	if (p == whole || ns <= 0)
		return p->begin + t;
	return p->begin + (int64_t)((double)t * ((double)(p->end - p->begin) / (double)ns));
}

static int push_hint(struct um_log_reader *r, const struct um_log_part *p, const struct um_log_part *from,
		     const struct um_log_hint *h)
{
	return push(r, (struct um_activity){.kind = UM_ACT_HINT,
					    .begin = moment(p, from, h->begin),
					    .end = moment(p, from, h->end),
					    .op = op_of(p, h->op),
					    .hint = h->kind,
					    .error = h->error,
					    .address = h->address,
					    .bytes = h->bytes});
}

int um_log_queue_range(struct um_log_reader *r, const struct um_log_part *p)
{
	char name[64];

	snprintf(name, sizeof name, "iteration %" PRId64, p->n);
	struct um_activity a = {.kind = UM_ACT_RANGE,
				.begin = p->begin,
				.end = p->end,
				.op = UM_ACT_NO_OP,
				.domain = DOMAIN,
				.name = um_arena_intern(&r->names, name)};

	return a.name ? push(r, a) : -ENOMEM;
}

/* Feeds a part with the events of `whole`, which may be the part itself. */
int um_log_queue_events(struct um_log_reader *r, const struct um_log_part *p, const struct um_log_part *whole)
{
	int64_t last = p->begin;
	uint64_t op = p->first_op;
	size_t without = 0;
	int err = settle_tensors(r, whole, p->begin);

	for (size_t i = 0; i < whole->events.n && !err; i++) {
		const struct um_log_event *e = &whole->events.at[i];
		int64_t at = moment(p, whole, e->at);

		/* In a shorter part than `whole`, births must not coincide. */
		at = last = at > last ? at : last + 1;
		if (e->kind == UM_LOG_OP)
			err = push_op(r, whole, e, at, op++);
		else
			err = push_tensor(r, e->def, e->kind == UM_LOG_TENSOR, at);
	}
	for (size_t i = 0; i < whole->hints.n && !err && p != whole; i++) {
		if (without < r->without.n && r->without.at[without] == i)
			without++;
		else
			err = push_hint(r, p, whole, &whole->hints.at[i]);
	}
	for (size_t i = 0; i < p->hints.n && !err; i++)
		err = push_hint(r, p, p, &p->hints.at[i]);
	return err;
}

int um_log_queue_counted(struct um_log_reader *r, int64_t until)
{
	int err = 0;

	for (; r->recounted < r->counted.n && r->counted.at[r->recounted].begin < until && !err; r->recounted++)
		err = push(r, um_log_driver_counter_as(&r->counted.at[r->recounted]));
	return err;
}

int um_log_queue_sums(struct um_log_reader *r, int64_t at, const uint64_t counts[UM_LIBRARY_COUNTS])
{
	static const enum um_library_count keys[UM_LOG_DRIVER_COUNTERS] = {
		UM_LIBRARY_H2D, UM_LIBRARY_D2H, UM_LIBRARY_GPU_FAULTS, UM_LIBRARY_CPU_FAULTS};
	int err = 0;

	for (unsigned k = 0; k < UM_LOG_DRIVER_COUNTERS && !err; k++) {
		struct um_log_driver_counter c = {.kind = (enum um_log_driver_counter_kind)k,
						  .begin = at,
						  .end = at,
						  .n = counts[keys[k]],
						  .records = 1};

		if (c.n)
			err = push(r, um_log_driver_counter_as(&c));
	}
	return err;
}
