/* SPDX-License-Identifier: Apache-2.0
 *
 * Method. Requests are numbered per lane; numbers wrap around and are compared by their difference. Lane `in` alternates
 * between UM_IN_STREAMS streams: a prefetch on an idle stream is worked off by its caller at once, on a busy one only when the
 * stream gets there, so that with one stream the driver's work on a block and the copy of the one before would not overlap.
 * Each stream has a number of its own in pinned memory; an op waits for the last request on each that it needs.
 */
#include "replay/executor.h"

#include "replay/worker.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define IN_STREAMS 2
#define MAX_STREAMS 4 /* streams of the app */
#define N_EVENTS 2048

struct request {
	enum um_action_kind kind;
	uint64_t addr, bytes;
	uint32_t wait; /* in: outs that must be done; out: serial of the event behind which it may start */
	uint32_t epoch; /* of the program; an old one is not worked off */
};

struct lane {
	struct request *ring;
	uint32_t mask;
	_Atomic uint32_t head; /* requests written by the app's thread */
	_Atomic uint32_t tail; /* requests done */
	struct um_runner runner;
};

struct um_executor {
	struct um_gpu *gpu;
	struct um_executor_host host;
	struct um_location device;
	struct lane in, out;
	um_stream in_stream[IN_STREAMS], out_stream;
	uint32_t *arrived; /* [IN_STREAMS], pinned: requests of each stream that have arrived, by number */
	um_event_handle events[N_EVENTS][MAX_STREAMS];
	um_event_handle discarded; /* out worker's own */
	int discarding; /* out worker: waiting for `discarded` */
	uint32_t event; /* serial of the event recorded last */
	_Atomic uint32_t epoch;

	const struct um_program *program; /* NULL: none */
	um_stream streams[MAX_STREAMS]; /* the app's, in order of appearance */
	unsigned n_streams;
	uint32_t in_base, out_base; /* numbers at the beginning of this iteration */
	uint32_t gate; /* highest number any op has waited for */
	int first; /* the iteration that adopted the program */
	size_t start_next; /* first: start blocks whose op has been passed */
	uint32_t *start_seq; /* first: number of the request that brings each start block */
	uint32_t pending_discards; /* number of the last out request that discards */
	int any_discard;

	_Atomic uint64_t issued, refused, prefetch_bytes, evict_bytes, discard_bytes;
	uint64_t dropped, queued;
};

static int reached(uint32_t have, uint32_t want)
{
	return (int32_t)(have - want) >= 0;
}

static void count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static void counted(struct um_executor *ex, int code, _Atomic uint64_t *bytes, uint64_t n)
{
	if (code)
		count(&ex->refused, 1);
	else {
		count(&ex->issued, 1);
		count(bytes, n);
	}
}

/* --- workers ---------------------------------------------------------------------------------------------------- */

static struct um_step step_in(void *arg)
{
	struct um_executor *ex = arg;
	struct um_gpu *gpu = ex->gpu;
	uint32_t k = atomic_load_explicit(&ex->in.tail, memory_order_relaxed);

