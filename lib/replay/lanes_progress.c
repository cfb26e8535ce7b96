/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes_progress.c - what is complete, which workers are due, and waits until something is complete
 */
#include "replay/lanes.h"

#include "base/clock.h"

#define SLOT(k) ((k) % UM_LANES_QUEUE)
#define MANY 64 /* requests: rather wake a worker than look at more */

/* Of several workers that complete something at once the last one sees the numbers of all: they are stored, and read,
 * in one order (seq_cst). */
static void raise_to(_Atomic uint32_t *word, uint32_t to)
{
	uint32_t was = atomic_load_explicit(word, memory_order_relaxed);

	while (!um_lanes_reached(was, to) &&
	       !atomic_compare_exchange_weak_explicit(word, &was, to, memory_order_acq_rel, memory_order_relaxed))
		;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return um_lanes_reached(a, b) ? b : a;
}

void um_lanes_in_advance(struct um_lanes_in *in, uint32_t next)
{
	struct um_lanes *l = in->lanes;

	atomic_store(&in->next, next);
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		next = lesser(next, atomic_load(&l->in[i].next));
	raise_to(&l->in_done, next);
}

void um_lanes_evict_submit(struct um_lanes_out *o, uint32_t next)
{
	struct um_lanes_evict *e = o->evict;

	atomic_store(&o->submitted, next);
	for (unsigned i = e->first; i < e->first + e->n; i++)
		next = lesser(next, atomic_load(&o->lanes->out[i].submitted));
	raise_to(&e->submitted, next);
}

void um_lanes_evict_advance(struct um_lanes_out *o, uint32_t next)
{
	struct um_lanes_evict *e = o->evict;

	um_lanes_evict_submit(o, next);
	atomic_store(&o->next, next);
	for (unsigned i = e->first; i < e->first + e->n; i++)
		next = lesser(next, atomic_load(&o->lanes->out[i].next));
	raise_to(&e->done, next);
}

int um_lanes_is_drained(const struct um_lanes *l, const void *arg)
{
	(void)arg;
	return um_lanes_in_done(l) == um_lanes_in_queued(l) &&
	       um_lanes_evict_done(l, UM_LANE_OUT) == um_lanes_evict_queued(l, UM_LANE_OUT) &&
	       um_lanes_evict_done(l, UM_LANE_DROP) == um_lanes_evict_queued(l, UM_LANE_DROP);
}

/* --- workers that are due ----------------------------------------------------------------------------------------- */

int um_lanes_is_current(const struct um_lanes *l, const struct um_request *r)
{
	return r->bytes && um_request_epoch(r) == atomic_load_explicit(&l->epoch, memory_order_acquire);
}

/* Is what the in waits for complete? Of an old epoch: the drops, since an op that needs it relies on that. */
static inline int may_begin(const struct um_lanes *l, const struct um_request *r)
{
	return um_lanes_reached(um_lanes_evict_done(l, UM_LANE_DROP), r->drops) &&
	       (um_lanes_reached(um_lanes_evict_done(l, UM_LANE_OUT), r->wait) || !um_lanes_is_current(l, r));
}

int um_lanes_in_is_due(const struct um_lanes_in *in, uint32_t k)
{
	const struct um_lanes *l = in->lanes;

	return !um_lanes_reached(k, atomic_load_explicit(&l->in_head, memory_order_acquire)) &&
	       um_lanes_reached(atomic_load_explicit(&l->in_turn, memory_order_acquire), k) &&
	       may_begin(l, &l->in_ring[SLOT(k)]);
}

int um_lanes_out_is_due(const struct um_lanes_out *o, uint32_t k)
{
	const struct um_lanes *l = o->lanes;
	const struct um_request *r = &o->evict->ring[SLOT(k)];

	return !um_lanes_reached(k, atomic_load_explicit(&o->evict->head, memory_order_acquire)) &&
	       (!um_lanes_is_current(l, r) ||
		(um_lanes_reached(um_lanes_in_done(l), r->wait) && um_lanes_marks_reached(l, &r->after)));
}

