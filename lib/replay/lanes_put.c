/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes_put.c - the program's side of the lanes: queue limits, progress, marks, waiting ops
 */
#include "replay/lanes.h"

#include "base/clock.h"
#include "model/tensor.h"

uint32_t um_lanes_evict_done(const struct um_lanes *l, enum um_evict_lane lane)
{
	const struct um_lanes_evict *a = &l->evict[lane];
	uint32_t least = atomic_load_explicit(&l->out[a->first].next, memory_order_acquire);

	for (unsigned i = a->first + 1; i < a->first + a->n; i++) {
		uint32_t next = atomic_load_explicit(&l->out[i].next, memory_order_acquire);

		if (!um_lanes_reached(next, least))
			least = next;
	}
	return least;
}

uint32_t um_lanes_in_done(const struct um_lanes *l)
{
	uint32_t least = atomic_load_explicit(&l->in[0].next, memory_order_acquire);

	for (unsigned i = 1; i < UM_LANES_IN; i++) {
		uint32_t next = atomic_load_explicit(&l->in[i].next, memory_order_acquire);

		if (!um_lanes_reached(next, least))
			least = next;
	}
	return least;
}

void um_lanes_poke_outs(struct um_lanes *l)
{
	for (unsigned i = 0; i < l->n_out; i++)
		um_runner_poke(&l->out[i].runner);
}

void um_lanes_poke_ins(struct um_lanes *l)
{
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		um_runner_poke(&l->in[i].runner);
}

void um_lanes_poke(struct um_lanes *l)
{
	if (!l->gpu->api->worker_poke)
		return;
	um_lanes_poke_outs(l);
	um_lanes_poke_ins(l);
}

int um_lanes_update_in_limit(struct um_lanes *l)
{
	l->in_limit = um_lanes_in_done(l) + UM_LANES_QUEUE;
	return um_lanes_in_queued(l) == l->in_limit;
}

int um_lanes_update_evict_limit(struct um_lanes *l, enum um_evict_lane lane)
{
	l->evict[lane].limit = um_lanes_evict_done(l, lane) + UM_LANES_QUEUE;
	return um_lanes_evict_queued(l, lane) == l->evict[lane].limit;
}

/* The oldest unfinished request holds its event, and all later ones. */
static uint32_t oldest_event(const struct um_lanes *l)
{
	uint32_t oldest = l->event;

	for (int i = 0; i < UM_EVICT_LANES; i++) {
		uint32_t done = um_lanes_evict_done(l, (enum um_evict_lane)i);
		uint32_t event = l->evict[i].ring[done % UM_LANES_QUEUE].event;

		if (!um_lanes_reached(done, um_lanes_evict_queued(l, (enum um_evict_lane)i)) &&
		    !um_lanes_reached(event, oldest))
			oldest = event;
	}
	return oldest;
}

int um_lanes_mark(struct um_lanes *l, const struct um_app_stream *streams, unsigned n)
{
	struct um_gpu *gpu = l->gpu;

	if (l->event + 1 - l->oldest >= UM_LANES_EVENTS) {
		l->oldest = oldest_event(l);
		if (l->event + 1 - l->oldest >= UM_LANES_EVENTS)
			return -EAGAIN;
	}
	l->event++;
	um_event_handle *e = l->events[l->event % UM_LANES_EVENTS];

	for (const struct um_app_stream *s = streams; s < streams + n; s++, e++) {
		if (s->handle == UM_STREAM_NONE)
			continue;
		if (!*e && gpu->api->cudaEventCreateWithFlags(gpu, e, UM_LANES_EVENT_FLAGS))
			return -EAGAIN;
		int code = um_app_stream_record(gpu, *e, *s);

		if (code && code != UM_CUDA_INVALID_HANDLE) /* a destroyed stream: its work is complete */
			return -EAGAIN;
	}
	return 0;
}

