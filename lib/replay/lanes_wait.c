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

static void wait_on_host(struct um_lanes *l, const struct um_lanes_need *n)
{
	uint64_t begin = um_lanes_now(l);
	uint32_t level = atomic_load_explicit(&l->level, memory_order_relaxed);

	if (!ins_over(l, n))
		atomic_fetch_add_explicit(&l->gates_late, 1, memory_order_relaxed);
	if (um_lanes_wait_ins(l, is_submitted, n, n->ins ? n->in : um_lanes_in_done(l), begin)) {
		atomic_fetch_add_explicit(&l->stuck, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&l->level, 1, memory_order_relaxed);
	} else if (level && level < UM_LANES_STUCK_MOST) {
		atomic_store_explicit(&l->level, level - 1, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&l->host_wait_ns, um_lanes_now(l) - begin, memory_order_relaxed);
}

/* Of the ins that the stream does not wait for yet, the last of each worker. */
static void await_ins(struct um_lanes *l, uint32_t in, um_stream stream, unsigned i)
{
	struct um_gpu *gpu = l->gpu;
	uint32_t new = in - atomic_load_explicit(&l->gated[i], memory_order_relaxed);
	uint32_t n = new < UM_LANES_IN ? new : UM_LANES_IN;
	int waits = 0, refused = 0;

	for (uint32_t last = in; n; last--, n--) {
		const struct um_lanes_in *w = &l->in[(last - 1) % UM_LANES_IN];

		if (um_lanes_reached(atomic_load_explicit(&w->arrived, memory_order_acquire), last))
			continue;
		waits = 1;
		refused += gpu->api->cudaStreamWaitEvent(gpu, stream,
							 w->event[(last - 1) / UM_LANES_IN % UM_LANES_IN_EVENTS],
							 0) != UM_CUDA_OK;
	}
	if (!refused)
		atomic_store_explicit(&l->gated[i], in, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->refused, (uint64_t)refused, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->gates_waited, (uint64_t)waits, memory_order_relaxed);
}

/* The discards in progress, of each worker. -EIO: the stream does not wait. */
static int await_drops(struct um_lanes *l, uint32_t drop, um_stream stream)
{
	const struct um_lanes_evict *e = &l->evict[UM_LANE_DROP];
	struct um_gpu *gpu = l->gpu;
	int err = 0;

	for (struct um_lanes_out *o = &l->out[e->first]; o < &l->out[e->first + e->n]; o++) {
		uint32_t next = atomic_load_explicit(&o->next, memory_order_acquire);

		if (!um_lanes_reached(next, drop) &&
		    um_lanes_reached(atomic_load_explicit(&o->submitted, memory_order_acquire), drop) &&
		    gpu->api->cudaStreamWaitEvent(gpu, stream, o->discarded, 0))
			err = -EIO;
	}
	return err;
}

/* Waits for what is late. Ins that are not waited for, or too late, are taken from the need. 0 or -EBUSY. */
static int await_late(struct um_lanes *l, struct um_lanes_need *n)
{
	if (!ins_over(l, n) && !may_wait(l))
		n->ins = 0;
	if (!is_submitted(l, n))
		wait_on_host(l, n);
	if (!ins_over(l, n))
		n->ins = 0;
	return drops_over(l, n) || atomic_load_explicit(&l->closing, memory_order_acquire) ? 0 : -EBUSY;
}

int um_lanes_await(struct um_lanes *l, const struct um_lanes_need *need, um_stream stream, unsigned i)
{
	struct um_lanes_need n = *need;

	if (!(ins_over(l, &n) && drops_over(l, &n)) && await_late(l, &n))
		return -EBUSY;
	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		return 0;
	if (n.drops && !n.cpu && await_drops(l, n.drop, stream)) {
		n.cpu = 1;
		return um_lanes_await(l, &n, stream, i);
	}
	if (n.ins && !n.cpu)
		await_ins(l, n.in, stream, i);
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
