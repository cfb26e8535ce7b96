/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes_wait.c - waits of ops for their hints, and of new memory for discards
 */
#include "replay/lanes.h"

/* --- ops ---------------------------------------------------------------------------------------------------------- */

static int drops_over(const struct um_lanes *l, const struct um_lanes_need *n)
{
	return !n->drops ||
	       um_lanes_reached(n->cpu ? um_lanes_evict_done(l, UM_LANE_DROP) : um_lanes_drop_submitted(l), n->drop);
}

static int ins_over(const struct um_lanes *l, const struct um_lanes_need *n)
{
	return !n->ins || um_lanes_reached(um_lanes_in_done(l), n->in);
}

static int is_submitted(const struct um_lanes *l, const void *need)
{
	return (ins_over(l, need) && drops_over(l, need)) || atomic_load_explicit(&l->closing, memory_order_acquire);
}

/* Too many waits have ended by the limit: does this op wait in spite of that? */
static int may_wait(struct um_lanes *l)
{
	if (um_lanes_gates(l))
		return 1;
	if (atomic_fetch_add_explicit(&l->passed, 1, memory_order_relaxed) < UM_LANES_STUCK_OPS)
		return 0;
	atomic_store_explicit(&l->passed, 0, memory_order_relaxed);
	atomic_store_explicit(&l->level, UM_LANES_STUCK_MOST - 1, memory_order_relaxed);
	return 1;
}

static void stuck(struct um_lanes *l)
{
	atomic_fetch_add_explicit(&l->stuck, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->level, 1, memory_order_relaxed);
}

/* `late`: the op waits for ins. */
static void wait_on_host(struct um_lanes *l, const struct um_lanes_need *n, int late)
{
	uint64_t begin = um_lanes_now(l);
	uint32_t level = atomic_load_explicit(&l->level, memory_order_relaxed);

	atomic_fetch_add_explicit(&l->gates_late, (uint64_t)late, memory_order_relaxed);
	if (um_lanes_wait_ins(l, is_submitted, n, n->ins ? n->in : um_lanes_in_done(l)))
		stuck(l);
	else if (level && level < UM_LANES_STUCK_MOST)
		atomic_store_explicit(&l->level, level - 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->host_wait_ns, um_lanes_now(l) - begin, memory_order_relaxed);
}

static inline int has_arrived(const struct um_lanes *l, uint32_t last)
{
	return um_lanes_reached(atomic_load_explicit(&l->arrived[(last - 1) % UM_LANES_IN], memory_order_acquire),
				last);
}

/* The stream waits for those of these `n` ins, up to number `last`, that have not arrived. 0, or the number of refused
 * calls. */
static __attribute__((noinline)) unsigned await_events(struct um_lanes *l, uint32_t last, uint32_t n, um_stream stream)
{
	struct um_gpu *gpu = l->gpu;
	unsigned refused = 0;

	for (; n; last--, n--) {
		const struct um_lanes_in *w = &l->in[(last - 1) % UM_LANES_IN];
		um_event_handle event = w->event[(last - 1) / UM_LANES_IN % UM_LANES_IN_EVENTS];

		if (!has_arrived(l, last))
			refused += gpu->api->cudaStreamWaitEvent(gpu, stream, event, 0) != UM_CUDA_OK;
	}
	atomic_fetch_add_explicit(&l->refused, refused, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->gates_waited, 1, memory_order_relaxed);
	return refused;
}

/* Of the ins that the stream does not wait for yet, the last of each worker. */
static inline void await_ins(struct um_lanes *l, uint32_t in, um_stream stream, unsigned i)
{
	uint32_t new = in - atomic_load_explicit(&l->gated[i], memory_order_relaxed);
	uint32_t n = new < UM_LANES_IN ? new : UM_LANES_IN, last = in;

	for (; n && has_arrived(l, last); n--)
		last--;
	if (!n || !await_events(l, last, n, stream))
		atomic_store_explicit(&l->gated[i], in, memory_order_relaxed);
}