/* A stream that gets the number waits for no in yet. */
void um_lanes_forget_stream(struct um_lanes *l, unsigned i)
{
	if (i < UM_LANES_STREAMS)
		l->gated[i] = um_lanes_in_queued(l) - UM_LANES_QUEUE;
}

/* Of the ins that this stream does not wait for yet, the last on each of their streams: request k raises its stream's
 * number to k + 1. */
int um_lanes_gate_new(struct um_lanes *l, uint32_t seq, um_stream stream, unsigned i)
{
	struct um_gpu *gpu = l->gpu;
	uint32_t new = seq - l->gated[i], n = new < UM_LANES_IN_STREAMS ? new : UM_LANES_IN_STREAMS;
	int err = 0;

	if (!um_lanes_gates(l))
		return 0;
	for (uint32_t last = seq; n; last--, n--) {
		uint32_t *at = &l->arrived[(last - 1) % UM_LANES_IN_STREAMS];

		if (um_lanes_reached(__atomic_load_n(at, __ATOMIC_ACQUIRE), last))
			continue;
		if (gpu->api->cuStreamWaitValue32(gpu, stream, at, last, UM_WAIT_VALUE_GEQ)) {
			atomic_fetch_add_explicit(&l->refused, 1, memory_order_relaxed);
			err = -EIO;
		}
	}
	if (!err)
		l->gated[i] = seq;
	return err;
}

/* --- pending discards --------------------------------------------------------------------------------------------- */

static int discards_done(void *arg)
{
	struct um_lanes *l = arg;

	return um_lanes_reached(um_lanes_evict_done(l, UM_LANE_DROP), l->discard);
}

/* Returns when all drops below number `until` are complete. */
static void await_drops(struct um_lanes *l, uint32_t until)
{
	uint32_t last = l->discard;

	l->discard = until;
	um_lanes_poke(l);
	um_runner_until(&l->out[l->evict[UM_LANE_DROP].first].runner, discards_done, l);
	l->discard = last;
}

void um_lanes_settle(struct um_lanes *l)
{
	if (l->any_discard)
		await_drops(l, l->discard);
	l->any_discard = 0;
}

/* A wait that ends when nothing has moved for a while: what it is for may wait for this thread. */
struct bounded_wait {
	struct um_lanes *l;
	int (*done)(const struct um_lanes *l, uint32_t in, uint32_t *moved);
	uint32_t in, moved;
	uint64_t since;
};

static int is_over(void *arg)
{
	struct bounded_wait *w = arg;
	uint32_t moved;

	if (w->done(w->l, w->in, &moved))
		return 1;
	if (w->l->gpu->caps.virtual_time)
		return 0;
	if (!w->since || moved != w->moved)
		w->since = um_clock_ns(CLOCK_MONOTONIC);
	w->moved = moved;
	return um_clock_ns(CLOCK_MONOTONIC) - w->since > UM_LANES_STUCK_NS;
}

static void wait_bounded(struct um_lanes *l, struct um_runner *runner, struct bounded_wait *w)
{
	if (is_over(w))
		return;
	um_lanes_poke(l);
	um_runner_until(runner, is_over, w);
}

static int has_space(const struct um_lanes *l, uint32_t in, uint32_t *moved)
{
	uint32_t done = um_lanes_in_done(l), most = um_lanes_in_queued(l) - done;

	(void)in;
	*moved = done;
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		uint32_t queued = um_lanes_evict_queued(l, (enum um_evict_lane)i);

		done = um_lanes_evict_done(l, (enum um_evict_lane)i);
		*moved += done;
		most = queued - done > most ? queued - done : most;
	}
	return most <= UM_LANES_QUEUE / 2 && l->event - oldest_event(l) <= UM_LANES_EVENTS / 2;
}

