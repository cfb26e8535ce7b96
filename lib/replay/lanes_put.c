/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes_put.c - the program's side of the lanes: progress, queue limits, pending drops
 */
#include "replay/lanes.h"

#include "model/tensor.h"

/* --- limits ------------------------------------------------------------------------------------------------------- */

static int has_space(const struct um_lanes *l, const void *arg)
{
	uint32_t most = um_lanes_in_queued(l) - um_lanes_in_done(l);

	(void)arg;
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		enum um_evict_lane lane = (enum um_evict_lane)i;
		uint32_t n = um_lanes_evict_queued(l, lane) - um_lanes_evict_done(l, lane);

		most = n > most ? n : most;
	}
	return most <= UM_LANES_QUEUE / 2;
}

/* The program is far ahead of the device. */
static void make_space(struct um_lanes *l)
{
	um_lanes_poke(l);
	um_lanes_wait(l, has_space, NULL);
}

int um_lanes_update_in_limit(struct um_lanes *l)
{
	l->in_limit = um_lanes_in_done(l) + UM_LANES_QUEUE;
	if (um_lanes_in_queued(l) == l->in_limit) {
		make_space(l);
		l->in_limit = um_lanes_in_done(l) + UM_LANES_QUEUE;
	}
	return um_lanes_in_queued(l) == l->in_limit;
}

int um_lanes_update_evict_limit(struct um_lanes *l, enum um_evict_lane lane)
{
	uint32_t *limit = &l->evict[lane].limit;

	*limit = um_lanes_evict_done(l, lane) + UM_LANES_QUEUE;
	if (um_lanes_evict_queued(l, lane) == *limit) {
		make_space(l);
		*limit = um_lanes_evict_done(l, lane) + UM_LANES_QUEUE;
	}
	return um_lanes_evict_queued(l, lane) == *limit;
}

/* --- pending drops ------------------------------------------------------------------------------------------------ */

/* The number after the last drop from `from` to `until` that touches [addr, end), and is of live content if `live`;
 * `from`: there is none. */
static uint32_t find(const struct um_lanes *l, uint32_t from, uint32_t until, uint64_t addr, uint64_t end, int live)
{
	uint32_t k = until;

	for (; !um_lanes_reached(from, k); k--) {
		const struct um_request *r = &l->evict[UM_LANE_DROP].ring[(k - 1) % UM_LANES_QUEUE];

		if (live ? r->live && r->addr < end && r->addr + r->bytes > addr
			 : um_request_kind(r) != UM_ACTION_EVICT && r->addr < end && r->addr + r->bytes > addr)
			return k;
	}
	return from;
}

/* A stream that gets the number waits for no in yet. */
void um_lanes_forget_stream(struct um_lanes *l, unsigned i)
{
	if (i < UM_LANES_STREAMS)
		atomic_store_explicit(&l->gated[i], um_lanes_in_queued(l) - UM_LANES_QUEUE, memory_order_relaxed);
}

void um_lanes_update_drops(struct um_lanes *l)
{
	uint32_t done = um_lanes_evict_done(l, UM_LANE_DROP);

	if (l->any_live && um_lanes_reached(done, l->live))
		l->any_live = 0;
	if (l->any_discard && um_lanes_reached(done, l->discard))
		l->any_discard = 0;
}

void um_lanes_need_drop(struct um_lanes *l, struct um_lanes_need *need, uint64_t addr, uint64_t end)
{
	uint32_t done = um_lanes_evict_done(l, UM_LANE_DROP), k;

	if (!l->any_discard)
		return;
	k = find(l, done, l->discard, addr, end, 0);
	if (k == done || (need->drops && um_lanes_reached(need->drop, k)))
		return;
	need->drops = 1;
	need->drop = k;
}

/* The number after the lane's last pending eviction that touches [addr, end); `done`: there is none. What is left to
 * the driver is not evicted. */
static uint32_t find_eviction(const struct um_lanes *l, enum um_evict_lane lane, uint32_t done, uint64_t addr,
			      uint64_t end)
{
	uint32_t k = um_lanes_evict_queued(l, lane);

	for (; k != done; k--) {
		const struct um_request *r = &l->evict[lane].ring[(k - 1) % UM_LANES_QUEUE];

		if (r->addr < end && r->addr + r->bytes > addr && um_lanes_is_current(l, r) &&
		    um_request_kind(r) != UM_ACTION_LEAVE_TO_DRIVER)
			return k;
	}
	return done;
}

void um_lanes_need_evicted(struct um_lanes *l, struct um_lanes_need *need, uint64_t addr, uint64_t end)
{
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		uint32_t done = um_lanes_evict_done(l, (enum um_evict_lane)i);
		uint32_t k = find_eviction(l, (enum um_evict_lane)i, done, addr, end);

		if (k == done || (need->evicts >> i & 1 && um_lanes_reached(need->evicted[i], k)))
			continue;
		need->evicts |= 1u << i;
		need->evicted[i] = k;
	}
}

/* An in that was submitted comes after the drops that it waited for. */
void um_lanes_guard(struct um_lanes *l, struct um_lanes_need *need, unsigned i, const struct um_use *uses, uint32_t n)
{
	uint32_t from = um_lanes_evict_done(l, UM_LANE_DROP);
	int known = i < UM_LANES_STREAMS;
	uint32_t in = need->ins ? need->in : known ? atomic_load_explicit(&l->gated[i], memory_order_relaxed) : 0;
	uint32_t after = l->in_ring[(in - 1) % UM_LANES_QUEUE].drops;

	if (um_lanes_reached(from, l->live)) {
		l->any_live = 0;
		return;
	}
	if (need->ins && um_lanes_reached(after, l->live)) { /* also if it does not wait for its ins in the end */
		need->drops = 1;
		need->drop = l->live;
		return;
	}
	if (known && !need->ins && um_lanes_in_queued(l) - in < UM_LANES_QUEUE && um_lanes_reached(after, from))
		from = after;
	for (const struct um_use *u = uses; u < uses + n; u++) {
		uint64_t addr = u->tensor->addr + u->off;
		uint32_t k;

		if (!(u->access & UM_WRITE))
			continue;
		k = find(l, from, l->live, addr, addr + u->bytes, 1);
		if (k != from && !(need->drops && um_lanes_reached(need->drop, k))) {
			need->drops = 1;
			need->drop = k;
		}
	}
}
