/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.c - the workers that make the hint calls of the lanes
 */
#include "replay/lanes.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define SLOT(k) ((k) % UM_LANES_QUEUE)

/* Lanes of hint results. */
#define LANE_IN 0
#define LANE_EVICT 1 /* plus enum um_evict_lane */

static void count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static void counted(struct um_lanes *l, int code, enum um_hint_source source, _Atomic uint64_t *bytes, uint64_t n)
{
	count(code ? &l->refused : &l->issued[source], 1);
	if (!code)
		count(bytes, n);
}

/* The call for this request returned. */
static void made(struct um_lanes *l, int lane, uint32_t k, const struct um_request *r, uint64_t begin, int code)
{
	um_hint_results_end(&l->results, lane, SLOT(k),
			    &(struct um_issued_hint){
				    .kind = r->kind, .addr = r->addr, .bytes = r->bytes, .begin = begin, .code = code});
}

static uint32_t put_by(const struct um_lanes *l, int lane)
{
	return lane == LANE_IN ? um_lanes_in_queued(l)
			       : um_lanes_evict_queued(l, (enum um_evict_lane)(lane - LANE_EVICT));
}

static uint32_t done_by(const struct um_lanes *l, int lane)
{
	return lane == LANE_IN ? um_lanes_in_done(l) : um_lanes_evict_done(l, (enum um_evict_lane)(lane - LANE_EVICT));
}

static int current(const struct um_lanes *l, const struct um_request *r)
{
	return r->bytes && r->epoch == atomic_load_explicit(&l->epoch, memory_order_acquire);
}

/* --- workers ---------------------------------------------------------------------------------------------------- */

/* The value of stream `i`'s number when everything requested has arrived. */
static uint32_t expected(uint32_t done, uint32_t i)
{
	return done - (done - 1 - i) % UM_LANES_IN_STREAMS;
}

/* No request to make: has everything requested arrived? */
static struct um_step watch(struct um_lanes_in *in)
{
	struct um_lanes *l = in->lanes;
	uint32_t done = um_lanes_in_done(l);
	int missing = 0, moved;
	uint64_t now;

	if (in != l->in || l->gpu->caps.virtual_time || !l->gpu->caps.stream_values)
		return (struct um_step){.kind = UM_STEP_IDLE};
	moved = !l->seen_ns; /* the first worker only, like l->seen */
	for (uint32_t i = 0; i < UM_LANES_IN_STREAMS; i++) {
		uint32_t have = __atomic_load_n(&l->arrived[i], __ATOMIC_ACQUIRE);

		missing |= !um_lanes_reached(have, expected(done, i));
		moved |= have != l->seen[i];
		l->seen[i] = have;
	}
	if (!missing) {
		l->seen_ns = 0;
		return (struct um_step){.kind = UM_STEP_IDLE};
	}
	now = um_clock_ns(CLOCK_MONOTONIC);
	if (moved)
		l->seen_ns = now;
	if (now - l->seen_ns > UM_LANES_STUCK_NS) {
		for (uint32_t i = 0; i < UM_LANES_IN_STREAMS; i++)
			if (!um_lanes_reached(l->seen[i], expected(done, i)))
				__atomic_store_n(&l->arrived[i], expected(done, i), __ATOMIC_RELEASE);
		atomic_fetch_add_explicit(&l->stuck, 1, memory_order_relaxed);
	}
	return (struct um_step){.kind = UM_STEP_POLL};
}

/* Has everything arrived that was requested on the stream of request k before? */
static int has_arrived(const struct um_lanes *l, uint32_t k)
{
	return !l->gpu->caps.stream_values ||
	       um_lanes_reached(__atomic_load_n(&l->arrived[k % UM_LANES_IN_STREAMS], __ATOMIC_ACQUIRE),
				k + 1 - UM_LANES_IN_STREAMS);
}

/* Request k has begun: the next one may begin. */
static void allow_next(struct um_lanes *l, uint32_t k)
{
	atomic_store_explicit(&l->in_turn, k + 1, memory_order_release);
	um_lanes_poke_ins(l);
}

/* The device raises the stream's number after the prefetch. If it cannot, the host does, after the numbers of all
 * earlier requests: a number still to be written by the device would lower it again, and an op would wait forever. */
static struct um_step arrive(struct um_lanes_in *in, uint32_t k)
{
	struct um_lanes *l = in->lanes;
	um_stream s = l->in_stream[k % UM_LANES_IN_STREAMS];
	uint32_t *at = &l->arrived[k % UM_LANES_IN_STREAMS];