	if (k == atomic_load_explicit(&ex->in.head, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_IDLE};

	const struct request *r = &ex->in.ring[k & ex->in.mask];
	um_stream s = ex->in_stream[k % IN_STREAMS];

	if (r->epoch == atomic_load_explicit(&ex->epoch, memory_order_acquire)) {
		if (!reached(atomic_load_explicit(&ex->out.tail, memory_order_acquire), r->wait))
			return (struct um_step){.kind = UM_STEP_IDLE};
		if (r->bytes)
			counted(ex,
			        gpu->api->cudaMemPrefetchAsync(gpu, (void *)(uintptr_t)r->addr, r->bytes, ex->device, 0, s),
			        &ex->prefetch_bytes, r->bytes);
	}
	if (gpu->caps.stream_values && gpu->api->cuStreamWriteValue32(gpu, s, &ex->arrived[k % IN_STREAMS], k + 1, 0))
		count(&ex->refused, 1);
	atomic_store_explicit(&ex->in.tail, k + 1, memory_order_release);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static void out_done(struct um_executor *ex, uint32_t k)
{
	atomic_store_explicit(&ex->out.tail, k + 1, memory_order_release);
	um_runner_poke(&ex->in.runner);
}

/* The first event of this serial that is not complete, or NULL. */
static um_event_handle not_ready(struct um_executor *ex, uint32_t serial)
{
	for (unsigned i = 0; i < MAX_STREAMS; i++) {
		um_event_handle e = ex->events[serial % N_EVENTS][i];

		if (e && ex->gpu->api->cudaEventQuery(ex->gpu, e) == UM_CUDA_NOT_READY)
			return e;
	}
	return NULL;
}

static struct um_step step_out(void *arg)
{
	struct um_executor *ex = arg;
	struct um_gpu *gpu = ex->gpu;
	uint32_t k = atomic_load_explicit(&ex->out.tail, memory_order_relaxed);
	um_event_handle e;

	if (k == atomic_load_explicit(&ex->out.head, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_IDLE};

	const struct request *r = &ex->out.ring[k & ex->out.mask];
	void *ptr = (void *)(uintptr_t)r->addr;
	size_t bytes = r->bytes;

	if (ex->discarding) {
		if (gpu->api->cudaEventQuery(gpu, ex->discarded) == UM_CUDA_NOT_READY)
			return (struct um_step){.kind = UM_STEP_WAIT, .event = ex->discarded};
		ex->discarding = 0;
		out_done(ex, k);
		return (struct um_step){.kind = UM_STEP_AGAIN};
	}
	if (!bytes || r->epoch != atomic_load_explicit(&ex->epoch, memory_order_acquire)) {
		out_done(ex, k);
		return (struct um_step){.kind = UM_STEP_AGAIN};
	}
	e = not_ready(ex, r->wait);
	if (e)
		return (struct um_step){.kind = UM_STEP_WAIT, .event = e};
	if (r->kind == UM_ACTION_DISCARD) {
		counted(ex, gpu->api->cudaMemDiscardBatchAsync(gpu, &ptr, &bytes, 1, 0, ex->out_stream), &ex->discard_bytes,
		        bytes);
		ex->discarding = !gpu->api->cudaEventRecord(gpu, ex->discarded, ex->out_stream);
		if (ex->discarding)
			return (struct um_step){.kind = UM_STEP_AGAIN};
	} else {
		counted(ex, gpu->api->cudaMemPrefetchAsync(gpu, ptr, bytes, um_on_host(), 0, ex->out_stream), &ex->evict_bytes,
		        bytes);
	}
	out_done(ex, k);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

/* --- open, close ------------------------------------------------------------------------------------------------ */

static int lane_init(struct lane *l, uint32_t size)
{
	l->ring = calloc(size, sizeof *l->ring);
	l->mask = size - 1;
	return l->ring ? 0 : -ENOMEM;
}

static void close_device(struct um_executor *ex)
{
	struct um_gpu *gpu = ex->gpu;

	for (unsigned i = 0; i < N_EVENTS; i++)
		for (unsigned j = 0; j < MAX_STREAMS; j++)
			if (ex->events[i][j])
				gpu->api->cudaEventDestroy(gpu, ex->events[i][j]);
	if (ex->discarded)
		gpu->api->cudaEventDestroy(gpu, ex->discarded);
	for (unsigned i = 0; i < IN_STREAMS; i++)
		if (ex->in_stream[i])
			gpu->api->cudaStreamDestroy(gpu, ex->in_stream[i]);
	if (ex->out_stream)
		gpu->api->cudaStreamDestroy(gpu, ex->out_stream);
	if (ex->arrived)
		gpu->api->cudaFreeHost(gpu, ex->arrived);
}

static int open_device(struct um_executor *ex)
{
	struct um_gpu *gpu = ex->gpu;
	void *p = NULL;

	for (unsigned i = 0; i < IN_STREAMS; i++)
		if (gpu->api->cudaStreamCreateWithFlags(gpu, &ex->in_stream[i], UM_STREAM_NON_BLOCKING))
			return -ENOMEM;
	if (gpu->api->cudaStreamCreateWithFlags(gpu, &ex->out_stream, UM_STREAM_NON_BLOCKING) ||
	    gpu->api->cudaEventCreateWithFlags(gpu, &ex->discarded, UM_EVENT_DISABLE_TIMING) ||
	    gpu->api->cudaHostAlloc(gpu, &p, IN_STREAMS * sizeof *ex->arrived, 0))
		return -ENOMEM;
	ex->arrived = p;
	memset(ex->arrived, 0, IN_STREAMS * sizeof *ex->arrived);
	for (unsigned i = 0; i < N_EVENTS; i++)
		if (gpu->api->cudaEventCreateWithFlags(gpu, &ex->events[i][0], UM_EVENT_DISABLE_TIMING))
			return -ENOMEM;
	return 0;
}

int um_executor_open(struct um_executor **out, struct um_gpu *gpu, const struct um_executor_host *host)
{
	struct um_executor *ex;
	int err = -ENOMEM;

	if (!gpu->caps.concurrent_managed || !gpu->api->cudaMemPrefetchAsync)
		return -ENOTSUP;
	ex = calloc(1, sizeof *ex);
	if (!ex)
		return -ENOMEM;
	ex->gpu = gpu;
	ex->host = *host;
	ex->device = um_on_device(gpu->caps.device);
	if (lane_init(&ex->in, 1u << 15) || lane_init(&ex->out, 1u << 15) || open_device(ex))
		goto fail;
	err = um_runner_start(&ex->in.runner, gpu, "umadvise-in", step_in, ex);
	if (!err)
		err = um_runner_start(&ex->out.runner, gpu, "umadvise-out", step_out, ex);
	if (err)
		goto fail;
	*out = ex;
	return 0;
fail:
	um_runner_stop(&ex->in.runner);
	um_runner_stop(&ex->out.runner);
	close_device(ex);
	free(ex->in.ring);
	free(ex->out.ring);
	free(ex);
	return err;
}

void um_executor_close(struct um_executor *ex)
{
	if (!ex)
		return;
	um_executor_leave(ex);
	um_runner_stop(&ex->out.runner);
	um_runner_stop(&ex->in.runner);
	close_device(ex);
	free(ex->in.ring);
	free(ex->out.ring);
	free(ex->start_seq);
	free(ex);
}

/* --- the app's side --------------------------------------------------------------------------------------------- */

static int has_room(const struct lane *l)
{
	return atomic_load_explicit(&l->head, memory_order_relaxed) -
	               atomic_load_explicit(&l->tail, memory_order_acquire) <= l->mask;
}

/* Appends; the caller has seen that there is room. */
static void put(struct um_executor *ex, struct lane *l, const struct request *r)
{
	uint32_t k = atomic_load_explicit(&l->head, memory_order_relaxed);

	ex->queued += r->bytes != 0;
	l->ring[k & l->mask] = *r;
	l->ring[k & l->mask].epoch = atomic_load_explicit(&ex->epoch, memory_order_relaxed);
	if (r->kind == UM_ACTION_DISCARD) {
		ex->pending_discards = k + 1;
		ex->any_discard = 1;
	}
	atomic_store_explicit(&l->head, k + 1, memory_order_release);
}

/* What may not be discarded leaves with a copy; unless nothing was thought to live there: then it is not ours to move. */
static void put_out(struct um_executor *ex, enum um_action_kind kind, uint64_t addr, uint64_t bytes, int dead)
{
	if (bytes && kind == UM_ACTION_DISCARD) {
		int may = ex->host.may_discard(ex->host.user, addr, bytes);

		if (!may && dead)
			bytes = 0;
		if (!may || !ex->gpu->caps.discard)
			kind = UM_ACTION_OUT;
	}
	put(ex, &ex->out, &(struct request){.kind = kind, .addr = addr, .bytes = bytes, .wait = ex->event});
}

static void put_in(struct um_executor *ex, uint64_t addr, uint64_t bytes, uint32_t wait)
{
	put(ex, &ex->in, &(struct request){.kind = UM_ACTION_IN, .addr = addr, .bytes = bytes, .wait = wait});
}

/* Records where the app's streams are: outs issued from now on wait for it. 0 or -EAGAIN (all events in use). */
static int mark(struct um_executor *ex)
{
	struct um_gpu *gpu = ex->gpu;
	uint32_t tail = atomic_load_explicit(&ex->out.tail, memory_order_acquire);

	if (tail != atomic_load_explicit(&ex->out.head, memory_order_relaxed) &&
	    ex->event + 1 - ex->out.ring[tail & ex->out.mask].wait >= N_EVENTS)
		return -EAGAIN;
	ex->event++;
	for (unsigned i = 0; i < ex->n_streams; i++) {
		um_event_handle *e = &ex->events[ex->event % N_EVENTS][i];

		if (!*e && gpu->api->cudaEventCreateWithFlags(gpu, e, UM_EVENT_DISABLE_TIMING))
			return -EAGAIN;
		if (gpu->api->cudaEventRecord(gpu, *e, ex->streams[i]))
			return -EAGAIN;
	}
	return 0;
}

static int see_stream(struct um_executor *ex, um_stream stream)
{
	for (unsigned i = 0; i < ex->n_streams; i++)
		if (ex->streams[i] == stream)
			return 0;
	if (ex->n_streams == MAX_STREAMS)
		return -EAGAIN;
	ex->streams[ex->n_streams++] = stream;
	return 0;
}

/* Where the action's blocks are now: as planned, or, where the slot's tensor lies elsewhere, the blocks under the same part
 * of it: all of them for an in, only whole ones for an out. 0 bytes: nothing to do. */
static void locate(const struct um_action *a, const struct um_cursor *c, uint64_t *addr, uint64_t *bytes)
{
	*addr = a->addr;
	*bytes = a->bytes;
	if (a->slot == UM_NO_SLOT)
		return;

	const struct um_slot *s = &c->sched->slots.at[a->slot];
	uint64_t now = c->slots[a->slot].addr;

	if (now == s->place)
		return;
	if (now != UINT64_MAX && (now - s->place) % UM_BLOCK_BYTES == 0) {
		*addr += now - s->place; /* two places of one layout */
		return;
	}
	*bytes = 0;
	if (now == UINT64_MAX)
		return;
	uint64_t lo = a->addr > s->place ? a->addr - s->place : 0;
	uint64_t hi = a->addr + a->bytes - s->place;

	if (hi > s->bytes)
		hi = s->bytes;
	if (lo >= hi)
		return;
	lo += now;
	hi += now;
	if (a->kind == UM_ACTION_IN) {
		lo &= ~(UM_BLOCK_BYTES - 1);
		hi = (hi + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
	} else {
		lo = (lo + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
		hi &= ~(UM_BLOCK_BYTES - 1);
	}
	if (lo < hi) {
		*addr = lo;
		*bytes = hi - lo;
	}
}

/* The op waits, on its stream, until requests up to `seq` have arrived. */
static void wait_for(struct um_executor *ex, uint32_t seq, um_stream stream)
{
	struct um_gpu *gpu = ex->gpu;

	if (!gpu->caps.stream_values)
		return;
	for (uint32_t i = 0; i < IN_STREAMS; i++) {
		uint32_t last = seq - i; /* the latest requests, one on each stream; request k - 1 raises the number to k */
		uint32_t *at = &ex->arrived[(last - 1) % IN_STREAMS];

		if (last == 0 || reached(__atomic_load_n(at, __ATOMIC_ACQUIRE), last))
			continue;
		if (gpu->api->cuStreamWaitValue32(gpu, stream, at, last, UM_WAIT_VALUE_GEQ))
			count(&ex->refused, 1);
	}
}

static uint32_t gate_of(struct um_executor *ex, uint32_t op, int *any)
{
	int32_t g = ex->program->gate[op];
	uint32_t seq = ex->in_base + (uint32_t)g;

	*any = g != INT32_MIN && (g > 0 || !ex->first);
	if (!ex->first)
		return seq;
	while (ex->start_next < ex->program->start.n && ex->program->start.at[ex->start_next].first_op <= op)
		ex->start_next++;
	if (ex->start_next) {
		uint32_t started = ex->start_seq[ex->start_next - 1];

		if (!*any || !reached(seq, started))
			seq = started;
		*any = 1;
	}
	return seq;
}

int um_executor_op(struct um_executor *ex, uint32_t op, um_stream stream, const struct um_cursor *cursor)
{
	const struct um_program *p = ex->program;
	int marked = 0, any;

	if (!p)
		return 0;
	if (see_stream(ex, stream))
		goto full;
	for (uint32_t i = p->first[op]; i < p->actions.n && p->actions.at[i].at == op; i++) {
		const struct um_action *a = &p->actions.at[i];
		uint64_t addr, bytes;

		locate(a, cursor, &addr, &bytes);
		if (a->kind == UM_ACTION_IN) {
			if (!has_room(&ex->in))
				goto full;
			put_in(ex, addr, bytes, ex->out_base + (uint32_t)(a->room == INT32_MIN ? -(int32_t)p->n_out : a->room));
			continue;
		}
		if (!has_room(&ex->out) || (!marked && mark(ex)))
			goto full;
		marked = 1;
		put_out(ex, a->kind, addr, bytes, a->slot == UM_NO_SLOT);
	}
	um_runner_poke(&ex->out.runner);
	um_runner_poke(&ex->in.runner);
	uint32_t seq = gate_of(ex, op, &any);

	if (any)
		wait_for(ex, seq, stream);
	return 0;
full:
	um_executor_leave(ex);
	return -EAGAIN;
}

/* --- taking a program up ---------------------------------------------------------------------------------------- */

static int cmp_addr(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sends away every block in use that the steady iteration does not begin with, in runs of one kind. */
static void clear_out(struct um_executor *ex, const uint64_t *keep, size_t n_keep, const struct um_executor_range *used,
                      size_t n_used)
{
	for (size_t i = 0; i < n_used; i++) {
		uint64_t run = 0, bytes = 0;
		enum um_action_kind run_kind = UM_ACTION_OUT;

		for (uint64_t a = used[i].addr; a < used[i].addr + used[i].bytes; a += UM_BLOCK_BYTES) {
			int away = !(n_keep && bsearch(&a, keep, n_keep, sizeof *keep, cmp_addr));
			enum um_action_kind kind =
			        ex->host.may_discard(ex->host.user, a, UM_BLOCK_BYTES) ? UM_ACTION_DISCARD : UM_ACTION_OUT;

			if (bytes && (!away || kind != run_kind || bytes == UM_RUN_BLOCKS * UM_BLOCK_BYTES)) {
				if (has_room(&ex->out))
					put_out(ex, run_kind, run, bytes, 0);
				bytes = 0;
			}
			if (!away)
				continue;
			if (!bytes)
				run = a;
			run_kind = kind;
			bytes += UM_BLOCK_BYTES;
		}
		if (bytes && has_room(&ex->out))
			put_out(ex, run_kind, run, bytes, 0);
	}
}

/* Brings what it does begin with, in order of need. What is on the device now is not known, so that nothing comes before
 * everything else has left: a block that came too early would push out one that is to stay, and be missed ever after. */
static void bring_in(struct um_executor *ex, const struct um_program *p)
{
	uint32_t outs = atomic_load_explicit(&ex->out.head, memory_order_relaxed);

	for (size_t i = 0; i < p->start.n;) {
		size_t n = 1;

		while (n < UM_RUN_BLOCKS && i + n < p->start.n &&
		       p->start.at[i + n].addr == p->start.at[i].addr + n * UM_BLOCK_BYTES)
			n++;
		if (has_room(&ex->in))
			put_in(ex, p->start.at[i].addr, n * UM_BLOCK_BYTES, outs);
		for (size_t k = 0; k < n; k++)
			ex->start_seq[i + k] = atomic_load_explicit(&ex->in.head, memory_order_relaxed);
		i += n;
	}
}

int um_executor_adopt(struct um_executor *ex, const struct um_program *p, uint64_t capacity_blocks,
                      const struct um_executor_range *used, size_t n_used)
{
	size_t n = p->start.n;
	uint64_t *keep = malloc((n ? n : 1) * sizeof *keep);
	uint32_t *seq = malloc((n ? n : 1) * sizeof *seq);
	uint64_t in_use = 0;

	if (!keep || !seq) {
		free(keep);
		free(seq);
		return -ENOMEM;
	}
	um_executor_leave(ex);
	free(ex->start_seq);
	ex->start_seq = seq;
	ex->start_next = 0;
	ex->first = 1;
	ex->program = p;
	um_runner_wake(&ex->in.runner);
	um_runner_wake(&ex->out.runner);

	for (size_t i = 0; i < n; i++)
		keep[i] = p->start.at[i].addr;
	if (n)
		qsort(keep, n, sizeof *keep, cmp_addr);
	for (size_t i = 0; i < n_used; i++)
		in_use += used[i].bytes / UM_BLOCK_BYTES;
	if (in_use > capacity_blocks && !mark(ex))
		clear_out(ex, keep, n, used, n_used);
	bring_in(ex, p);
	free(keep);
	ex->in_base = atomic_load_explicit(&ex->in.head, memory_order_relaxed);
	ex->out_base = atomic_load_explicit(&ex->out.head, memory_order_relaxed);
	return 0;
}

void um_executor_begin(struct um_executor *ex)
{
	ex->first = 0;
	ex->in_base = atomic_load_explicit(&ex->in.head, memory_order_relaxed);
	ex->out_base = atomic_load_explicit(&ex->out.head, memory_order_relaxed);
}

static int discards_done(void *arg)
{
	struct um_executor *ex = arg;

	return reached(atomic_load_explicit(&ex->out.tail, memory_order_acquire), ex->pending_discards);
}

void um_executor_settle(struct um_executor *ex)
{
	if (!ex->any_discard)
		return;
	um_runner_poke(&ex->out.runner);
	um_runner_until(&ex->out.runner, discards_done, ex);
	ex->any_discard = 0;
}

void um_executor_leave(struct um_executor *ex)
{
	if (!ex->program)
		return;
	ex->program = NULL;
	ex->dropped += atomic_load_explicit(&ex->in.head, memory_order_relaxed) -
	               atomic_load_explicit(&ex->in.tail, memory_order_relaxed);
	ex->dropped += atomic_load_explicit(&ex->out.head, memory_order_relaxed) -
	               atomic_load_explicit(&ex->out.tail, memory_order_relaxed);
	atomic_fetch_add_explicit(&ex->epoch, 1, memory_order_acq_rel);
	um_runner_poke(&ex->out.runner);
	um_runner_poke(&ex->in.runner);
	um_executor_settle(ex);
	um_runner_sleep(&ex->in.runner);
	um_runner_sleep(&ex->out.runner);
}

int um_executor_active(const struct um_executor *ex)
{
	return ex->program != NULL;
}

uint64_t um_executor_queued(const struct um_executor *ex)
{
	return ex->queued;
}

void um_executor_counts(const struct um_executor *ex, struct um_executor_counts *out)
{
	out->issued = atomic_load_explicit(&ex->issued, memory_order_relaxed);
	out->refused = atomic_load_explicit(&ex->refused, memory_order_relaxed);
	out->prefetch_bytes = atomic_load_explicit(&ex->prefetch_bytes, memory_order_relaxed);
	out->evict_bytes = atomic_load_explicit(&ex->evict_bytes, memory_order_relaxed);
	out->discard_bytes = atomic_load_explicit(&ex->discard_bytes, memory_order_relaxed);
	out->dropped = ex->dropped;
}
