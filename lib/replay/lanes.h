/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h - three queues of hint calls and the workers that make them
 *
 * in    requests from the program's thread, numbered per lane from 0 (numbers wrap around, compared by difference)
 * out   prefetches, evictions, discards, advice; and events recorded after them, for ops to wait for
 * owns  the queues, the workers, their streams and events
 *
 * Lane `in` prefetches blocks to the device: request k belongs to worker k % UM_LANES_IN, which has a stream of its
 * own, and begins when that stream is idle and no earlier request is still to begin. (The driver works on a prefetch on
 * an idle stream on the calling thread, on a busy stream later, on its only worker, which a fast link outruns. While
 * the blocks of one range are copied, other workers do the driver's work on theirs.) Lane `out` evicts: a move to the
 * host blocks its caller, and costs so much CPU time per block that several workers are needed to fill a fast link;
 * a block that is left to the driver only waits there, like an out. Lane `drop` has workers of its own for evictions
 * without a copy, so that they do not queue after copies. An in waits for a number of outs and drops; those wait for a
 * number of ins, and for marks: events on the program's streams, one worker for each stream (lanes_mark.c).
 *
 * Nothing on a stream waits for what was not submitted to the driver: CUDA does not see such an order, and its calls
 * may block each other because of it. So an op waits in two steps (um_lanes_await). The program's thread waits until
 * the ins that the op needs have been submitted; then the op's stream waits for the events that the workers recorded
 * after them. The first wait ends after a while without progress: the op may then fault, no more than that. Only
 * discards of what the op writes have to be submitted or dropped before it.
 *
 * Requests of an old epoch are not carried out, only counted as complete. Queueing a request: no allocation, no system
 * call while the workers are awake. Not thread-safe on the program's side, except um_lanes_await.
 */
#ifndef UM_REPLAY_LANES_H
#define UM_REPLAY_LANES_H

#include "base/clock.h"
#include "gpu/app_stream.h"
#include "model/profile.h"
#include "replay/block_limit.h"
#include "replay/hint_results.h"
#include "replay/compiled_plan.h"
#include "replay/lanes_need.h"
#include "replay/worker.h"

#include <errno.h>
#include <string.h>

#define UM_LANES_IN 4 /* workers, each with a stream */
#define UM_LANES_IN_EVENTS 4 /* of each stream, in turn: an op seldom waits for more than it needs */
#define UM_LANES_OUT_MOST 8 /* needed only if the link is far faster than the driver (um_lanes_out_workers) */
#define UM_LANES_DROP 4 /* workers */
#define UM_LANES_STREAMS 4 /* distinguishable streams of the program */
#define UM_LANES_EVENTS 2048
#define UM_LANES_EVENT_FLAGS (UM_EVENT_DISABLE_TIMING | UM_EVENT_BLOCKING_SYNC)
#define UM_LANES_QUEUE (1u << 15)
#define UM_LANES_STUCK_NS 200000000u /* time without progress of any worker after which a wait times out */
#define UM_LANES_STUCK_MARK_NS 2000000000u /* the same while evictions wait for the program's ops */
#define UM_LANES_STUCK_SIM_NS 5000000000u /* the same on a simulated device, whose work takes the time of the CPUs */
#define UM_LANES_LOOK_NS 25000000u /* between two looks of a waiting thread: a late one counts as no longer */
#define UM_LANES_STUCK_MOST 3 /* time-outs after which ops do not wait for prefetches */
#define UM_LANES_STUCK_OPS 256 /* ops without a wait after which one op waits again */

/* Points that the program's streams have to reach. */
struct um_lanes_marks {
	uint32_t at[UM_LANES_STREAMS]; /* by stream of the program: serial of a mark */
	uint32_t streams; /* a bit for each stream of the program that counts */
};

struct um_request {
	uint64_t addr, bytes; /* no bytes: nothing to do */
	uint64_t head; /* um_lanes_head */
	uint32_t wait; /* in: number of outs that must be complete before it; else: number of ins */
	uint32_t live; /* drop: discards content of a live tensor. Program's side only */
	struct um_lanes_marks after; /* out, drop: it may start after these */
	uint32_t drops; /* in: number of drops that must be complete before it */
	uint64_t unused; /* a request has a cache line */
};

struct um_lanes;

enum um_evict_lane { UM_LANE_OUT, UM_LANE_DROP, UM_EVICT_LANES };

/* A lane that evicts. */
struct um_lanes_evict {
	struct um_request *ring;
	_Atomic uint32_t head; /* requests queued */
	_Atomic uint32_t done; /* all requests below this number are complete */
	_Atomic uint32_t submitted; /* the same, or they are discards in progress that have their events */
	uint32_t limit; /* maximum that may be queued, as of the last look */
	uint32_t seen; /* requests below this number were queued before the latest um_lanes_poke_new */
	unsigned first, n; /* its workers */
};

struct um_lanes_in {
	struct um_lanes *lanes;
	struct um_runner runner;
	um_stream stream;
	um_event_handle event[UM_LANES_IN_EVENTS]; /* of request k: number k / UM_LANES_IN % UM_LANES_IN_EVENTS */
	int called; /* the call has returned; from the next step on, since simulated time passes between steps */
	uint32_t flies; /* number of the last request that was called, */
	int flying; /* and whether it has not arrived, */
	int waits; /* and whether the worker has waited for that */
	_Atomic uint32_t next; /* the number of its next request: all earlier ones were submitted, or dropped */
};

struct um_lanes_out {
	struct um_lanes *lanes;
	struct um_lanes_evict *evict; /* the lane of this worker */
	struct um_runner runner;
	um_stream stream;
	um_event_handle discarded; /* after a discard in progress */
	int discarding, discard_code;
	int called; /* as in um_lanes_in */
	_Atomic uint32_t next; /* the number of its next request: all earlier ones are complete */
	_Atomic uint32_t submitted; /* the same, or the one after: a discard in progress has its event */
};

/* The marks on a stream of the program. */
struct um_lanes_mark {
	struct um_lanes *lanes;
	struct um_runner runner; /* started with the first mark */
	um_event_handle event[UM_LANES_EVENTS]; /* by serial */
	int waits; /* the worker has waited for the next mark */
};

struct um_lanes {
	struct um_gpu *gpu;
	struct um_block_limit limit; /* of blocks prefetched by ins; set before the first request */
	struct um_request *in_ring;
	struct um_lanes_evict evict[UM_EVICT_LANES];
	_Atomic uint32_t in_head; /* requests queued */
	_Atomic uint32_t in_done; /* all requests below this number were submitted, or dropped */
	_Atomic uint32_t in_turn; /* the request that may begin next: in the order of need */
	uint32_t in_limit, in_seen; /* see um_lanes_evict */
	struct um_lanes_in in[UM_LANES_IN];
	_Atomic uint32_t arrived[UM_LANES_IN]; /* by worker: the number after its last request known to have arrived */
	struct um_lanes_out out[UM_LANES_OUT_MOST + UM_LANES_DROP];
	unsigned n_out; /* workers of both lanes */
	struct um_lanes_mark mark[UM_LANES_STREAMS];
	_Atomic uint32_t marked[UM_LANES_STREAMS]; /* by stream of the program: serials of the latest mark, */
	_Atomic uint32_t reached[UM_LANES_STREAMS]; /* and of the latest one that is complete */
	uint32_t latest_mark[UM_LANES_STREAMS]; /* as `marked`, for the program's side */
	uint32_t mark_limit[UM_LANES_STREAMS]; /* serial of the first mark that is not possible as of the last look */
	struct um_runner_group group; /* its bits: ins, outs, marks */
	_Atomic uint32_t gated[UM_LANES_STREAMS]; /* by stream of the program: number of ins that its ops wait for */
	_Atomic uint32_t epoch;
	atomic_int closing; /* workers stop at their next step, and wake no other */
	uint32_t discard; /* number after the last queued drop */
	int any_discard; /* one may be in progress or pending */
	uint32_t live; /* number after the last drop of a live tensor's content */
	int any_live;
	_Atomic uint32_t waiting; /* threads of the program that wait */
	_Atomic uint32_t wanted; /* number of ins that the latest of them wait for */
	_Atomic uint32_t progress; /* futex: changes whenever a worker has completed something */
	_Atomic uint32_t holds; /* calls of um_lanes_await that are announced or in progress */
	_Atomic uint32_t level; /* of waits that ended by the limit, less those since */
	_Atomic uint32_t passed; /* ops that did not wait because of the level */
	_Atomic uint64_t gates_waited, gates_late, stuck, host_wait_ns; /* as in struct umadv_stats */
	enum um_hint_source source; /* of the requests that follow */
	uint64_t head; /* what they have in common: see um_lanes_head */
	struct um_hints_by_source queued;
	uint64_t dropped;
	_Atomic uint64_t issued[UM_HINT_SOURCES], prefetch_bytes[UM_HINT_SOURCES];
	_Atomic uint64_t refused, evict_bytes, discard_bytes;
	struct um_hint_results results;
};

/* Number of workers that keep the link to the host busy, from the times for one block: the driver's work on the calling
 * thread, and the copy. */
unsigned um_lanes_out_workers(uint64_t work_ns, uint64_t link_ns);

/* The same on a device with this profile, where a copy takes `link_ns`. */
static inline unsigned um_lanes_out_workers_on(const struct um_profile *p, uint64_t link_ns)
{
	return p->serial_host ? 1 : um_lanes_out_workers(p->c_pf + p->c_pf_cpu, link_ns);
}

/* 0, -ENOMEM. The struct is zeroed here. `n_out` workers, at most UM_LANES_OUT_MOST, evict with copies. */
int um_lanes_open(struct um_lanes *l, struct um_gpu *gpu, unsigned n_out);

/* Drops requests that have not begun and waits for the others. 0, or -ETIMEDOUT: the device does not answer; a worker
 * is left behind, and with it the struct and the device. */
int um_lanes_close(struct um_lanes *l);

/* Wakes the workers that have become due. */
#define UM_LANES_BIT_MARK (UM_LANES_IN + UM_LANES_OUT_MOST + UM_LANES_DROP)
void um_lanes_wake(struct um_lanes *l, uint32_t sleepers);

/* Any worker may have become due. */
static inline void um_lanes_poke(struct um_lanes *l)
{
	uint32_t sleepers = um_runner_sleepers(&l->group, l->gpu);

	if (sleepers)
		um_lanes_wake(l, sleepers);
}

/* The program's thread has queued requests: as um_lanes_poke, but only for workers that these may have made due. */
void um_lanes_wake_new(struct um_lanes *l, uint32_t sleepers);

static inline void um_lanes_poke_new(struct um_lanes *l)
{
	uint32_t sleepers = um_runner_sleepers(&l->group, l->gpu);

	if (sleepers)
		um_lanes_wake_new(l, sleepers);
}

/* The same for requests of one op, of which all evictions come after the latest marks of some of `streams`, a bit
 * each, and none after no mark. */
void um_lanes_wake_op(struct um_lanes *l, uint32_t sleepers, uint32_t streams);

static inline void um_lanes_poke_op(struct um_lanes *l, uint32_t streams)
{
	uint32_t sleepers = um_runner_sleepers(&l->group, l->gpu);

	if (sleepers)
		um_lanes_wake_op(l, sleepers, streams);
}

static inline int um_lanes_reached(uint32_t have, uint32_t want)
{
	return (int32_t)(have - want) >= 0;
}

/* All requests of the lane below this number are complete. */
static inline uint32_t um_lanes_in_done(const struct um_lanes *l)
{
	return atomic_load_explicit(&l->in_done, memory_order_acquire);
}

static inline uint32_t um_lanes_evict_done(const struct um_lanes *l, enum um_evict_lane lane)
{
	return atomic_load_explicit(&l->evict[lane].done, memory_order_acquire);
}

/* All drops below this number are complete, or have an event to wait for. */
static inline uint32_t um_lanes_drop_submitted(const struct um_lanes *l)
{
	return atomic_load_explicit(&l->evict[UM_LANE_DROP].submitted, memory_order_acquire);
}

/* The number of the worker's next request changes. */
void um_lanes_in_advance(struct um_lanes_in *in, uint32_t next);
void um_lanes_evict_advance(struct um_lanes_out *o, uint32_t next);
/* The same, of a discard whose event was recorded. */
void um_lanes_evict_submit(struct um_lanes_out *o, uint32_t next);

/* Number of requests queued so far. */
static inline uint32_t um_lanes_in_queued(const struct um_lanes *l)
{
	return atomic_load_explicit(&l->in_head, memory_order_relaxed);
}

static inline uint32_t um_lanes_evict_queued(const struct um_lanes *l, enum um_evict_lane lane)
{
	return atomic_load_explicit(&l->evict[lane].head, memory_order_relaxed);
}

/* Updates the lane's limit, if it seems to be reached, and waits for space where the program is far ahead of the
 * device. 0, or 1: the queue is full. */
int um_lanes_update_in_limit(struct um_lanes *l);
int um_lanes_update_evict_limit(struct um_lanes *l, enum um_evict_lane lane);

/* What requests of one kind have in common while an op is announced: epoch, source of the hint, and kind. */
static inline uint64_t um_lanes_head(const struct um_lanes *l, enum um_action_kind kind)
{
	return l->head | kind;
}

/* The requests that follow are of this source, and of the current epoch. */
static inline void um_lanes_begin_source(struct um_lanes *l, enum um_hint_source source)
{
	l->source = source;
	l->head = (uint64_t)atomic_load_explicit(&l->epoch, memory_order_relaxed) << 32 | (uint64_t)source << 8;
}

static inline uint32_t um_request_epoch(const struct um_request *r)
{
	return (uint32_t)(r->head >> 32);
}

static inline enum um_hint_source um_request_source(const struct um_request *r)
{
	return (enum um_hint_source)(r->head >> 8 & 0xff);
}

static inline enum um_action_kind um_request_kind(const struct um_request *r)
{
	return (enum um_action_kind)(r->head & 0xff);
}

/* Counts queued requests of the current source. */
static inline void um_lanes_count(struct um_lanes *l, uint64_t hints, uint64_t prefetch_bytes)
{
	l->queued.hints[l->source] += hints;
	l->queued.prefetch_bytes[l->source] += prefetch_bytes;
}

/* These queue a request that the caller counts: 0, or -EAGAIN if there is no room. */
static inline int um_lanes_put_in(struct um_lanes *l, uint64_t head, uint64_t addr, uint64_t bytes, uint32_t outs,
				  uint32_t drops)
{
	uint32_t k = um_lanes_in_queued(l);
	struct um_request *r = &l->in_ring[k % UM_LANES_QUEUE];

	if (k == l->in_limit && um_lanes_update_in_limit(l))
		return -EAGAIN;
	r->addr = addr;
	r->bytes = bytes;
	r->head = head;
	r->wait = outs;
	r->drops = drops;
	atomic_store_explicit(&l->in_head, k + 1, memory_order_release);
	return 0;
}

/* The latest marks on `streams`, a bit each. */
static inline void um_lanes_latest_marks(const struct um_lanes *l, uint32_t streams, struct um_lanes_marks *m)
{
	memcpy(m->at, l->latest_mark, sizeof m->at);
	m->streams = streams;
}

/* After the latest marks on `streams`, a bit each. */
static inline int um_lanes_put_evict(struct um_lanes *l, enum um_evict_lane lane, uint64_t head, uint64_t addr,
				     uint64_t bytes, uint32_t ins, uint32_t streams)
{
	struct um_lanes_evict *to = &l->evict[lane];
	uint32_t k = um_lanes_evict_queued(l, lane);
	struct um_request *r = &to->ring[k % UM_LANES_QUEUE];

	if (k == to->limit && um_lanes_update_evict_limit(l, lane))
		return -EAGAIN;
	r->addr = addr;
	r->bytes = bytes;
	r->head = head;
	r->wait = ins;
	um_lanes_latest_marks(l, streams, &r->after);
	r->live = 0;
	atomic_store_explicit(&to->head, k + 1, memory_order_release);
	return 0;
}

/* The same, and count it. `kind` of a request in the drop lane: it may turn out to need a copy. */
static inline int um_lanes_in(struct um_lanes *l, uint64_t addr, uint64_t bytes, uint32_t outs, uint32_t drops)
{
	int err = um_lanes_put_in(l, um_lanes_head(l, UM_ACTION_PREFETCH), addr, bytes, outs, drops);

	if (!err)
		um_lanes_count(l, bytes != 0, bytes);
	return err;
}

static inline int um_lanes_evict(struct um_lanes *l, enum um_evict_lane lane, enum um_action_kind kind, uint64_t addr,
				 uint64_t bytes, uint32_t ins, uint32_t streams)
{
	int err = um_lanes_put_evict(l, lane, um_lanes_head(l, kind), addr, bytes, ins, streams);

	if (err)
		return err;
	um_lanes_count(l, bytes != 0 && kind != UM_ACTION_LEAVE_TO_DRIVER, 0);
	if (kind != UM_ACTION_EVICT && kind != UM_ACTION_LEAVE_TO_DRIVER) {
		l->discard = um_lanes_evict_queued(l, lane);
		l->any_discard = 1;
	}
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

/* The number of marks on the program's stream number `i` that are not known to be complete. */
static inline uint32_t um_lanes_unreached(const struct um_lanes *l, unsigned i)
{
	return l->latest_mark[i] - atomic_load_explicit(&l->reached[i], memory_order_acquire);
}

/* Starts the stream's worker, creates its next event, waits for a mark to complete, whichever is necessary for the next
 * mark, and updates the limit. 0 or -EAGAIN. */
int um_lanes_update_mark_limit(struct um_lanes *l, unsigned i);

/* Records the position of the program's stream number `i`. 0, or -EAGAIN (no event is free). */
static inline int um_lanes_mark(struct um_lanes *l, unsigned i, const struct um_app_stream *stream)
{
	uint32_t n = l->latest_mark[i] + 1;
	int code;

	if (n == l->mark_limit[i] && um_lanes_update_mark_limit(l, i))
		return -EAGAIN;
	code = um_app_stream_record(l->gpu, l->mark[i].event[n % UM_LANES_EVENTS], *stream);
	if (code && code != UM_CUDA_INVALID_HANDLE) /* a destroyed stream: its work is complete */
		return -EAGAIN;
	l->latest_mark[i] = n;
	atomic_store_explicit(&l->marked[i], n, memory_order_release);
	return 0;
}

/* The stream of the program with this number has no work any more; a later one may get the number. */
void um_lanes_forget_stream(struct um_lanes *l, unsigned i);

/* The op at hand, on the program's stream number `i`, needs the first `seq` ins. */
static inline void um_lanes_gate(const struct um_lanes *l, struct um_lanes_need *need, uint32_t seq, unsigned i)
{
	if (atomic_load_explicit(&l->gated[i], memory_order_relaxed) - seq < UM_LANES_QUEUE)
		return; /* the stream waits for them already */
	need->in = seq;
	need->ins = 1;
}

/* Are all ops complete that precede these marks? */
static inline int um_lanes_marks_reached(const struct um_lanes *l, const struct um_lanes_marks *m)
{
	for (uint32_t rest = m->streams; rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);

		if (!um_lanes_reached(atomic_load_explicit(&l->reached[i], memory_order_acquire), m->at[i]))
			return 0;
	}
	return 1;
}

/* Is the request to be carried out? */
int um_lanes_is_current(const struct um_lanes *l, const struct um_request *r);
/* Have the streams passed these marks by now, although their workers may not know yet? */
int um_lanes_marks_passed(struct um_lanes *l, const struct um_lanes_marks *m);
/* May the worker's next request, number `k`, begin? */
int um_lanes_in_is_due(const struct um_lanes_in *in, uint32_t k);
int um_lanes_out_is_due(const struct um_lanes_out *o, uint32_t k);

/* A worker has completed something: wakes threads of the program that wait for it. */
void um_lanes_notify(struct um_lanes *l);

/* Do ops wait for ins? */
static inline int um_lanes_gates(const struct um_lanes *l)
{
	return atomic_load_explicit(&l->level, memory_order_relaxed) < UM_LANES_STUCK_MOST;
}

/* Announces a call of um_lanes_await: it keeps the struct from being freed. */
static inline void um_lanes_hold(struct um_lanes *l)
{
	atomic_fetch_add_explicit(&l->holds, 1, memory_order_relaxed);
}

static inline void um_lanes_let(struct um_lanes *l)
{
	atomic_fetch_sub_explicit(&l->holds, 1, memory_order_release);
	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		um_lanes_notify(l);
}

/* An op that needs this is about to be launched on the program's stream number `i`. Waits until it was submitted, and
 * makes the stream wait for the rest. 0, and the announcement has ended; or -EBUSY: drops that it needs are pending,
 * and nothing has moved for a while. From any thread, without a lock. */
int um_lanes_await(struct um_lanes *l, const struct um_lanes_need *need, um_stream stream, unsigned i);

/* Begins a new epoch: queued requests that have not begun are not carried out. */
void um_lanes_drop(struct um_lanes *l);

/* Begins to listen to requests queued from now on: call it before the workers are woken. 0 or -ENOMEM. */
int um_lanes_listen(struct um_lanes *l, const struct um_hint_listener *listener);
/* The next queued request is of this kind, for the op of this number. Call it before each request; only with a
 * listener. 0, or -EAGAIN: no room. */
int um_lanes_expect(struct um_lanes *l, enum um_action_kind kind, uint64_t op);
void um_lanes_report_hints(struct um_lanes *l); /* reports results of completed requests that were not reported */

/* Waits until done(l, arg) is true: 0; or -ETIMEDOUT, when nothing has moved for a while. Poke the workers before. */
int um_lanes_wait(struct um_lanes *l, int (*done)(const struct um_lanes *l, const void *arg), const void *arg);
/* The same, for something that is not so now, nor before `in` ins were submitted. */
int um_lanes_wait_ins(struct um_lanes *l, int (*done)(const struct um_lanes *, const void *), const void *arg,
		      uint32_t in);
/* ns of the clock by which threads of the program wait */
static inline uint64_t um_lanes_now(const struct um_lanes *l)
{
	return l->gpu->api->worker_wait ? l->gpu->api->now(l->gpu) : um_clock_ns(CLOCK_MONOTONIC);
}

int um_lanes_is_drained(const struct um_lanes *l, const void *arg); /* for that: no request is pending */

/* These wait like that, with the same results. */
/* No drop that touches [addr, end) is pending. */
int um_lanes_claim(struct um_lanes *l, uint64_t addr, uint64_t end);
/* No request is pending. */
int um_lanes_drain(struct um_lanes *l);
/* All ops that precede these marks are complete. Where such waits have failed repeatedly, it returns at once. */
void um_lanes_await_marks(struct um_lanes *l, const struct um_lanes_marks *m);

/* The access at hand uses [addr, end), of the CPU or as new memory: adds pending drops to what it needs. */
void um_lanes_need_drop(struct um_lanes *l, struct um_lanes_need *need, uint64_t addr, uint64_t end);

/* The access at hand, of the CPU, uses [addr, end): adds pending evictions of it to what it needs. */
void um_lanes_need_evicted(struct um_lanes *l, struct um_lanes_need *need, uint64_t addr, uint64_t end);

/* The op at hand, on the program's stream number `i`, uses this: adds to what it needs the drops of live tensors'
 * content where it writes. Only if l->any_live. */
void um_lanes_guard(struct um_lanes *l, struct um_lanes_need *need, unsigned i, const struct um_use *uses, uint32_t n);

/* Updates l->any_live and l->any_discard: at least once in 2^31 drops, for the numbers to be comparable. */
void um_lanes_update_drops(struct um_lanes *l);

#endif