/* A worker that was woken has been started: its first mark is. */
static inline void wake_marks(struct um_lanes *l, uint32_t sleepers)
{
	for (uint32_t rest = sleepers >> UM_LANES_BIT_MARK & ((1u << UM_LANES_STREAMS) - 1); rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);

		if (atomic_load_explicit(&l->marked[i], memory_order_acquire) !=
		    atomic_load_explicit(&l->reached[i], memory_order_acquire))
			um_runner_wake(&l->mark[i].runner);
	}
}

/* The worker with the oldest request first. */
static void wake_outs(struct um_lanes *l, enum um_evict_lane lane, uint32_t sleepers)
{
	const struct um_lanes_evict *e = &l->evict[lane];
	uint32_t done = um_lanes_evict_done(l, lane);

	for (uint32_t k = done; k != done + e->n; k++) {
		unsigned i = e->first + k % e->n;
		struct um_lanes_out *o = &l->out[i];

		if (sleepers & 1u << (UM_LANES_IN + i) &&
		    um_lanes_out_is_due(o, atomic_load_explicit(&o->next, memory_order_acquire)))
			um_runner_wake(&o->runner);
	}
}

void um_lanes_wake(struct um_lanes *l, uint32_t sleepers)
{
	uint32_t done = um_lanes_in_done(l);

	for (uint32_t k = done; k != done + UM_LANES_IN; k++) {
		struct um_lanes_in *in = &l->in[k % UM_LANES_IN];

		if (sleepers & 1u << k % UM_LANES_IN &&
		    um_lanes_in_is_due(in, atomic_load_explicit(&in->next, memory_order_acquire)))
			um_runner_wake(&in->runner);
	}
	wake_outs(l, UM_LANE_OUT, sleepers);
	wake_outs(l, UM_LANE_DROP, sleepers);
	wake_marks(l, sleepers);
}

/* The first in since the last call may be due. What an earlier one waits for wakes it, and each in the next. */
static inline void wake_new_in(struct um_lanes *l, uint32_t sleepers)
{
	uint32_t from = l->in_seen, n = um_lanes_in_queued(l) - from;
	uint32_t turn = atomic_load_explicit(&l->in_turn, memory_order_acquire);

	l->in_seen += n;
	if (turn - from < n && sleepers & 1u << turn % UM_LANES_IN && may_begin(l, &l->in_ring[SLOT(turn)]))
		um_runner_wake(&l->in[turn % UM_LANES_IN].runner);
}

/* May one of the requests queued since the last call be due? A request after a mark is woken by the mark's worker. */
static inline int has_new(const struct um_lanes *l, struct um_lanes_evict *e)
{
	uint32_t k = e->seen, head = atomic_load_explicit(&e->head, memory_order_relaxed);

	e->seen = head;
	if (head - k > MANY)
		return 1;
	while (k != head && !um_lanes_marks_reached(l, &e->ring[SLOT(k)].after))
		k++;
	return k != head;
}

void um_lanes_wake_new(struct um_lanes *l, uint32_t sleepers)
{
	wake_new_in(l, sleepers);
	for (int i = 0; i < UM_EVICT_LANES; i++)
		if (has_new(l, &l->evict[i]))
			wake_outs(l, (enum um_evict_lane)i, sleepers);
	wake_marks(l, sleepers);
}

void um_lanes_wake_op(struct um_lanes *l, uint32_t sleepers, uint32_t streams)
{
	int any_due = 0;

	wake_new_in(l, sleepers);
	for (uint32_t rest = streams; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		if (!um_lanes_unreached(l, i))
			any_due = 1;
		else if (sleepers >> (UM_LANES_BIT_MARK + i) & 1)
			um_runner_wake(&l->mark[i].runner);
	}
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		l->evict[i].seen = um_lanes_evict_queued(l, (enum um_evict_lane)i);
		if (any_due)
			wake_outs(l, (enum um_evict_lane)i, sleepers);
	}
}