	if (l->gpu->caps.stream_values && in->state == UM_LANES_CALLED &&
	    l->gpu->api->cuStreamWriteValue32(l->gpu, s, at, k + 1, 0)) {
		count(&l->refused, 1);
		in->state = UM_LANES_REFUSED;
	}
	if (in->state == UM_LANES_REFUSED) {
		l->gpu->api->cudaStreamSynchronize(l->gpu, s); /* a simulated worker cannot wait, and need not */
		if (!has_arrived(l, k))
			return (struct um_step){.kind = UM_STEP_POLL};
		__atomic_store_n(at, k + 1, __ATOMIC_RELEASE);
	}
	in->state = UM_LANES_ARRIVES;
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static struct um_step in_done_with(struct um_lanes_in *in, uint32_t k)
{
	in->state = UM_LANES_WAITS;
	atomic_store_explicit(&in->next, k + UM_LANES_IN, memory_order_release);
	um_lanes_poke_outs(in->lanes);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static void prefetch(struct um_lanes *l, uint32_t k, const struct um_request *r)
{
	if (um_block_limit_add(&l->limit, r->addr, r->bytes))
		return;

	uint64_t begin = um_hint_results_begin(&l->results);
	int code = l->gpu->api->cudaMemPrefetchAsync(l->gpu, (void *)(uintptr_t)r->addr, r->bytes,
						     um_on_device(l->gpu->caps.device), 0,
						     l->in_stream[k % UM_LANES_IN_STREAMS]);

	made(l, LANE_IN, k, r, begin, code);
	counted(l, code, r->source, &l->prefetch_bytes[r->source], r->bytes);
}

static struct um_step step_in(void *arg)
{
	struct um_lanes_in *in = arg;
	struct um_lanes *l = in->lanes;
	uint32_t k = atomic_load_explicit(&in->next, memory_order_relaxed);

	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_STOP};
	if (in->state == UM_LANES_ARRIVES)
		return in_done_with(in, k);
	if (in->state != UM_LANES_WAITS)
		return arrive(in, k);
	if (um_lanes_reached(k, atomic_load_explicit(&l->in_head, memory_order_acquire)))
		return watch(in);

	const struct um_request *r = &l->in_ring[SLOT(k)];

	if (!um_lanes_reached(atomic_load_explicit(&l->in_turn, memory_order_acquire), k) ||
	    !um_lanes_reached(um_lanes_evict_done(l, UM_LANE_DROP), r->drops))
		/* of an old epoch: not for long, and the worker may have been requested to sleep already */
		return current(l, r) || l->gpu->caps.virtual_time ? watch(in) : (struct um_step){.kind = UM_STEP_POLL};
	if (current(l, r) && !um_lanes_reached(um_lanes_evict_done(l, UM_LANE_OUT), r->wait))
		return watch(in);
	if (current(l, r) && !has_arrived(l, k)) {
		watch(in);
		return (struct um_step){.kind = UM_STEP_POLL};
	}
	allow_next(l, k);
	if (current(l, r))
		prefetch(l, k, r);
	if (in == l->in)
		l->seen_ns = 0;
	in->state = UM_LANES_CALLED;
	return arrive(in, k);
}

/* The first event of this mark that is not complete, or NULL. */
static um_event_handle not_ready(struct um_lanes *l, uint32_t serial)
{
	for (unsigned i = 0; i < UM_LANES_STREAMS; i++) {
		um_event_handle e = l->events[serial % UM_LANES_EVENTS][i];

		if (e && l->gpu->api->cudaEventQuery(l->gpu, e) == UM_CUDA_NOT_READY)
			return e;
	}
	return NULL;
}

static struct um_step out_done(struct um_lanes_out *o, uint32_t k)
{
	o->called = 0;
	atomic_store_explicit(&o->next, k + o->evict->n, memory_order_release);
	um_lanes_poke_ins(o->lanes);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static int lane_of(const struct um_lanes_out *o)
{
	return LANE_EVICT + (int)(o->evict - o->lanes->evict);
}

static struct um_step discard(struct um_lanes_out *o, uint32_t k, const struct um_request *r)
{
	struct um_gpu *gpu = o->lanes->gpu;
	void *ptr = (void *)(uintptr_t)r->addr;
	size_t bytes = r->bytes;
	uint64_t begin = um_hint_results_begin(&o->lanes->results);
	int code = gpu->api->cudaMemDiscardBatchAsync(gpu, &ptr, &bytes, 1, 0, o->stream);

