/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.c - the copy and zeroing engines of the simulated GPU
 *
 * Both directions at once: a copy proceeds at the rate kappa (1: full, 0: none) while an earlier booked copy runs on
 * the other engine. The earlier one is not slowed down, so that bookings never change; a pair of equal copies still
 * takes max + (1 - kappa) * min. A pair of which one is the copy of an eviction has a kappa of its own.
 */
#include "sim/state.h"

#define MILLION 1000000u

/* Drops booked spans of `o` that end by `t`, which cannot matter any more. */
static void forget(struct um_sim_engine *o, uint64_t t)
{
	while (o->first < o->busy.n && o->busy.at[o->first].to <= t)
		o->first++;
	if (o->first > 64 && o->first * 2 > o->busy.n) {
		o->busy.n -= o->first;
		memmove(o->busy.at, o->busy.at + o->first, o->busy.n * sizeof(*o->busy.at));
		o->first = 0;
	}
}

/* End of `work` that begins at `t`, given the bookings of `o`. */
static uint64_t stretch(const struct um_sim *sim, const struct um_sim_engine *o, uint64_t t, uint64_t work, int evicts)
{
	for (size_t i = o->first; i < o->busy.n && work; i++) {
		const struct um_sim_span *sp = &o->busy.at[i];
		uint64_t room, kappa = evicts || sp->evicts ? sim->kappa_evict : sim->kappa;

		if (sp->to <= t)
			continue;
		if (sp->from > t) {
			if (work <= sp->from - t)
				return t + work;
			work -= sp->from - t;
			t = sp->from;
		}
		room = (uint64_t)((double)(sp->to - t) * (double)kappa / MILLION);
		if (work <= room)
			return t + (uint64_t)((double)work * MILLION / (double)kappa);
		work -= room;
		t = sp->to;
	}
	return t + work;
}

static void keep(struct um_sim_engine *e, uint64_t from, uint64_t to, int evicts)
{
	struct um_sim_span *last = e->busy.n > e->first ? &e->busy.at[e->busy.n - 1] : NULL;

	if (last && last->to == from && last->evicts == evicts)
		last->to = to;
	else if (um_vec_push(&e->busy, ((struct um_sim_span){from, to, evicts})) && last)
		last->to = to; /* out of memory: the gap counts as busy too */
}

static uint64_t book(struct um_sim *sim, enum um_sim_engine_id id, uint64_t from, uint64_t work, int evicts)
{
	struct um_sim_engine *e = &sim->engine[id];
	uint64_t start = um_sim_later(from, e->free_at), end = start + work;

	if (id != UM_SIM_MEMSET && (sim->kappa < MILLION || sim->kappa_evict < MILLION)) {
		struct um_sim_engine *o = &sim->engine[id == UM_SIM_H2D ? UM_SIM_D2H : UM_SIM_H2D];

		forget(o, um_sim_later(e->free_at, sim->now));
		forget(e, um_sim_later(o->free_at, sim->now));
		end = stretch(sim, o, start, work, evicts);
		keep(e, start, end, evicts);
	}
	e->free_at = end;
	return end;
}

uint64_t um_sim_engine_book(struct um_sim *sim, enum um_sim_engine_id id, uint64_t from, uint64_t work)
{
	return book(sim, id, from, work, 0);
}

uint64_t um_sim_engine_evict(struct um_sim *sim, uint64_t from, uint64_t work)
{
	return book(sim, UM_SIM_D2H, from, work, 1);
}

uint64_t um_sim_copy_ns(const struct um_sim *sim, enum um_sim_engine_id id, uint64_t bytes, uint64_t segments,
			int pieces)
{
	const struct um_profile *p = &sim->profile;
	double rate = p->eta * (id == UM_SIM_H2D ? p->h2d : p->d2h);

	/* A block that is not full-size is copied in 4 KiB pieces, pipelined: a third of the fixed time each. */
	return (pieces ? bytes / 4096 * (p->o_seg / 3) : segments * p->o_seg) +
	       (uint64_t)((double)bytes * 1e9 / rate + 0.5);
}