/* --- bounded waits ------------------------------------------------------------------------------------------------ */

/* How long nothing may move: the program's ops may be long. On a simulated device with threads they are computed by
 * the CPUs, as is all else: only a wait that nothing can end takes so long. */
static uint64_t limit_of(const struct um_lanes *l)
{
	if (l->gpu->api->now)
		return UM_LANES_STUCK_SIM_NS;
	for (unsigned i = 0; i < UM_LANES_STREAMS; i++)
		if (atomic_load_explicit(&l->marked[i], memory_order_relaxed) !=
		    atomic_load_explicit(&l->reached[i], memory_order_relaxed))
			return UM_LANES_STUCK_MARK_NS;
	return UM_LANES_STUCK_NS;
}

struct wait {
	struct um_lanes *l;
	int (*done)(const struct um_lanes *l, const void *arg);
	const void *arg;
};

static int is_over(void *arg)
{
	const struct wait *w = arg;

	return w->done(w->l, w->arg);
}

static __attribute__((noinline)) int wait_simulated(struct wait w)
{
	return w.l->gpu->api->worker_wait(w.l->gpu, is_over, &w) ? -ETIMEDOUT : 0;
}

/* A thread that has looked late had no CPU for a while, or the process was stopped: the workers may have had none
 * either. */
static uint64_t counted(uint64_t ns)
{
	return ns < UM_LANES_LOOK_NS ? ns : UM_LANES_LOOK_NS;
}

static inline int wait_real(struct um_lanes *l, int (*done)(const struct um_lanes *, const void *), const void *arg)
{
	uint32_t seen = atomic_load_explicit(&l->progress, memory_order_relaxed);

	for (uint64_t idle = 0;;) {
		uint32_t progress = atomic_load_explicit(&l->progress, memory_order_acquire);
		uint64_t begin;

		if (done(l, arg))
			return 0;
		if (progress != seen) {
			seen = progress;
			idle = 0;
		} else if (idle >= limit_of(l)) {
			return -ETIMEDOUT;
		}
		begin = um_clock_ns(CLOCK_MONOTONIC);
		um_futex_wait(&l->progress, progress, UM_LANES_LOOK_NS);
		idle += counted(um_clock_ns(CLOCK_MONOTONIC) - begin);
	}
}

int um_lanes_wait_ins(struct um_lanes *l, int (*done)(const struct um_lanes *, const void *), const void *arg,
		      uint32_t in)
{
	int err;

	if (l->gpu->api->worker_wait)
		return wait_simulated((struct wait){l, done, arg});
	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_acq_rel);
	atomic_store_explicit(&l->wanted, in, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->waiting, 0, memory_order_acq_rel); /* a worker that skipped this one is done */
	err = wait_real(l, done, arg);
	atomic_store_explicit(&l->wanted, um_lanes_in_done(l), memory_order_relaxed); /* others may want less */
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_acq_rel);
	return err;
}

int um_lanes_wait(struct um_lanes *l, int (*done)(const struct um_lanes *, const void *), const void *arg)
{
	return done(l, arg) ? 0 : um_lanes_wait_ins(l, done, arg, um_lanes_in_done(l));
}

void um_lanes_notify(struct um_lanes *l)
{
	uint32_t n;

	if (l->gpu->api->worker_wait)
		return;
	atomic_fetch_add_explicit(&l->progress, 1, memory_order_acq_rel);
	n = atomic_fetch_add_explicit(&l->waiting, 0, memory_order_acq_rel); /* an update: see um_runner_sleepers */
	if (!n ||
	    (n == 1 && !um_lanes_reached(um_lanes_in_done(l), atomic_load_explicit(&l->wanted, memory_order_relaxed)) &&
	     !atomic_load_explicit(&l->closing, memory_order_relaxed)))
		return;
	um_futex_wake(&l->progress);
}