	made(o->lanes, lane_of(o), k, r, begin, code);
	counted(o->lanes, code, r->source, &o->lanes->discard_bytes, bytes);
	o->discard_code = code;
	o->discarding = !gpu->api->cudaEventRecord(gpu, o->discarded, o->stream);
	if (o->discarding)
		return (struct um_step){.kind = UM_STEP_AGAIN};
	gpu->api->cudaStreamSynchronize(gpu, o->stream);
	return out_done(o, k);
}

static void evict(struct um_lanes_out *o, uint32_t k, const struct um_request *r)
{
	struct um_lanes *l = o->lanes;
	uint64_t begin = um_hint_results_begin(&l->results);
	int code = l->gpu->api->cudaMemPrefetchAsync(l->gpu, (void *)(uintptr_t)r->addr, r->bytes, um_on_host(), 0,
						     o->stream);

	made(l, lane_of(o), k, r, begin, code);
	counted(l, code, r->source, &l->evict_bytes, r->bytes);
	if (!code)
		um_block_limit_remove(&l->limit, r->addr, r->bytes);
}

/* Drops device copies of data that the host still has. A prefetch to the host would keep such duplicates; withdrawing
 * read-mostly drops the device's. The prefetch then copies the blocks that are no duplicates. */
static void drop_clean(struct um_lanes_out *o, uint32_t k, const struct um_request *r)
{
	struct um_lanes *l = o->lanes;
	struct um_gpu *gpu = l->gpu;
	struct um_location here = um_on_device(gpu->caps.device);
	void *ptr = (void *)(uintptr_t)r->addr;
	uint64_t begin = um_hint_results_begin(&l->results);
	int code = gpu->api->cudaMemAdvise(gpu, ptr, r->bytes, UM_ADV_UNSET_READ_MOSTLY, here);

	if (r->kind == UM_ACTION_EVICT_OR_DROP)
		counted(l, gpu->api->cudaMemPrefetchAsync(gpu, ptr, r->bytes, um_on_host(), 0, o->stream), r->source,
			&l->evict_bytes, 0);
	counted(l, gpu->api->cudaMemAdvise(gpu, ptr, r->bytes, UM_ADV_SET_READ_MOSTLY, here), r->source,
		&l->evict_bytes, 0);
	made(l, lane_of(o), k, r, begin, code);
	counted(l, code, r->source, &l->evict_bytes, r->bytes);
	if (!code)
		um_block_limit_remove(&l->limit, r->addr, r->bytes);
}

static struct um_step step_out(void *arg)
{
	struct um_lanes_out *o = arg;
	struct um_lanes *l = o->lanes;
	struct um_gpu *gpu = l->gpu;
	uint32_t k = atomic_load_explicit(&o->next, memory_order_relaxed);
	um_event_handle e;

	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_STOP};
	if (um_lanes_reached(k, atomic_load_explicit(&o->evict->head, memory_order_acquire)))
		return (struct um_step){.kind = UM_STEP_IDLE};

	const struct um_request *r = &o->evict->ring[SLOT(k)];

