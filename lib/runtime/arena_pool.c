/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/arena_pool.h"

#include "model/event.h"
#include "runtime/owners.h"

#include <errno.h>

#define RETRIES 8 /* maximum pieces without an event that are retried in one call */
#define PASSED 32 /* maximum pieces of busy streams that one call passes over, unless memory is short */

void um_arena_pool_init(struct um_arena_pool *a, struct um_gpu *gpu)
{
	memset(a, 0, sizeof *a);
	a->gpu = gpu;
	for (int i = 0; i < UM_ARENA_POOL_HEAPS; i++)
		um_heap_init(&a->heap[i]);
	um_planned_places_init(&a->planned);
}

static void drop_events(struct um_arena_pool *a, struct um_arena_pool_waiting *w)
{
	for (unsigned i = 0; i < UM_APP_STREAMS; i++)
		if (w->events[i])
			a->gpu->api->cudaEventDestroy(a->gpu, w->events[i]);
}

void um_arena_pool_fini(struct um_arena_pool *a)
{
	for (size_t i = 0; i < a->waiting.n; i++)
		drop_events(a, &a->waiting.at[i]);
	if (a->reused)
		a->gpu->api->cudaEventDestroy(a->gpu, a->reused);
	for (size_t i = 0; i < a->regions.n; i++) {
		um_owners_remove(a->regions.at[i].addr, a->gpu);
		a->gpu->api->cudaFree(a->gpu, a->regions.at[i].base);
	}
	um_vec_fini(&a->waiting);
	um_vec_fini(&a->regions);
	um_vec_fini(&a->used);
	um_planned_places_fini(&a->planned);
	for (int i = 0; i < UM_ARENA_POOL_HEAPS; i++)
		um_heap_fini(&a->heap[i]);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Managed memory that begins at a block boundary. Observed CUDA versions align large allocations so, but no document
 * promises it. NULL: out of memory. */
static void *get_blocks(struct um_arena_pool *a, uint64_t bytes, uint64_t *addr)
{
	void *p = NULL;

	if (a->gpu->api->cudaMallocManaged(a->gpu, &p, bytes, 1))
		return NULL;
	if ((uintptr_t)p % UM_BLOCK_BYTES) {
		a->gpu->api->cudaFree(a->gpu, p);
		if (a->gpu->api->cudaMallocManaged(a->gpu, &p, bytes + UM_BLOCK_BYTES, 1))
			return NULL;
	}
	*addr = round_up((uintptr_t)p, UM_BLOCK_BYTES);
	return p;
}

int um_arena_pool_grow(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap, uint64_t *addr)
{
	uint64_t least = round_up(bytes, UM_BLOCK_BYTES), want = least, at;
	void *p;

	/* doubling keeps the number of regions small, and costs nothing where memory becomes physical by page faults */
	if (!a->gpu->caps.no_faults && want < UM_ARENA_POOL_FIRST)
		want = UM_ARENA_POOL_FIRST;
	if (!a->gpu->caps.no_faults && want < a->total[heap])
		want = round_up(a->total[heap], UM_BLOCK_BYTES);
	if (um_vec_reserve(&a->regions, 1))
		return -ENOMEM;
	while (!(p = get_blocks(a, want, &at))) {
		if (want == least)
			return -ENOMEM;
		want = want / 2 > least ? round_up(want / 2, UM_BLOCK_BYTES) : least;
	}
	if (um_heap_add_region(&a->heap[heap], at, want)) {
		a->gpu->api->cudaFree(a->gpu, p);
		return -ENOMEM;
	}
	size_t i = a->regions.n++;

	for (; i > 0 && a->regions.at[i - 1].addr > at; i--)
		a->regions.at[i] = a->regions.at[i - 1];
	a->regions.at[i] = (struct um_arena_pool_region){p, at, want, at, at, heap};
	a->total[heap] += want;
	um_owners_add(at, want, a->gpu, a->gpu->caps.device);
	*addr = at;
	return 0;
}

static struct um_arena_pool_region *region_of(struct um_arena_pool *a, uint64_t addr)
{
	size_t i = 0;

	while (i + 1 < a->regions.n && a->regions.at[i + 1].addr <= addr)
		i++;
	return &a->regions.at[i];
}

static void note_use(struct um_arena_pool *a, uint64_t addr, uint64_t bytes)
{
	struct um_arena_pool_region *r = region_of(a, addr);

	if (addr + bytes > r->used_hi)
		r->used_hi = addr + bytes;
}

uint64_t um_arena_pool_new_memory(struct um_arena_pool *a, uint64_t addr, uint64_t *from)
{
	struct um_arena_pool_region *r = region_of(a, addr);
	uint64_t end = round_up(r->used_hi, UM_BLOCK_BYTES), bytes = end - r->shown_hi;

	*from = r->shown_hi;
	r->shown_hi = end;
	return bytes;
}

static void release(struct um_arena_pool *a, uint64_t addr, uint64_t bytes)
{
	enum um_arena_pool_heap heap = region_of(a, addr)->heap;

	if (heap == UM_ARENA_POOL_MAIN && um_planned_places_claimed(&a->planned))
		um_planned_places_give(&a->planned, &a->heap[heap], addr, bytes);
	else
		um_heap_free(&a->heap[heap], addr, bytes);
}

/* The work of a destroyed stream is complete, and a lost device has no work. */
static int is_complete(int code)
{
	return code == UM_CUDA_INVALID_HANDLE || code == UM_CUDA_LOST;
}

static int record(struct um_arena_pool *a, um_event_handle *event, struct um_app_stream stream)
{
	int code = *event ? UM_CUDA_OK : a->gpu->api->cudaEventCreateWithFlags(a->gpu, event, UM_EVENT_DISABLE_TIMING);

	if (code)
		*event = NULL;
	else
		code = um_app_stream_record(a->gpu, *event, stream);
	return is_complete(code) ? UM_CUDA_OK : code;
}

/* Records an event on each stream of `which` without one. On a per-thread stream of another thread this delays all
 * streams that are ordered with the legacy one, so it is done only with `foreign`. */
static void record_missing(struct um_arena_pool *a, struct um_arena_pool_waiting *w, unsigned which, int foreign)
{
	for (unsigned rest = w->missing & which; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		if ((foreign || um_app_stream_is_ours(a->streams.at[i])) && !record(a, &w->events[i], a->streams.at[i]))
			w->missing &= ~(1u << i);
	}
}

/* The bit of a stream whose event is not complete; 0: none. */
static unsigned busy_stream(struct um_arena_pool *a, const struct um_arena_pool_waiting *w)
{
	for (unsigned i = 0; i < UM_APP_STREAMS; i++) {
		int code = w->events[i] ? a->gpu->api->cudaEventQuery(a->gpu, w->events[i]) : UM_CUDA_OK;

		if (code && !is_complete(code))
			return 1u << i;
	}
	return 0;
}

/* Frees the pieces that no stream uses any more. A piece without an event, or of a busy stream, does not delay the
 * pieces after it. */
static void free_unused(struct um_arena_pool *a, int foreign)
{
	unsigned busy = 0, tries = 0, passed = 0; /* busy: later pieces have later events on these streams */
	unsigned may_use = a->streams.usable;
	size_t kept = 0, i = 0;

	for (; i < a->waiting.n && (foreign || passed < PASSED); i++) {
		struct um_arena_pool_waiting *w = &a->waiting.at[i];

		if (w->missing & may_use && (foreign || tries++ < RETRIES))
			record_missing(a, w, may_use, foreign);
		if (!w->missing && !(w->last & busy))
			busy |= busy_stream(a, w);
		if (!w->missing && !(w->last & busy)) {
			release(a, w->addr, w->bytes);
			drop_events(a, w);
			continue;
		}
		passed += !w->missing;
		a->waiting.at[kept++] = *w;
	}
	if (i == kept)
		return;
	memmove(a->waiting.at + kept, a->waiting.at + i, (a->waiting.n - i) * sizeof *a->waiting.at);
	a->waiting.n -= i - kept;
}

/* All uses of pieces that were freed while there was one stream are complete: later streams need no order. */
static void forget_reused(struct um_arena_pool *a)
{
	if (a->reused)
		a->gpu->api->cudaEventDestroy(a->gpu, a->reused);
	a->reused = NULL;
	a->reused_later = 0;
}

/* Waits for all work of the device: no freed piece is in use then. An announced op may not be launched yet, so a piece
 * that an idle stream has used still waits for that stream. 0 or the CUDA error. */
static int wait_for_device(struct um_arena_pool *a)
{
	int code = a->gpu->api->cudaDeviceSynchronize(a->gpu);

	if (code && code != UM_CUDA_LOST)
		return code;
	for (struct um_arena_pool_waiting *w = a->waiting.at; w < a->waiting.at + a->waiting.n; w++)
		w->missing = 0;
	free_unused(a, 1);
	forget_reused(a);
	a->streams.idle = a->streams.due = a->streams.live;
	return 0;
}

/* Does a piece wait for an event that is recorded only when the program names the stream? */
static int waits_for_name(const struct um_arena_pool *a)
{
	unsigned missing = 0;

	for (const struct um_arena_pool_waiting *w = a->waiting.at; w < a->waiting.at + a->waiting.n; w++)
		missing |= w->missing;
	return (missing & ~a->streams.usable) != 0;
}

struct place_cost {
	struct um_arena_pool *pool;
	const struct um_arena_pool_missing *missing;
};

static uint64_t place_cost(void *user, uint64_t addr, uint64_t bytes)
{
	const struct place_cost *c = user;
	uint64_t used_hi = region_of(c->pool, addr)->used_hi, end = addr + bytes, unused = 0;

	if (end > used_hi)
		unused = end - (addr > used_hi ? addr : used_hi);
	return c->missing->blocks(c->missing->user, addr, bytes) + unused / UM_BLOCK_BYTES;
}

/* Long-lived tensors are aligned to blocks. Best fit gives the others their place of the previous iteration; aligned,
 * they would use new memory for several iterations, and plans align them anyway. */
static int alloc_from(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap,
		      const struct um_arena_pool_missing *missing, uint64_t *addr)
{
	struct place_cost by = {a, missing};
	struct um_heap *h = &a->heap[heap];

	if (heap == UM_ARENA_POOL_LONG_LIVED)
		return um_heap_alloc_aligned(h, bytes, addr);
	if (heap == UM_ARENA_POOL_MAIN && missing)
		return um_heap_alloc_cheapest(h, bytes, &(struct um_heap_cost){place_cost, &by}, addr);
	return um_heap_alloc(h, bytes, addr);
}

int um_arena_pool_alloc(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap,
			const struct um_arena_pool_missing *missing, uint64_t *addr)
{
	int err;

	free_unused(a, 0);
	err = alloc_from(a, bytes, heap, missing, addr);
	if (err == -ENOSPC && a->waiting.n) {
		free_unused(a, 1);
		err = alloc_from(a, bytes, heap, missing, addr);
	}
	if (err == -ENOSPC && waits_for_name(a) && !a->captured && !wait_for_device(a))
		err = alloc_from(a, bytes, heap, missing, addr);
	if (err == -ENOSPC) {
		err = um_arena_pool_grow(a, bytes, heap, addr);
		if (!err)
			err = alloc_from(a, bytes, heap, missing, addr);
	}
	if (!err)
		note_use(a, *addr, bytes);
	return err == -ENOSPC ? -ENOMEM : err;
}

int um_arena_pool_alloc_at(struct um_arena_pool *a, uint64_t place, uint64_t bytes)
{
	struct um_heap *h = &a->heap[UM_ARENA_POOL_MAIN];
	int err = -ENOENT;

	free_unused(a, 0);
	if (um_planned_places_claimed(&a->planned))
		err = um_planned_places_take(&a->planned, h, place, bytes);
	if (err == -ENOENT)
		err = um_heap_alloc_at(h, place, bytes);
	if (!err)
		note_use(a, place, bytes);
	return err;
}

int um_arena_pool_claim(struct um_arena_pool *a, const struct um_heap_region *place, size_t n_places,
			const struct um_heap_region *used, size_t n_used)
{
	size_t n = n_used + a->waiting.n;

	um_vec_clear(&a->used);
	if (um_vec_reserve(&a->used, n))
		return -ENOMEM;
	if (n_used)
		memcpy(a->used.at, used, n_used * sizeof *used);
	for (size_t i = 0; i < a->waiting.n; i++)
		a->used.at[n_used + i] = (struct um_heap_region){a->waiting.at[i].addr, a->waiting.at[i].bytes};
	return um_planned_places_claim(&a->planned, &a->heap[UM_ARENA_POOL_MAIN], place, n_places, a->used.at, n);
}

void um_arena_pool_unclaim(struct um_arena_pool *a)
{
	if (um_planned_places_claimed(&a->planned))
		um_planned_places_release(&a->planned, &a->heap[UM_ARENA_POOL_MAIN]);
}

static int synchronise(struct um_arena_pool *a, struct um_app_stream stream)
{
	int code = UM_CUDA_NOT_SUPPORTED;

	if (um_app_stream_is_ours(stream))
		code = a->gpu->api->cudaStreamSynchronize(a->gpu, stream.handle);
	return is_complete(code) ? UM_CUDA_OK : code;
}

/* Waits for all work of these streams; `may_use`: of those of them whose handles may be used. 0 or the CUDA error. */
static int wait_for(struct um_arena_pool *a, unsigned which, unsigned may_use)
{
	if (which & ~may_use)
		return wait_for_device(a);
	for (; which; which &= which - 1) {
		int code = synchronise(a, a->streams.at[__builtin_ctz(which)]);

		if (code)
			return code;
	}
	return 0;
}

/* Pieces are reused at once after the work of one stream at a time. 0: another one's may not be complete. */
static int reuses_after(struct um_arena_pool *a, struct um_app_stream stream)
{
	int code;

	if (um_app_stream_same(a->reused_on, stream))
		return 1;
	if (a->reused_later)
		return 0;
	code = a->reused ? a->gpu->api->cudaEventQuery(a->gpu, a->reused) : UM_CUDA_OK;
	if (code && !is_complete(code))
		return 0;
	forget_reused(a);
	a->reused_on = stream;
	return 1;
}

/* Only the streams `busy` have work. 1: the piece may be reused at once, and streams that are named later are ordered
 * after that. */
static int reuse_at_once(struct um_arena_pool *a, unsigned busy, unsigned may_use)
{
	unsigned i;

	if (!busy)
		return 1;
	if (busy & (busy - 1) || a->streams.null_shared)
		return 0;
	i = (unsigned)__builtin_ctz(busy);
	if (!reuses_after(a, a->streams.at[i]))
		return 0;
	if (!(busy & may_use)) {
		a->reused_later = 1;
		a->streams.due |= busy;
		return 1;
	}
	if (record(a, &a->reused, a->reused_on))
		return 0;
	a->reused_later = 0;
	return 1;
}

/* The streams that have had no op since this serial: a bit each. */
static unsigned unnamed_since(const struct um_arena_pool *a, uint64_t serial)
{
	unsigned which = 0;

	for (unsigned i = 0; i < a->streams.n; i++)
		which |= (unsigned)(a->streams.named[i] < serial) << i;
	return which & a->streams.live;
}

void um_arena_pool_free(struct um_arena_pool *a, uint64_t addr, uint64_t bytes, const struct um_arena_pool_use *use)
{
	struct um_arena_pool_waiting w = {.addr = addr, .bytes = bytes, .users = use->users};
	unsigned busy = a->streams.live & (~a->streams.idle | use->users);
	unsigned may_use = a->streams.usable | (use->last == UM_ARENA_POOL_ANY ? 0 : use->last);

	if (a->streams.overflow)
		return;
	if (reuse_at_once(a, busy, may_use)) {
		release(a, addr, bytes);
		return;
	}
	busy &= may_use | use->users | ~unnamed_since(a, use->born);
	if (um_vec_reserve(&a->waiting, 1)) {
		/* out of memory for the list: wait for the streams here */
		if (!wait_for(a, busy, may_use)) /* otherwise the end of its last use is unknown: never used again */
			release(a, addr, bytes);
		return;
	}
	w.last = w.missing = busy & use->last;
	record_missing(a, &w, may_use, 0);
	a->streams.due |= w.missing & ~may_use;
	a->waiting.at[a->waiting.n++] = w;
}

unsigned um_arena_pool_users(struct um_arena_pool *a, uint64_t addr, uint64_t bytes)
{
	unsigned users = 0;

	for (const struct um_arena_pool_waiting *w = a->waiting.at; w < a->waiting.at + a->waiting.n; w++)
		if (w->addr < addr + bytes && w->addr + w->bytes > addr)
			users |= w->users;
	if (a->reused && !a->reused_later) {
		int code = a->gpu->api->cudaEventQuery(a->gpu, a->reused);

		if (!code || is_complete(code))
			forget_reused(a);
	}
	for (unsigned i = 0; (a->reused || a->reused_later) && i < a->streams.n; i++)
		users |= um_app_stream_same(a->streams.at[i], a->reused_on) ? 1u << i : 0;
	return users;
}

int um_arena_pool_ends_by_events(struct um_arena_pool *a, uint64_t addr, uint64_t bytes)
{
	for (size_t i = 0; i < a->waiting.n;) {
		struct um_arena_pool_waiting *w = &a->waiting.at[i];

		if (w->addr >= addr + bytes || w->addr + w->bytes <= addr) {
			i++;
			continue;
		}
		record_missing(a, w, a->streams.live, 0);
		if (w->missing || busy_stream(a, w))
			return !w->missing;
		release(a, w->addr, w->bytes);
		drop_events(a, w);
		memmove(w, w + 1, (--a->waiting.n - i) * sizeof *w);
	}
	return 0;
}

/* Orders later work on the stream after the uses of pieces that were reused at once: on the device if possible,
 * otherwise the caller waits. 0 or the CUDA error of the last attempt. */
static int order_stream(struct um_arena_pool *a, um_stream stream)
{
	const struct um_gpu_api *api = a->gpu->api;
	int code;

	if (a->reused_later)
		return wait_for_device(a);
	if (!a->reused)
		return 0;
	code = api->cudaEventQuery(a->gpu, a->reused);
	if (code && !is_complete(code)) {
		if (!api->cudaStreamWaitEvent(a->gpu, stream, a->reused, 0))
			return 0;
		code = api->cudaEventSynchronize(a->gpu, a->reused);
		if (code && um_app_streams_may_use(&a->streams, a->reused_on.handle))
			code = synchronise(a, a->reused_on);
		else if (code)
			code = wait_for_device(a);
		if (code)
			return code;
	}
	forget_reused(a);
	return 0;
}

int um_arena_pool_add_stream(struct um_arena_pool *a, um_stream stream, unsigned *number)
{
	struct um_app_stream is = um_app_stream_of(stream);
	int code = order_stream(a, stream);

	*number = code ? UM_APP_STREAMS : um_app_streams_spare(&a->streams);
	if (*number == UM_APP_STREAMS) {
		a->streams.overflow = 1;
		return code ? -EIO : 0;
	}
	is.id = um_app_stream_id(a->gpu, stream);
	um_app_streams_put(&a->streams, *number, is);
	return 0;
}

int um_arena_pool_share_null(struct um_arena_pool *a)
{
	if (!order_stream(a, NULL))
		return 0;
	a->streams.overflow = 1;
	return -EIO;
}

/* Records what misses an event on the stream. 0, or a call failed. */
static int record_named(struct um_arena_pool *a, unsigned i)
{
	unsigned bit = 1u << i;

	if (a->reused_later && um_app_stream_same(a->reused_on, a->streams.at[i])) {
		if (record(a, &a->reused, a->reused_on))
			return -EIO;
		a->reused_later = 0;
	}
	for (struct um_arena_pool_waiting *w = a->waiting.at; w < a->waiting.at + a->waiting.n; w++) {
		record_missing(a, w, bit, 0);
		if (w->missing & bit)
			return -EIO;
	}
	return 0;
}

int um_arena_pool_name_stream(struct um_arena_pool *a, unsigned i)
{
	struct um_app_streams *s = &a->streams;
	unsigned bit = 1u << i;
	int failed = record_named(a, i); /* to be tried again */
	int code = s->idle & bit ? order_stream(a, s->at[i].handle) : 0; /* others may have reused memory meanwhile */

	s->idle &= ~bit;
	s->due = failed ? s->due | bit : s->due & ~bit;
	s->overflow |= code != 0;
	return code ? -EIO : 0;
}

void um_arena_pool_forget_stream(struct um_arena_pool *a, unsigned i)
{
	if (a->reused_later && um_app_stream_same(a->reused_on, a->streams.at[i]))
		forget_reused(a);
	for (struct um_arena_pool_waiting *w = a->waiting.at; w < a->waiting.at + a->waiting.n; w++) {
		w->missing &= ~(1u << i);
		if (w->events[i])
			a->gpu->api->cudaEventDestroy(a->gpu, w->events[i]);
		w->events[i] = NULL;
	}
	um_app_streams_forget(&a->streams, i);
}

/* Is all work of the stream complete? */
static int is_idle(struct um_arena_pool *a, struct um_app_stream stream)
{
	um_event_handle event = NULL;
	int code = record(a, &event, stream);

	if (!event)
		return 0;
	if (!code)
		code = a->gpu->api->cudaEventQuery(a->gpu, event);
	a->gpu->api->cudaEventDestroy(a->gpu, event);
	return !code || is_complete(code);
}

unsigned um_arena_pool_retire_streams(struct um_arena_pool *a, uint64_t since)
{
	unsigned may_use = a->streams.usable, old = unnamed_since(a, since), retired = 0;

	if (old & ~(may_use | a->streams.idle) && (a->captured || wait_for_device(a)))
		old &= may_use | a->streams.idle;
	for (; old; old &= old - 1) {
		unsigned i = (unsigned)__builtin_ctz(old);

		if (!(a->streams.idle >> i & 1) && !is_idle(a, a->streams.at[i]))
			continue;
		um_arena_pool_forget_stream(a, i);
		retired |= 1u << i;
	}
	return retired;
}
