/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.c - the workers that make the hint calls of the lanes
 */
#include "replay/lanes.h"

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
	um_hint_results_end(
		&l->results, lane, SLOT(k),
		&(struct um_issued_hint){
			.kind = um_request_kind(r), .addr = r->addr, .bytes = r->bytes, .begin = begin, .code = code});
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

/* --- workers ---------------------------------------------------------------------------------------------------- */

/* Something that others wait for is complete. */
static void publish(struct um_lanes *l)
{
	um_lanes_poke(l);
	um_lanes_notify(l);
}

static um_event_handle event_of(const struct um_lanes_in *in, uint32_t k)
{
	return in->event[k / UM_LANES_IN % UM_LANES_IN_EVENTS];
}

static void arrive(struct um_lanes_in *in, uint32_t k)
{
	in->flying = in->waits = 0;
	atomic_store_explicit(&in->lanes->arrived[k % UM_LANES_IN], k + 1, memory_order_release);
}

/* Records the event of request k. Where that fails, its arrival is waited for here; a simulated worker cannot wait, and
 * ops may then fault. */
static void fly(struct um_lanes_in *in, uint32_t k)
{
	struct um_gpu *gpu = in->lanes->gpu;
	int code = gpu->api->cudaEventRecord(gpu, event_of(in, k), in->stream);

	in->flies = k;
	in->flying = !code;
	if (!code)
		return;
	count(&in->lanes->refused, 1);
	gpu->api->cudaStreamSynchronize(gpu, in->stream);
}

static void prefetch(struct um_lanes_in *in, uint32_t k, const struct um_request *r)
{
	struct um_lanes *l = in->lanes;

	if (um_block_limit_add(&l->limit, r->addr, r->bytes))
		return;

	uint64_t begin = um_hint_results_begin(&l->results);
	int code = l->gpu->api->cudaMemPrefetchAsync(l->gpu, (void *)(uintptr_t)r->addr, r->bytes,
						     um_on_device(l->gpu->caps.device), 0, in->stream);

	made(l, LANE_IN, k, r, begin, code);
	counted(l, code, um_request_source(r), &l->prefetch_bytes[um_request_source(r)], r->bytes);
	if (!code)
		fly(in, k);
}

static struct um_step step_in(void *arg)
{
	struct um_lanes_in *in = arg;
	struct um_lanes *l = in->lanes;
	uint32_t k = atomic_load_explicit(&in->next, memory_order_relaxed);

	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_STOP};
	if (in->called) {
		in->called = 0;
		if (!in->flying)
			arrive(in, k);
		um_lanes_in_advance(in, k + UM_LANES_IN);
		publish(l);
		return (struct um_step){.kind = UM_STEP_AGAIN};
	}
	if (in->flying && !in->waits) {
		in->waits = 1;
		return (struct um_step){.kind = UM_STEP_WAIT, .event = event_of(in, in->flies)};
	}
	if (in->flying)
		arrive(in, in->flies);
	if (!um_lanes_in_is_due(in, k))
		return (struct um_step){.kind = UM_STEP_IDLE};

	const struct um_request *r = &l->in_ring[SLOT(k)];

	atomic_store_explicit(&l->in_turn, k + 1, memory_order_release); /* the next one may begin */
	um_lanes_poke(l);
	if (um_lanes_is_current(l, r))
		prefetch(in, k, r);
	in->called = 1;
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static struct um_step out_done(struct um_lanes_out *o, uint32_t k)
{
	o->called = 0;
	um_lanes_evict_advance(o, k + o->evict->n);
	publish(o->lanes);
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
	counted(o->lanes, code, um_request_source(r), &o->lanes->discard_bytes, bytes);
	o->discard_code = code;
	o->discarding = !gpu->api->cudaEventRecord(gpu, o->discarded, o->stream);
	if (o->discarding)
		return (struct um_step){.kind = UM_STEP_AGAIN};
	gpu->api->cudaStreamSynchronize(gpu, o->stream);
	return out_done(o, k);
}

static int to_host(struct um_lanes_out *o, const struct um_request *r)
{
	struct um_gpu *gpu = o->lanes->gpu;
	const void *ptr = (const void *)(uintptr_t)r->addr;

	return gpu->api->evict ? gpu->api->evict(gpu, ptr, r->bytes)
			       : gpu->api->cudaMemPrefetchAsync(gpu, ptr, r->bytes, um_on_host(), 0, o->stream);
}