	if (o->discarding) {
		if (gpu->api->cudaEventQuery(gpu, o->discarded) == UM_CUDA_NOT_READY)
			return (struct um_step){.kind = UM_STEP_WAIT, .event = o->discarded};
		o->discarding = 0;
		if (!o->discard_code)
			um_block_limit_remove(&l->limit, r->addr, r->bytes);
		return out_done(o, k);
	}
	if (o->called || !current(l, r))
		return out_done(o, k);
	if (!um_lanes_reached(um_lanes_in_done(l), r->wait))
		return (struct um_step){.kind = UM_STEP_IDLE};
	e = not_ready(l, r->event);
	if (e)
		return (struct um_step){.kind = UM_STEP_WAIT, .event = e};
	if (r->kind == UM_ACTION_LEAVE_TO_DRIVER)
		return out_done(o, k);
	if (r->kind == UM_ACTION_DISCARD)
		return discard(o, k, r);
	if (r->kind == UM_ACTION_EVICT)
		evict(o, k, r);
	else
		drop_clean(o, k, r);
	o->called = 1;
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

/* --- open, close ------------------------------------------------------------------------------------------------ */

static int open_out(struct um_lanes *l, struct um_lanes_evict *evict, unsigned i)
{
	struct um_lanes_out *o = &l->out[i];

	o->lanes = l;
	o->evict = evict;
	if (l->gpu->api->cudaStreamCreateWithFlags(l->gpu, &o->stream, UM_STREAM_NON_BLOCKING) ||
	    l->gpu->api->cudaEventCreateWithFlags(l->gpu, &o->discarded, UM_LANES_EVENT_FLAGS))
		return -ENOMEM;
	return um_runner_start(&o->runner, l->gpu, evict == &l->evict[UM_LANE_OUT] ? "umadvise-out" : "umadvise-drop",
			       step_out, o);
}

/* The work of a call for one block does not overlap with the block's copy: while one worker's block is copied, the
 * others do their work. */
unsigned um_lanes_out_workers(uint64_t work_ns, uint64_t link_ns)
{
	uint64_t n = 1 + (link_ns ? (work_ns + link_ns - 1) / link_ns : 0);

	return n < UM_LANES_OUT_MOST ? (unsigned)n : UM_LANES_OUT_MOST;
}

int um_lanes_open(struct um_lanes *l, struct um_gpu *gpu, unsigned n_out)
{
	void *p = NULL;
	int err = 0;

	memset(l, 0, sizeof *l);
	um_block_limit_init(&l->limit);
	l->gpu = gpu;
	l->n_out = n_out + UM_LANES_DROP;
	l->in_ring = calloc(UM_LANES_QUEUE, sizeof *l->in_ring);
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		l->evict[i].ring = calloc(UM_LANES_QUEUE, sizeof *l->evict[i].ring);
		l->evict[i].first = i == UM_LANE_OUT ? 0 : n_out;
		l->evict[i].n = i == UM_LANE_OUT ? n_out : UM_LANES_DROP;
	}
	if (!l->in_ring || !l->evict[UM_LANE_OUT].ring || !l->evict[UM_LANE_DROP].ring ||
	    gpu->api->cudaHostAlloc(gpu, &p, UM_LANES_IN_STREAMS * sizeof *l->arrived, 0))
		err = -ENOMEM;
	l->arrived = p;
	/* before any worker runs: they read each other's state */
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		atomic_init(&l->in[i].next, i);
	for (unsigned i = 0; i < l->n_out; i++)
		atomic_init(&l->out[i].next, i < n_out ? i : i - n_out);
	if (!err)
		memset(l->arrived, 0, UM_LANES_IN_STREAMS * sizeof *l->arrived);
	for (unsigned i = 0; i < UM_LANES_IN_STREAMS && !err; i++)
		if (gpu->api->cudaStreamCreateWithFlags(gpu, &l->in_stream[i], UM_STREAM_NON_BLOCKING))
			err = -ENOMEM;
	for (unsigned i = 0; i < UM_LANES_EVENTS && !err; i++)
		if (gpu->api->cudaEventCreateWithFlags(gpu, &l->events[i][0], UM_LANES_EVENT_FLAGS))
			err = -ENOMEM;
	for (unsigned i = 0; i < UM_LANES_IN && !err; i++) {
		l->in[i].lanes = l;
		err = um_runner_start(&l->in[i].runner, gpu, "umadvise-in", step_in, &l->in[i]);
	}
	for (unsigned i = 0; i < l->n_out && !err; i++)
		err = open_out(l, &l->evict[i < n_out ? UM_LANE_OUT : UM_LANE_DROP], i);
	if (err)
		um_lanes_close(l);
	return err;
}

/* Reports results of the lane's requests below this number. */
static void report(struct um_lanes *l, int lane, uint32_t until)
{
	const struct um_request *ring = lane == LANE_IN ? l->in_ring : l->evict[lane - LANE_EVICT].ring;
	struct um_hint_results *o = &l->results;

	for (; !um_lanes_reached(o->reported[lane], until); o->reported[lane]++) {
		const struct um_hint_result *is = &o->at[lane][SLOT(o->reported[lane])];
		const struct um_request *r = &ring[SLOT(o->reported[lane])];
		struct um_issued_hint h = {r->kind, r->addr, r->bytes, is->op, is->begin, is->end, is->code};

		if (is->made)
			o->listener.report(o->listener.user, &h);
	}
}

static int all_done(void *arg)
{
	const struct um_lanes *l = arg;
	int done = 1;

	for (int lane = 0; lane < UM_HINT_RESULTS_LANES; lane++)
		done &= put_by(l, lane) == done_by(l, lane);
	return done;
}

/* No further request begins, and waiting ops are released. Workers read each other's state: none may run when the first
 * one is freed. */
static void finish(struct um_lanes *l)
{
	if (!all_done(l)) {
		um_lanes_drop(l);
		um_runner_until(&l->in[0].runner, all_done, l);
	}
	for (uint32_t i = 0; i < UM_LANES_IN_STREAMS && um_lanes_in_queued(l) && !all_done(l); i++)
		__atomic_store_n(&l->arrived[i], expected(um_lanes_in_queued(l), i), __ATOMIC_RELEASE);
	atomic_store_explicit(&l->closing, 1, memory_order_release);
}

void um_lanes_close(struct um_lanes *l)
{
	struct um_gpu *gpu = l->gpu;

	finish(l);
	for (unsigned i = 0; i < l->n_out; i++)
		um_runner_stop(&l->out[i].runner);
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		um_runner_stop(&l->in[i].runner);
	for (unsigned i = 0; i < l->n_out; i++) {
		if (l->out[i].stream)
			gpu->api->cudaStreamDestroy(gpu, l->out[i].stream);
		if (l->out[i].discarded)
			gpu->api->cudaEventDestroy(gpu, l->out[i].discarded);
	}
	for (unsigned i = 0; i < UM_LANES_IN_STREAMS; i++)
		if (l->in_stream[i])
			gpu->api->cudaStreamDestroy(gpu, l->in_stream[i]);
	for (unsigned i = 0; i < UM_LANES_EVENTS; i++)
		for (unsigned j = 0; j < UM_LANES_STREAMS; j++)
			if (l->events[i][j])
				gpu->api->cudaEventDestroy(gpu, l->events[i][j]);
	if (l->arrived)
		gpu->api->cudaFreeHost(gpu, l->arrived);
	for (int lane = 0; lane < UM_HINT_RESULTS_LANES && l->results.listener.report; lane++)
		report(l, lane, put_by(l, lane)); /* later requests may follow a skipped one */
	um_hint_results_close(&l->results);
	free(l->in_ring);
	l->in_ring = NULL;
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		free(l->evict[i].ring);
		l->evict[i].ring = NULL;
	}
	um_block_limit_fini(&l->limit);
}

