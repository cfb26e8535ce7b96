/* SPDX-License-Identifier: Apache-2.0 */
#include "play/trace_period.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Numbers tensors by first appearance since a reset, which is free. */
struct numbering {
	uint32_t *number, *stamp; /* by id */
	size_t n_ids;
	uint32_t now, next;
};

static uint32_t number_of(struct numbering *u, uint64_t id)
{
	if (u->stamp[id] != u->now) {
		u->stamp[id] = u->now;
		u->number[id] = u->next++;
	}
	return u->number[id];
}

static uint64_t hash_event(struct numbering *u, const struct um_event *e, uint64_t h)
{
	h = um_hash_u64(h, e->kind);
	switch (e->kind) {
	case UM_EV_ALLOC:
		return um_hash_u64(um_hash_u64(h, number_of(u, e->alloc.id.v)), e->alloc.bytes);
	case UM_EV_FREE:
	case UM_EV_DEAD:
		return um_hash_u64(h, number_of(u, e->free.id.v));
	case UM_EV_OP:
		h = um_hash_u64(h, um_hash_str(e->op.name));
		h = e->op.stream == UM_STREAM_CPU ? um_hash_u64(h, 'h') : h;
		for (uint32_t i = 0; i < e->op.n_uses; i++) {
			const struct um_use *s = &e->op.uses[i];

			h = um_hash_u64(um_hash_u64(h, number_of(u, s->id.v)), s->access);
			h = um_hash_u64(um_hash_u64(h, s->off), s->bytes);
		}
		return h;
	default:
		return h;
	}
}

struct round {
	size_t begin; /* event index of its iter line */
	uint64_t hash;
};

static uint64_t largest_id(const struct um_trace *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < um_trace_length(t); i++) {
		const struct um_event *e = um_trace_event(t, i);

		if (e->kind == UM_EV_ALLOC && e->alloc.id.v > most)
			most = e->alloc.id.v;
	}
	return most;
}

static uint64_t hash_span(const struct um_trace *t, struct numbering *u, size_t from, size_t to)
{
	uint64_t h = 0;

	u->now++;
	u->next = 0;
	for (size_t i = from; i < to; i++)
		h = hash_event(u, um_trace_event(t, i), h);
	return h;
}

/* The tensors of a span in order of appearance. Freeing counts as appearing. */
static int appear(const struct um_trace *t, struct numbering *u, size_t from, size_t to, uint64_t **out, uint32_t *n)
{
	hash_span(t, u, from, to);
	*n = u->next;
	*out = calloc(*n ? *n : 1, sizeof **out);
	if (!*out)
		return -ENOMEM;
	for (uint64_t id = 0; id < u->n_ids; id++)
		if (u->stamp[id] == u->now)
			(*out)[u->number[id]] = id;
	return 0;
}

static int find_moves(const struct um_trace *t, struct numbering *u, size_t before, struct um_trace_period *out)
{
	uint64_t *was = NULL, *is = NULL;
	uint32_t n_was, n_is;
	size_t end = um_trace_length(t);
	int err = appear(t, u, out->begin, end, &is, &n_is);
	uint8_t *born = calloc(u->n_ids, 1);

	if (!err && !born)
		err = -ENOMEM;
	if (!err)
		err = appear(t, u, before, out->begin, &was, &n_was); /* keeps the numbers of the previous period */
	for (size_t i = out->begin; i < end && !err; i++)
		if (um_trace_event(t, i)->kind == UM_EV_ALLOC)
			born[um_trace_event(t, i)->alloc.id.v] = 1;
	for (uint32_t a = 0; a < n_is && !err; a++) {
		uint64_t x = is[a];

		if (born[x] || u->stamp[x] != u->now || u->number[x] >= n_is)
			continue;
		uint64_t from = is[u->number[x]];

		if (from != x)
			err = um_vec_push(&out->moves, ((struct um_trace_period_move){from, x}));
	}
	free(born);
	free(was);
	free(is);
	return err;
}

int um_trace_period_find(const struct um_trace *t, struct um_trace_period *out)
{
	struct numbering u = {0};
	UM_VEC(struct round) rounds = {0};
	size_t end = um_trace_length(t), m;
	int err = 0;

	memset(out, 0, sizeof *out);
	u.n_ids = (size_t)largest_id(t) + 1;
	u.number = calloc(u.n_ids, sizeof *u.number);
	u.stamp = calloc(u.n_ids, sizeof *u.stamp);
	if (!u.number || !u.stamp)
		err = -ENOMEM;
	for (size_t i = 0; i < end && !err; i++)
		if (um_trace_event(t, i)->kind == UM_EV_ITER)
			err = um_vec_push(&rounds, ((struct round){i, 0}));
	m = rounds.n;
	if (!err && !m)
		err = -ENODATA;
	for (size_t p = 1; p <= m / 2 && !err && !out->period; p++)
		if (hash_span(t, &u, rounds.at[m - p].begin, end) ==
		    hash_span(t, &u, rounds.at[m - 2 * p].begin, rounds.at[m - p].begin))
			out->period = p;
	if (!err && out->period) {
		out->begin = rounds.at[m - out->period].begin;
		err = find_moves(t, &u, rounds.at[m - 2 * out->period].begin, out);
	} else if (!err) {
		out->period = m; /* no repetition: repeats the whole trace */
		out->begin = rounds.at[0].begin;
	}
	um_vec_fini(&rounds);
	free(u.number);
	free(u.stamp);
	if (err)
		um_trace_period_fini(out);
	return err;
}

void um_trace_period_fini(struct um_trace_period *t)
{
	um_vec_fini(&t->moves);
}