void um_lanes_make_space(struct um_lanes *l)
{
	struct bounded_wait w = {.l = l, .done = has_space};

	um_lanes_update_in_limit(l);
	for (int i = 0; i < UM_EVICT_LANES; i++)
		um_lanes_update_evict_limit(l, (enum um_evict_lane)i);
	l->oldest = oldest_event(l);
	if (!um_lanes_is_tight(l))
		return;
	wait_bounded(l, &l->in[0].runner, &w);
	l->oldest = oldest_event(l);
}

/* All prefetches that announced ops wait for were requested from the driver. */
static int is_carried_out(const struct um_lanes *l, uint32_t in, uint32_t *moved)
{
	*moved = um_lanes_in_done(l);
	return um_lanes_reached(*moved, in);
}

void um_lanes_carry_out(struct um_lanes *l)
{
	struct bounded_wait w = {.l = l, .done = is_carried_out, .in = um_lanes_in_done(l)};

	for (unsigned i = 0; i < UM_LANES_STREAMS; i++)
		if (um_lanes_in_queued(l) - l->gated[i] < UM_LANES_QUEUE && um_lanes_reached(l->gated[i], w.in))
			w.in = l->gated[i];
	wait_bounded(l, &l->in[0].runner, &w);
}

static int is_drained(const struct um_lanes *l, uint32_t in, uint32_t *moved)
{
	uint32_t out = um_lanes_evict_done(l, UM_LANE_OUT), drop = um_lanes_evict_done(l, UM_LANE_DROP);

	(void)in;
	*moved = out + drop;
	return um_lanes_reached(out, um_lanes_evict_queued(l, UM_LANE_OUT)) &&
	       um_lanes_reached(drop, um_lanes_evict_queued(l, UM_LANE_DROP));
}

void um_lanes_drain(struct um_lanes *l)
{
	struct bounded_wait w = {.l = l, .done = is_drained};

	wait_bounded(l, &l->out[l->evict[UM_LANE_OUT].first].runner, &w);
}

void um_lanes_claim(struct um_lanes *l, uint64_t addr, uint64_t end)
{
	uint32_t done = um_lanes_evict_done(l, UM_LANE_DROP), k = l->any_discard ? l->discard : done;

	for (; !um_lanes_reached(done, k); k--) {
		const struct um_request *r = &l->evict[UM_LANE_DROP].ring[(k - 1) % UM_LANES_QUEUE];

		if (r->kind != UM_ACTION_EVICT && r->addr < end && r->addr + r->bytes > addr)
			break;
	}
	if (!um_lanes_reached(done, k))
		await_drops(l, k);
}

static void guard(struct um_lanes *l, uint32_t from, uint64_t addr, uint64_t end)
{
	uint32_t k = l->live;

	for (; !um_lanes_reached(from, k); k--) {
		const struct um_request *r = &l->evict[UM_LANE_DROP].ring[(k - 1) % UM_LANES_QUEUE];

		if (r->live && r->addr < end && r->addr + r->bytes > addr)
			break;
	}
	if (!um_lanes_reached(from, k))
		await_drops(l, k);
}

void um_lanes_update_live(struct um_lanes *l)
{
	if (l->any_live && um_lanes_reached(um_lanes_evict_done(l, UM_LANE_DROP), l->live))
		l->any_live = 0;
}

/* The stream's ops already wait for all drops that the last of these ins waited for. */
void um_lanes_guard(struct um_lanes *l, unsigned i, const struct um_use *uses, uint32_t n)
{
	uint32_t from = um_lanes_evict_done(l, UM_LANE_DROP), in = l->gated[i];
	uint32_t waited = l->in_ring[(in - 1) % UM_LANES_QUEUE].drops;

	if (um_lanes_reached(from, l->live)) {
		l->any_live = 0;
		return;
	}
	if (um_lanes_in_queued(l) - in < UM_LANES_QUEUE && um_lanes_reached(waited, from))
		from = waited;
	for (const struct um_use *u = uses; u < uses + n; u++) {
		uint64_t addr = u->tensor->addr + u->off;

		if (u->access & UM_WRITE)
			guard(l, from, addr, addr + u->bytes);
	}
}