void um_lanes_wake(struct um_lanes *l)
{
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		um_runner_wake(&l->in[i].runner);
	for (unsigned i = 0; i < l->n_out; i++)
		um_runner_wake(&l->out[i].runner);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

int um_lanes_listen(struct um_lanes *l, const struct um_hint_listener *listener)
{
	const uint32_t put[] = {put_by(l, 0), put_by(l, 1), put_by(l, 2)};

	return um_hint_results_open(&l->results, l->gpu, UM_LANES_QUEUE, put, listener);
}

void um_lanes_report_hints(struct um_lanes *l)
{
	for (int lane = 0; lane < UM_HINT_RESULTS_LANES && l->results.listener.report; lane++)
		report(l, lane, done_by(l, lane));
}

int um_lanes_expect(struct um_lanes *l, enum um_action_kind kind, uint64_t op)
{
	enum um_evict_lane evict =
		kind == UM_ACTION_EVICT || kind == UM_ACTION_LEAVE_TO_DRIVER ? UM_LANE_OUT : UM_LANE_DROP;
	int lane = kind == UM_ACTION_PREFETCH || kind == UM_ACTION_REFRESH ? LANE_IN : LANE_EVICT + (int)evict;
	uint32_t k = put_by(l, lane);

	if (k - done_by(l, lane) >= UM_LANES_QUEUE)
		return -EAGAIN;
	if (k - l->results.reported[lane] >= UM_LANES_QUEUE / 2)
		um_lanes_report_hints(l);
	um_hint_results_put(&l->results, lane, SLOT(k), op);
	return 0;
}

void um_lanes_drop(struct um_lanes *l)
{
	l->dropped += um_lanes_in_queued(l) - um_lanes_in_done(l);
	for (int i = 0; i < UM_EVICT_LANES; i++)
		l->dropped +=
			um_lanes_evict_queued(l, (enum um_evict_lane)i) - um_lanes_evict_done(l, (enum um_evict_lane)i);
	atomic_fetch_add_explicit(&l->epoch, 1, memory_order_acq_rel);
	um_lanes_poke(l);
	um_lanes_settle(l);
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		um_runner_sleep(&l->in[i].runner);
	for (unsigned i = 0; i < l->n_out; i++)
		um_runner_sleep(&l->out[i].runner);
}