/* Waits for what is late. Ins that are not waited for, or too late, are taken from the need. 0 or -EBUSY. */
static __attribute__((noinline)) int await_late(struct um_lanes *l, struct um_lanes_need *n)
{
	int late = !ins_over(l, n);

	if (late && !may_wait(l)) {
		n->ins = 0;
		late = 0;
	}
	if (late || !drops_over(l, n))
		wait_on_host(l, n, late);
	if (!ins_over(l, n))
		n->ins = 0;
	return drops_over(l, n) || atomic_load_explicit(&l->closing, memory_order_acquire) ? 0 : -EBUSY;
}

/* The discards in progress, of each worker. If the device refuses, they are waited for here. 0 or -EBUSY. */
static __attribute__((noinline)) int await_drops(struct um_lanes *l, uint32_t drop, um_stream stream)
{
	struct um_lanes_need rest = {.drop = drop, .drops = 1, .cpu = 1};
	const struct um_lanes_evict *e = &l->evict[UM_LANE_DROP];
	struct um_gpu *gpu = l->gpu;
	int refused = 0;

	for (struct um_lanes_out *o = &l->out[e->first]; o < &l->out[e->first + e->n]; o++) {
		uint32_t next = atomic_load_explicit(&o->next, memory_order_acquire);

		if (!um_lanes_reached(next, drop) &&
		    um_lanes_reached(atomic_load_explicit(&o->submitted, memory_order_acquire), drop) &&
		    gpu->api->cudaStreamWaitEvent(gpu, stream, o->discarded, 0))
			refused = 1;
	}
	return refused ? await_late(l, &rest) : 0;
}

static int is_evicted(const struct um_lanes *l, const void *need)
{
	const struct um_lanes_need *n = need;

	for (int i = 0; i < UM_EVICT_LANES; i++)
		if (n->evicts >> i & 1 &&
		    !um_lanes_reached(um_lanes_evict_done(l, (enum um_evict_lane)i), n->evicted[i]))
			return atomic_load_explicit(&l->closing, memory_order_acquire);
	return 1;
}

/* If nothing moves for a while, the CPU goes on, and fetches the rest by page faults. */
static __attribute__((noinline)) void await_evictions(struct um_lanes *l, const struct um_lanes_need *n)
{
	uint64_t begin = um_lanes_now(l);

	if (um_lanes_gates(l) && um_lanes_wait(l, is_evicted, n))
		stuck(l);
	atomic_fetch_add_explicit(&l->host_wait_ns, um_lanes_now(l) - begin, memory_order_relaxed);
}

int um_lanes_await(struct um_lanes *l, const struct um_lanes_need *need, um_stream stream, unsigned i)
{
	struct um_lanes_need n = *need;

	if (!(ins_over(l, need) && drops_over(l, need)) && await_late(l, &n))
		return -EBUSY;
	if (n.evicts)
		await_evictions(l, &n);
	if (!n.cpu && !atomic_load_explicit(&l->closing, memory_order_acquire)) {
		if (n.drops && !um_lanes_reached(um_lanes_evict_done(l, UM_LANE_DROP), n.drop) &&
		    await_drops(l, n.drop, stream))
			return -EBUSY;
		if (n.ins)
			await_ins(l, n.in, stream, i);
	}
	um_lanes_let(l);
	return 0;
}

/* --- with the context's lock held --------------------------------------------------------------------------------- */

static int has_no_drop(const struct um_lanes *l, const void *arg)
{
	return um_lanes_reached(um_lanes_evict_done(l, UM_LANE_DROP), *(const uint32_t *)arg);
}

int um_lanes_claim(struct um_lanes *l, uint64_t addr, uint64_t end)
{
	struct um_lanes_need need = {0};

	um_lanes_need_drop(l, &need, addr, end);
	if (!need.drops)
		return 0;
	um_lanes_poke(l);
	return um_lanes_wait(l, has_no_drop, &need.drop);
}

int um_lanes_drain(struct um_lanes *l)
{
	um_lanes_poke(l);
	return um_lanes_wait(l, um_lanes_is_drained, NULL);
}

static int marks_reached(const struct um_lanes *l, const void *marks)
{
	return um_lanes_marks_reached(l, marks);
}

void um_lanes_await_marks(struct um_lanes *l, const struct um_lanes_marks *m)
{
	um_lanes_poke(l);
	if (um_lanes_gates(l) && um_lanes_wait(l, marks_reached, m))
		stuck(l);
}