static void evict(struct um_lanes_out *o, uint32_t k, const struct um_request *r)
{
	struct um_lanes *l = o->lanes;
	uint64_t begin = um_hint_results_begin(&l->results);
	int code = to_host(o, r);

	made(l, lane_of(o), k, r, begin, code);
	counted(l, code, um_request_source(r), &l->evict_bytes, r->bytes);
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

	if (um_request_kind(r) == UM_ACTION_EVICT_OR_DROP)
		counted(l, to_host(o, r), um_request_source(r), &l->evict_bytes, 0);
	counted(l, gpu->api->cudaMemAdvise(gpu, ptr, r->bytes, UM_ADV_SET_READ_MOSTLY, here), um_request_source(r),
		&l->evict_bytes, 0);
	made(l, lane_of(o), k, r, begin, code);
	counted(l, code, um_request_source(r), &l->evict_bytes, r->bytes);
	if (!code)
		um_block_limit_remove(&l->limit, r->addr, r->bytes);
}

/* The discard in progress has its event; or it is complete. */
static struct um_step await_discard(struct um_lanes_out *o, uint32_t k, const struct um_request *r)
{
	struct um_lanes *l = o->lanes;

	if (l->gpu->api->cudaEventQuery(l->gpu, o->discarded) == UM_CUDA_NOT_READY) {
		um_lanes_evict_submit(o, k + o->evict->n);
		um_lanes_notify(l);
		return (struct um_step){.kind = UM_STEP_WAIT, .event = o->discarded};
	}
	o->discarding = 0;
	if (!o->discard_code)
		um_block_limit_remove(&l->limit, r->addr, r->bytes);
	return out_done(o, k);
}

static struct um_step step_out(void *arg)
{
	struct um_lanes_out *o = arg;
	struct um_lanes *l = o->lanes;
	uint32_t k = atomic_load_explicit(&o->next, memory_order_relaxed);
	const struct um_request *r = &o->evict->ring[SLOT(k)];

	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_STOP};
	if (o->discarding)
		return await_discard(o, k, r);
	if (o->called)
		return out_done(o, k);
	if (!um_lanes_out_is_due(o, k))
		return (struct um_step){.kind = UM_STEP_IDLE};
	if (!um_lanes_is_current(l, r) || um_request_kind(r) == UM_ACTION_LEAVE_TO_DRIVER)
		return out_done(o, k);
	if (um_request_kind(r) == UM_ACTION_DISCARD)
		return discard(o, k, r);
	if (um_request_kind(r) == UM_ACTION_EVICT)
		evict(o, k, r);
	else
		drop_clean(o, k, r);
	o->called = 1;
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

/* --- open, close ------------------------------------------------------------------------------------------------ */

static int open_out(struct um_lanes *l, unsigned i)
{
	struct um_lanes_out *o = &l->out[i];

	if (l->gpu->api->cudaStreamCreateWithFlags(l->gpu, &o->stream, UM_STREAM_NON_BLOCKING) ||
	    l->gpu->api->cudaEventCreateWithFlags(l->gpu, &o->discarded, UM_LANES_EVENT_FLAGS))
		return -ENOMEM;
	return um_runner_start(&o->runner, l->gpu, &l->group, UM_LANES_IN + i,
			       o->evict == &l->evict[UM_LANE_OUT] ? "umadvise-out" : "umadvise-drop", step_out, o);
}

static int open_in(struct um_lanes *l, unsigned i)
{
	struct um_lanes_in *in = &l->in[i];

	in->lanes = l;
	if (l->gpu->api->cudaStreamCreateWithFlags(l->gpu, &in->stream, UM_STREAM_NON_BLOCKING))
		return -ENOMEM;
	for (int k = 0; k < UM_LANES_IN_EVENTS; k++)
		if (l->gpu->api->cudaEventCreateWithFlags(l->gpu, &in->event[k], UM_LANES_EVENT_FLAGS))
			return -ENOMEM;
	return um_runner_start(&in->runner, l->gpu, &l->group, i, "umadvise-in", step_in, in);
}

