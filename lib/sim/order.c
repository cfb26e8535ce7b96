/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c - the implicit order between streams
 *
 * A command of the default stream begins when everything enqueued before it in blocking streams has finished, and one
 * of a blocking stream when everything enqueued before it in the default stream has. Non-blocking streams take no part.
 * Each thread also has a default stream of its own, a blocking one.
 */
#include "sim/state.h"

static int is_default(const struct um_sim *sim, const struct um_sim_stream *s)
{
	return s == sim->streams;
}

/* The next stream after `o` that `s` is ordered with; NULL begins. */
static const struct um_sim_stream *peer(const struct um_sim *sim, const struct um_sim_stream *s,
					const struct um_sim_stream *o)
{
	if (s->alone)
		return NULL;
	if (!is_default(sim, s))
		return o ? NULL : sim->streams;
	for (o = o ? o->next : s->next; o && o->alone; o = o->next)
		;
	return o;
}

static int older(const struct um_sim_stream *s, uint64_t seq)
{
	const struct um_sim_cmd *c = um_sim_head(s);

	return c && c->seq <= seq;
}

uint64_t um_sim_order_due(const struct um_sim *sim, const struct um_sim_stream *s, const struct um_sim_cmd *c)
{
	uint64_t at = is_default(sim, s) ? sim->destroyed_order : 0;

	/* Begun and unfinished work was enqueued earlier: wait for it. */
	for (const struct um_sim_stream *o = peer(sim, s, NULL); o; o = peer(sim, s, o)) {
		if (older(o, c->seq))
			return UM_SIM_FOREVER;
		at = um_sim_later(at, o->ready);
	}
	return at;
}

const struct um_sim_stream *um_sim_order_blocker(const struct um_sim *sim, const struct um_sim_stream *s,
						 const struct um_sim_cmd *c)
{
	const struct um_sim_stream *o = peer(sim, s, NULL);

	while (o && !older(o, c->seq))
		o = peer(sim, s, o);
	return o;
}

int um_sim_behind(const struct um_sim *sim, const struct um_sim_stream *s, uint64_t seq)
{
	if (older(s, seq))
		return 1;
	for (const struct um_sim_stream *o = peer(sim, s, NULL); o && is_default(sim, s); o = peer(sim, s, o))
		if (older(o, seq))
			return 1;
	return 0;
}

uint64_t um_sim_order_ready(const struct um_sim *sim, const struct um_sim_stream *s)
{
	uint64_t at = s->ready;

	if (!is_default(sim, s))
		return at;
	for (const struct um_sim_stream *o = peer(sim, s, NULL); o; o = peer(sim, s, o))
		at = um_sim_later(at, o->ready);
	return um_sim_later(at, sim->destroyed_order);
}

int um_sim_busy(const struct um_sim *sim, const struct um_sim_stream *s, uint64_t t)
{
	if (um_sim_head(s) || s->ready > t)
		return 1;
	for (const struct um_sim_stream *o = peer(sim, s, NULL); o; o = peer(sim, s, o))
		if (um_sim_head(o) || o->ready > t)
			return 1;
	return is_default(sim, s) && sim->destroyed_order > t;
}

struct um_sim_stream *um_sim_thread_stream(struct um_sim *sim)
{
	static _Thread_local uint64_t self;
	static uint64_t threads;
	struct um_sim_stream *s;

	if (!self)
		self = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	for (s = sim->streams; s; s = s->next)
		if (s->thread == self)
			return s;
	s = um_sim_stream_new(sim);
	if (s)
		s->thread = self;
	return s;
}
