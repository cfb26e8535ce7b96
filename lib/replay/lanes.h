/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h - three queues of hint calls and the workers that make them
 *
 * in    requests from the program's thread, numbered per lane from 0 (numbers wrap around, compared by difference)
 * out   prefetches, evictions, discards, advice; and arrivals, on which ops wait
 * owns  the queues, the workers, their streams and events
 *
 * Lane `in` prefetches blocks to the device: request k belongs to worker k % n, on stream k % m, and begins when the
 * stream is idle and no earlier request is still to begin. (The driver works on a prefetch on an idle stream on the
 * calling thread, on a busy stream later, on its only worker, which a fast link outruns. While the blocks of one range
 * are copied, other workers do the driver's work on theirs.) Each stream raises a number in pinned memory when a range
 * has arrived. Lane `out` evicts: a prefetch to the host blocks its caller, and costs so much CPU time per block that
 * several workers are needed to fill a fast link; a block that is left to the driver only waits there, like an out.
 * Lane `drop` has workers of its own for evictions without a copy, so that they do not queue after copies. An in waits
 * for a number of outs and drops; those wait for a number of ins, and for an event. Requests of an old epoch are not
 * carried out, only counted as complete, so that waiting ops are released - but not before the drops that an in waits
 * for have ended: one may be in progress on memory that the released op writes. An in beyond the limit is not carried
 * out either. Queueing a request: no allocation, no system call. Not thread-safe on the program's side.
 *
 * CUDA does not see the order that waiting for a number creates: where streams share a hardware queue, the arrival that
 * an op waits for may be queued after that very op. So on a real device an in worker watches: the host raises numbers
 * that have not changed for UM_LANES_STUCK_NS although everything was requested (an op may then fault, no more than
 * that), and after UM_LANES_STUCK_MOST times ops do not wait any more.
 */
#ifndef UM_REPLAY_LANES_H
#define UM_REPLAY_LANES_H

#include "gpu/app_stream.h"
#include "replay/block_limit.h"
#include "replay/hint_results.h"
#include "replay/compiled_plan.h"
#include "replay/worker.h"

#include <errno.h>

#define UM_LANES_IN 4 /* workers */
#define UM_LANES_IN_STREAMS                                                                                            \
	4 /* a multiple of that; with more streams, more of them share a hardware queue with the
			         program's */
#define UM_LANES_OUT_MOST 8 /* needed only if the link is far faster than the driver (um_lanes_out_workers) */
#define UM_LANES_DROP 4 /* workers */
#define UM_LANES_STREAMS 4 /* distinguishable streams of the program */
#define UM_LANES_EVENTS 2048
#define UM_LANES_EVENT_FLAGS (UM_EVENT_DISABLE_TIMING | UM_EVENT_BLOCKING_SYNC)
#define UM_LANES_QUEUE (1u << 15)
#define UM_LANES_STUCK_NS 200000000u
#define UM_LANES_STUCK_MOST 3

struct um_request {
	enum um_action_kind kind;
	uint64_t addr, bytes; /* no bytes: nothing to do */
	uint32_t wait; /* in: number of outs that must be complete before it; else: number of ins */
	uint32_t drops; /* in: the same for drops */
	uint32_t event; /* out, drop: serial of the mark after which it may start */
	uint32_t epoch;
	enum um_hint_source source;
	int live; /* drop: discards content of a live tensor. Program's side only */
};

struct um_lanes;

enum um_evict_lane { UM_LANE_OUT, UM_LANE_DROP, UM_EVICT_LANES };

/* A lane that evicts. */
struct um_lanes_evict {
	struct um_request *ring;
	_Atomic uint32_t head; /* requests queued */
	uint32_t limit; /* maximum that may be queued, as of the last look */
	unsigned first, n; /* its workers */
};

/* State of the current request. */
enum um_lanes_state {
	UM_LANES_WAITS,
	UM_LANES_CALLED,
	UM_LANES_REFUSED, /* the device cannot raise the number: the host will */
	UM_LANES_ARRIVES /* from the next step on, since simulated time passes between steps */
};

struct um_lanes_in {
	struct um_lanes *lanes;
	struct um_runner runner;
	enum um_lanes_state state;
	_Atomic uint32_t next; /* the number of its next request: all earlier ones are complete */
};

struct um_lanes_out {
	struct um_lanes *lanes;
	struct um_lanes_evict *evict; /* the lane of this worker */
	struct um_runner runner;
	um_stream stream;
	um_event_handle discarded; /* after a discard in progress */
	int discarding, discard_code;
	int called; /* the call has returned; from the next step on, since simulated time passes between steps */
	_Atomic uint32_t next; /* the number of its next request: all earlier ones are complete */
};

struct um_lanes {
	struct um_gpu *gpu;
	struct um_block_limit limit; /* of blocks prefetched by ins; set before the first request */
	struct um_request *in_ring;
	struct um_lanes_evict evict[UM_EVICT_LANES];
	_Atomic uint32_t in_head; /* requests queued */
	_Atomic uint32_t in_turn; /* the request that may begin next: in the order of need */
	uint32_t in_limit; /* see um_lanes_evict */
	struct um_lanes_in in[UM_LANES_IN];
	um_stream in_stream[UM_LANES_IN_STREAMS];
	uint32_t *arrived; /* [UM_LANES_IN_STREAMS], pinned */
	uint32_t seen[UM_LANES_IN_STREAMS]; /* first in worker: the numbers at the last look */
	uint64_t seen_ns; /* time since which they are unchanged (0: all have arrived) */
	_Atomic unsigned stuck; /* number of times that the host raised numbers */
	struct um_lanes_out out[UM_LANES_OUT_MOST + UM_LANES_DROP];
	unsigned n_out; /* workers of both lanes */
	um_event_handle events[UM_LANES_EVENTS][UM_LANES_STREAMS];
	uint32_t event; /* serial of the latest mark */
	uint32_t oldest; /* of the marks that are still waited for, or an earlier one */
	uint32_t gated[UM_LANES_STREAMS]; /* by stream of the program: number of ins that its ops wait for already */
	_Atomic uint32_t epoch;
	atomic_int closing; /* workers stop at their next step, and poke no other */
	uint32_t discard; /* number after the last queued drop, or after the one that is waited for */
	int any_discard;
	uint32_t live; /* number after the last drop of a live tensor's content */
	int any_live; /* one may be in progress or pending */
	enum um_hint_source source; /* of the requests that follow */
	struct um_hints_by_source queued;
	uint64_t dropped;
	_Atomic uint64_t issued[UM_HINT_SOURCES], prefetch_bytes[UM_HINT_SOURCES];
	_Atomic uint64_t refused, evict_bytes, discard_bytes;
	struct um_hint_results results;
};

/* Number of workers that keep the link to the host busy, from the times for one block: the driver's work on the calling
 * thread, and the copy. */
unsigned um_lanes_out_workers(uint64_t work_ns, uint64_t link_ns);

/* 0, -ENOMEM. The struct is zeroed here. `n_out` workers, at most UM_LANES_OUT_MOST, evict with copies. */
int um_lanes_open(struct um_lanes *l, struct um_gpu *gpu, unsigned n_out);

/* Waits for requests that have begun, drops the others, and releases ops that wait. */
void um_lanes_close(struct um_lanes *l);

void um_lanes_wake(struct um_lanes *l); /* requests will follow */
void um_lanes_poke(struct um_lanes *l); /* requests were queued */
void um_lanes_poke_ins(struct um_lanes *l); /* wakes the workers of this side only */
void um_lanes_poke_outs(struct um_lanes *l);

static inline int um_lanes_reached(uint32_t have, uint32_t want)
{
	return (int32_t)(have - want) >= 0;
}

/* All requests of the lane below this number are complete. */
uint32_t um_lanes_in_done(const struct um_lanes *l);
uint32_t um_lanes_evict_done(const struct um_lanes *l, enum um_evict_lane lane);

/* Number of requests queued so far. */
static inline uint32_t um_lanes_in_queued(const struct um_lanes *l)
{
	return atomic_load_explicit(&l->in_head, memory_order_relaxed);
}

static inline uint32_t um_lanes_evict_queued(const struct um_lanes *l, enum um_evict_lane lane)
{
	return atomic_load_explicit(&l->evict[lane].head, memory_order_relaxed);
}

/* Updates the lane's limit, if it seems to be reached. */
int um_lanes_update_in_limit(struct um_lanes *l);
int um_lanes_update_evict_limit(struct um_lanes *l, enum um_evict_lane lane);

/* The queues are nearly full, as of the last look: the program is far ahead of the device. */
static inline int um_lanes_is_tight(const struct um_lanes *l)
{
	const uint32_t least = UM_LANES_QUEUE / 4;

	return l->in_limit - um_lanes_in_queued(l) < least ||
	       l->evict[UM_LANE_OUT].limit - um_lanes_evict_queued(l, UM_LANE_OUT) < least ||
	       l->evict[UM_LANE_DROP].limit - um_lanes_evict_queued(l, UM_LANE_DROP) < least ||
	       l->event - l->oldest > UM_LANES_EVENTS / 4 * 3;
}

/* Then returns when they are half empty, or when nothing has moved for UM_LANES_STUCK_NS. */
void um_lanes_make_space(struct um_lanes *l);

/* Queues a request: 0, or -EAGAIN if there is no room. */
static inline int um_lanes_in(struct um_lanes *l, uint64_t addr, uint64_t bytes, uint32_t outs, uint32_t drops)
{
	uint32_t k = um_lanes_in_queued(l);
	struct um_request *r = &l->in_ring[k % UM_LANES_QUEUE];

	if (k == l->in_limit && um_lanes_update_in_limit(l))
		return -EAGAIN;
	r->kind = UM_ACTION_PREFETCH;
	r->epoch = atomic_load_explicit(&l->epoch, memory_order_relaxed);
	r->addr = addr;
	r->bytes = bytes;
	r->wait = outs;
	r->drops = drops;
	r->source = l->source;
	l->queued.hints[r->source] += bytes != 0;
	l->queued.prefetch_bytes[r->source] += bytes;
	atomic_store_explicit(&l->in_head, k + 1, memory_order_release);
	return 0;
}

/* The same. `kind`: a drop may turn out to need a copy. */
static inline int um_lanes_evict(struct um_lanes *l, enum um_evict_lane lane, enum um_action_kind kind, uint64_t addr,
				 uint64_t bytes, uint32_t ins)
{
	struct um_lanes_evict *to = &l->evict[lane];
	uint32_t k = um_lanes_evict_queued(l, lane);
	struct um_request *r = &to->ring[k % UM_LANES_QUEUE];

	if (k == to->limit && um_lanes_update_evict_limit(l, lane))
		return -EAGAIN;
	r->kind = kind;
	r->epoch = atomic_load_explicit(&l->epoch, memory_order_relaxed);
	r->addr = addr;
	r->bytes = bytes;
	r->wait = ins;
	r->event = l->event;
	r->live = 0;
	r->source = l->source;
	l->queued.hints[r->source] += bytes != 0 && kind != UM_ACTION_LEAVE_TO_DRIVER;
	if (kind != UM_ACTION_EVICT && kind != UM_ACTION_LEAVE_TO_DRIVER) {
		l->discard = k + 1;
		l->any_discard = 1;
	}
	atomic_store_explicit(&to->head, k + 1, memory_order_release);
	return 0;
}

/* The last queued drop discards content of a live tensor. */
static inline void um_lanes_live(struct um_lanes *l)
{
	uint32_t k = um_lanes_evict_queued(l, UM_LANE_DROP);

	l->evict[UM_LANE_DROP].ring[(k - 1) % UM_LANES_QUEUE].live = 1;
	l->live = k;
	l->any_live = 1;
}

/* Records the positions of the program's streams (at most UM_LANES_STREAMS); evictions queued from now on wait for
 * them. 0, or -EAGAIN (no event is free). */
int um_lanes_mark(struct um_lanes *l, const struct um_app_stream *streams, unsigned n);

/* The stream of the program with this number has no work any more; a later one may get the number. */
void um_lanes_forget_stream(struct um_lanes *l, unsigned i);

/* um_lanes_gate where the stream does not wait for all of these ins yet. */
int um_lanes_gate_new(struct um_lanes *l, uint32_t seq, um_stream stream, unsigned i);

/* The next launch on the program's stream number `i` waits until the first `seq` ins have arrived. 0, or -EIO: it does
 * not wait. */
static inline int um_lanes_gate(struct um_lanes *l, uint32_t seq, um_stream stream, unsigned i)
{
	if (l->gated[i] - seq < UM_LANES_QUEUE)
		return 0; /* nothing was queued that an op must wait for */
	return um_lanes_gate_new(l, seq, stream, i);
}

/* Can ops wait? */
static inline int um_lanes_gates(const struct um_lanes *l)
{
	return l->gpu->caps.stream_values &&
	       atomic_load_explicit(&l->stuck, memory_order_relaxed) < UM_LANES_STUCK_MOST;
}

/* Begins a new epoch: queued requests that have not begun are not carried out. */
void um_lanes_drop(struct um_lanes *l);

/* Begins to listen to requests queued from now on: call it before the workers are woken. 0 or -ENOMEM. */
int um_lanes_listen(struct um_lanes *l, const struct um_hint_listener *listener);
/* The next queued request is of this kind, for the op of this number. Call it before each request; only with a
 * listener. 0, or -EAGAIN: no room. */
int um_lanes_expect(struct um_lanes *l, enum um_action_kind kind, uint64_t op);
void um_lanes_report_hints(struct um_lanes *l); /* reports results of completed requests that were not reported */

/* Returns when the requests are carried out that ops wait for which have been announced, or when nothing has moved for
 * UM_LANES_STUCK_NS. */
void um_lanes_carry_out(struct um_lanes *l);
/* Returns when no queued eviction is in progress or pending, or likewise. */
void um_lanes_drain(struct um_lanes *l);
/* Returns when no queued drop is in progress or pending: none at all, or none that touches [addr, end). */
void um_lanes_settle(struct um_lanes *l);
void um_lanes_claim(struct um_lanes *l, uint64_t addr, uint64_t end);

/* An op on the program's stream number `i` is about to be launched: returns when no drop of a live tensor's content is
 * in progress or pending where the op writes, except those that the stream waits for. Only if l->any_live. */
void um_lanes_guard(struct um_lanes *l, unsigned i, const struct um_use *uses, uint32_t n);

/* Does the last in that the stream's ops wait for come after all drops of live tensors' content? Then there is nothing
 * to guard. */
static inline int um_lanes_awaits_live(const struct um_lanes *l, unsigned i)
{
	uint32_t in = l->gated[i];

	return um_lanes_in_queued(l) - in < UM_LANES_QUEUE &&
	       um_lanes_reached(l->in_ring[(in - 1) % UM_LANES_QUEUE].drops, l->live);
}

/* Updates l->any_live: at least once in 2^31 drops, for the numbers to be comparable. */
void um_lanes_update_live(struct um_lanes *l);

#endif