/* Before any worker runs: they read each other's state. */
static void number_workers(struct um_lanes *l, unsigned n_out)
{
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		atomic_init(&l->in[i].next, i);
	for (unsigned i = 0; i < l->n_out; i++) {
		atomic_init(&l->out[i].next, i < n_out ? i : i - n_out);
		atomic_init(&l->out[i].submitted, i < n_out ? i : i - n_out);
	}
	for (unsigned i = 0; i < UM_LANES_STREAMS; i++) {
		l->mark[i].lanes = l;
		l->mark_limit[i] = l->latest_mark[i] + 1;
	}
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
	int err = 0;

	memset(l, 0, sizeof *l);
	um_block_limit_init(&l->limit);
	l->gpu = gpu;
	l->n_out = n_out + UM_LANES_DROP;
	l->in_limit = UM_LANES_QUEUE;
	l->in_ring = calloc(UM_LANES_QUEUE, sizeof *l->in_ring);
	for (int i = 0; i < UM_EVICT_LANES; i++) {
		l->evict[i].ring = calloc(UM_LANES_QUEUE, sizeof *l->evict[i].ring);
		l->evict[i].first = i == UM_LANE_OUT ? 0 : n_out;
		l->evict[i].n = i == UM_LANE_OUT ? n_out : UM_LANES_DROP;
		l->evict[i].limit = UM_LANES_QUEUE;
	}
	if (!l->in_ring || !l->evict[UM_LANE_OUT].ring || !l->evict[UM_LANE_DROP].ring)
		err = -ENOMEM;
	number_workers(l, n_out);
	for (unsigned i = 0; i < UM_LANES_EVENTS && !err; i++)
		if (gpu->api->cudaEventCreateWithFlags(gpu, &l->mark[0].event[i], UM_LANES_EVENT_FLAGS))
			err = -ENOMEM;
	for (unsigned i = 0; i < l->n_out; i++) {
		l->out[i].lanes = l;
		l->out[i].evict = &l->evict[i < n_out ? UM_LANE_OUT : UM_LANE_DROP];
	}
	for (unsigned i = 0; i < UM_LANES_IN && !err; i++)
		err = open_in(l, i);
	for (unsigned i = 0; i < l->n_out && !err; i++)
		err = open_out(l, i);
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
		struct um_issued_hint h = {um_request_kind(r), r->addr, r->bytes, is->op, is->begin, is->end, is->code};

		if (is->made)
			o->listener.report(o->listener.user, &h);
	}
}

static int is_free(const struct um_lanes *l, const void *arg)
{
	(void)arg;
	return !atomic_load_explicit(&l->holds, memory_order_acquire);
}

/* No further request begins, no thread of the program waits, and no worker runs when the first one is freed: they read
 * each other's state. 0, or -ETIMEDOUT: a thread is in a call of the device. */
static int finish(struct um_lanes *l)
{
	int err = 0;

	if (!um_lanes_is_drained(l, NULL)) {
		um_lanes_drop(l);
		um_lanes_wait(l, um_lanes_is_drained, NULL);
	}
	atomic_store_explicit(&l->closing, 1, memory_order_release);
	um_lanes_notify(l);
	for (unsigned i = 0; i < l->n_out; i++)
		err |= um_runner_stop(&l->out[i].runner);
	for (unsigned i = 0; i < UM_LANES_IN; i++)
		err |= um_runner_stop(&l->in[i].runner);
	for (unsigned i = 0; i < UM_LANES_STREAMS; i++)
		err |= um_runner_stop(&l->mark[i].runner);
	return err ? -ETIMEDOUT : um_lanes_wait(l, is_free, NULL);
}

static void destroy_event(struct um_gpu *gpu, um_event_handle event)
{
	if (event)
		gpu->api->cudaEventDestroy(gpu, event);
}

static void destroy_stream(struct um_gpu *gpu, um_stream stream)
{
	if (stream)
		gpu->api->cudaStreamDestroy(gpu, stream);
}

/* Streams of the program may still wait for these events: CUDA keeps them until then. */
static void destroy(struct um_lanes *l)
{
	for (unsigned i = 0; i < l->n_out; i++) {
		destroy_stream(l->gpu, l->out[i].stream);
		destroy_event(l->gpu, l->out[i].discarded);
	}
	for (unsigned i = 0; i < UM_LANES_IN; i++) {
		destroy_stream(l->gpu, l->in[i].stream);
		for (unsigned k = 0; k < UM_LANES_IN_EVENTS; k++)
			destroy_event(l->gpu, l->in[i].event[k]);
	}
	for (unsigned i = 0; i < UM_LANES_STREAMS; i++)
		for (unsigned k = 0; k < UM_LANES_EVENTS; k++)
			destroy_event(l->gpu, l->mark[i].event[k]);
}

int um_lanes_close(struct um_lanes *l)
{
	int err = finish(l);

	if (err)
		return err;
	destroy(l);
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
	return 0;
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

	if (lane == LANE_IN ? k == l->in_limit && um_lanes_update_in_limit(l)
			    : k == l->evict[evict].limit && um_lanes_update_evict_limit(l, evict))
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
	um_lanes_begin_source(l, l->source);
	um_lanes_poke(l);
}
