/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.c - the copy and zeroing engines of the simulated GPU
 *
 * Both directions at once: a copy proceeds at the rate kappa (1: full, 0: none) while an earlier booked copy runs on
 * the other engine. The earlier one is not slowed down, so that bookings never change; a pair of equal copies still
 * takes max + (1 - kappa) * min. A pair of which one is the copy of an eviction has a kappa of its own.
 *
 * Devices that share a link share its rate in each direction: with n others that copy, a copy proceeds at 1 / (n + 1).
 * What the others lose by that does not move the ends of their copies, which are known already: it moves the time from
 * which each of them copies on, so that together they take the time that the link needs.
 */
#include "sim/state.h"

#include "base/bisect.h"

#define MILLION 1000000u
#define SPANS_MAX 65536u /* that a device keeps for the others of its link */

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

/* The booked span of `o` that covers time `t`, or NULL; lowers `*until` to the time when that changes. */
static const struct um_sim_span *span_at(const struct um_sim_engine *o, uint64_t t, uint64_t *until)
{
	size_t lo = o->first;
	const struct um_sim_span *sp;
	uint64_t change;

	UM_BISECT(lo, o->busy.n, i, o->busy.at[i].to <= t)
	if (lo == o->busy.n)
		return NULL;
	sp = &o->busy.at[lo];
	change = sp->from > t ? sp->from : sp->to;
	*until = change < *until ? change : *until;
	return sp->from > t ? NULL : sp;
}

/* What goes on at one time on the link of a device. */
struct traffic {
	struct um_sim_engine *other[UM_SIM_DEVICES_MAX]; /* that copy in the same direction */
	unsigned n;
	int opposite, evicts; /* something copies in the opposite direction; an eviction */
	uint64_t until; /* it changes */
};

static struct traffic traffic_at(const struct um_sim *sim, enum um_sim_engine_id id, uint64_t t)
{
	struct traffic now = {.until = UM_SIM_FOREVER};

	for (unsigned d = 0; d < sim->node->n; d++) {
		struct um_sim *o = sim->node->sim[d];
		const struct um_sim_span *sp;

		if (!o || (o != sim && o->opt.link != sim->opt.link))
			continue;
		if (o != sim && span_at(&o->engine[id], t, &now.until))
			now.other[now.n++] = &o->engine[id];
		sp = span_at(&o->engine[id == UM_SIM_H2D ? UM_SIM_D2H : UM_SIM_H2D], t, &now.until);
		now.opposite |= sp != NULL;
		now.evicts |= sp && sp->evicts;
	}
	return now;
}

/* A copy has had its share of the link for that time: the others go on later. What each has lost takes as many times as
 * long to make up for as there are others that do so, too. */
static void push_others(const struct traffic *now, double ns)
{
	uint64_t late = (uint64_t)(ns / (now->n + 1.0));

	for (unsigned i = 0; i < now->n; i++) {
		struct um_sim_engine *o = now->other[i];

		o->busy.at[o->busy.n - 1].to += late;
		o->free_at += late;
	}
}

/* As stretch(), on a link that other devices use. */
static uint64_t stretch_shared(const struct um_sim *sim, enum um_sim_engine_id id, uint64_t t, uint64_t work,
			       int evicts)
{
	double left = (double)work;

	while (left >= 1) {
		struct traffic now = traffic_at(sim, id, t);
		uint64_t kappa = !now.opposite ? MILLION : evicts || now.evicts ? sim->kappa_evict : sim->kappa;
		double rate = (double)kappa / MILLION / (now.n + 1), ns = (double)(now.until - t);

		if (now.until == UM_SIM_FOREVER || ns * rate >= left)
			ns = left / rate;
		if (now.n)
			push_others(&now, ns);
		left -= ns * rate;
		t += (uint64_t)(ns + 0.5);
	}
	return t;
}

static void keep(struct um_sim_engine *e, uint64_t from, uint64_t to, int evicts)
{
	struct um_sim_span *last = e->busy.n > e->first ? &e->busy.at[e->busy.n - 1] : NULL;

	if (last && last->to == from && last->evicts == evicts)
		last->to = to;
	else if (um_vec_push(&e->busy, ((struct um_sim_span){from, to, evicts})) && last)
		last->to = to; /* out of memory: the gap counts as busy too */
}

/* Drops spans that no device of the link can meet any more. A device that does nothing does not keep those of others
 * for ever. */
static void forget_shared(struct um_sim *sim, enum um_sim_engine_id id)
{
	struct um_sim_engine *e = &sim->engine[id];
	uint64_t t = e->free_at;

	for (unsigned d = 0; d < sim->node->n; d++) {
		const struct um_sim *o = sim->node->sim[d];

		if (o && o->opt.link == sim->opt.link && o->now < t)
			t = o->now;
	}
	forget(e, t);
	if (e->busy.n - e->first > SPANS_MAX)
		e->first = e->busy.n - SPANS_MAX;
}

static uint64_t book(struct um_sim *sim, enum um_sim_engine_id id, uint64_t from, uint64_t work, int evicts)
{
	struct um_sim_engine *e = &sim->engine[id];
	uint64_t start = um_sim_later(from, e->free_at), end = start + work;

	if (id != UM_SIM_MEMSET && sim->opt.link && sim->node->n > 1) {
		forget_shared(sim, id);
		end = stretch_shared(sim, id, start, work, evicts);
		keep(e, start, end, evicts);
	} else if (id != UM_SIM_MEMSET && (sim->kappa < MILLION || sim->kappa_evict < MILLION)) {
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
