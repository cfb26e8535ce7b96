/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include "model/event.h"

void um_pool_init(struct um_pool *a, struct um_gpu *gpu)
{
	memset(a, 0, sizeof *a);
	a->gpu = gpu;
	for (int i = 0; i < UM_POOL_HEAPS; i++)
		um_heap_init(&a->heap[i]);
}

static void drop_events(struct um_pool *a, struct um_pool_waiting *w)
{
	for (unsigned i = 0; i < UM_POOL_STREAMS; i++)
		if (w->events[i])
			a->gpu->api->cudaEventDestroy(a->gpu, w->events[i]);
}

void um_pool_fini(struct um_pool *a)
{
	for (size_t i = 0; i < a->waiting.n; i++)
		drop_events(a, &a->waiting.at[i]);
	for (size_t i = 0; i < a->regions.n; i++)
		a->gpu->api->cudaFree(a->gpu, a->regions.at[i].given);
	um_vec_fini(&a->waiting);
	um_vec_fini(&a->regions);
	for (int i = 0; i < UM_POOL_HEAPS; i++)
		um_heap_fini(&a->heap[i]);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Managed memory that begins at a block boundary: CUDA was not seen to give other where so much is asked for, but does
 * not promise it. NULL: there is not so much. */
static void *get_blocks(struct um_pool *a, uint64_t bytes, uint64_t *addr)
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

int um_pool_grow(struct um_pool *a, uint64_t bytes, enum um_pool_heap heap)
{
	uint64_t least = round_up(bytes, UM_BLOCK_BYTES), want = least, addr;
	void *p;

	if (want < UM_POOL_FIRST)
		want = UM_POOL_FIRST;
	if (want < a->total[heap])
		want = round_up(a->total[heap], UM_BLOCK_BYTES); /* doubling keeps regions, and their seams, few */
	if (um_vec_reserve(&a->regions, 1))
		return -ENOMEM;
	while (!(p = get_blocks(a, want, &addr))) {
		if (want == least)
			return -ENOMEM;
		want = want / 2 > least ? round_up(want / 2, UM_BLOCK_BYTES) : least;
	}
	if (um_heap_add_region(&a->heap[heap], addr, want)) {
		a->gpu->api->cudaFree(a->gpu, p);
		return -ENOMEM;
	}
	size_t i = a->regions.n++;

	for (; i > 0 && a->regions.at[i - 1].addr > addr; i--)
		a->regions.at[i] = a->regions.at[i - 1];
	a->regions.at[i] = (struct um_pool_region){p, addr, want, addr, heap};
	a->total[heap] += want;
	return 0;
}

static struct um_pool_region *region_of(struct um_pool *a, uint64_t addr)
{
	size_t i = 0;

	while (i + 1 < a->regions.n && a->regions.at[i + 1].addr <= addr)
		i++;
	return &a->regions.at[i];
}

static void note_use(struct um_pool *a, uint64_t addr, uint64_t bytes)
{
	struct um_pool_region *r = region_of(a, addr);

	if (addr + bytes > r->used_hi)
		r->used_hi = addr + bytes;
}

static void give_back(struct um_pool *a, uint64_t addr, uint64_t bytes)
{
	um_heap_give(&a->heap[region_of(a, addr)->heap], addr, bytes);
}

/* Records on the streams that have no event yet. */
static void record_missing(struct um_pool *a, struct um_pool_waiting *w)
{
	for (unsigned i = 0; i < a->n_streams; i++) {
		if (!(w->missing & 1u << i))
			continue;
		if (!w->events[i] &&
		    a->gpu->api->cudaEventCreateWithFlags(a->gpu, &w->events[i], UM_EVENT_DISABLE_TIMING)) {
			w->events[i] = NULL;
			continue;
		}
		if (!a->gpu->api->cudaEventRecord(a->gpu, w->events[i], a->streams[i]))
			w->missing &= ~(1u << i);
	}
}

/* Gives the heap what no stream uses any more. */
static void settle_waiting(struct um_pool *a)
{
	size_t done = 0;

	for (; done < a->waiting.n; done++) {
		struct um_pool_waiting *w = &a->waiting.at[done];

		if (w->missing)
			record_missing(a, w);
		if (w->missing)
			goto stop;
		for (unsigned i = 0; i < UM_POOL_STREAMS; i++)
			if (w->events[i] && a->gpu->api->cudaEventQuery(a->gpu, w->events[i]) == UM_CUDA_NOT_READY)
				goto stop;
		give_back(a, w->addr, w->bytes);
		drop_events(a, w);
	}
stop:
	if (!done)
		return;
	memmove(a->waiting.at, a->waiting.at + done, (a->waiting.n - done) * sizeof *a->waiting.at);
	a->waiting.n -= done;
}

int um_pool_take(struct um_pool *a, uint64_t bytes, enum um_pool_heap heap, uint64_t *addr)
{
	struct um_heap *h = &a->heap[heap];
	int err;

	settle_waiting(a);
	err = um_heap_take(h, bytes, addr);
	if (err == -ENOSPC) {
		err = um_pool_grow(a, bytes, heap);
		if (!err)
			err = um_heap_take(h, bytes, addr);
	}
	if (!err)
		note_use(a, *addr, bytes);
	return err == -ENOSPC ? -ENOMEM : err;
}

int um_pool_take_at(struct um_pool *a, uint64_t place, uint64_t bytes)
{
	int err;

	settle_waiting(a);
	err = um_heap_take_at(&a->heap[UM_POOL_MAIN], place, bytes);
	if (!err)
		note_use(a, place, bytes);
	return err;
}

void um_pool_give(struct um_pool *a, uint64_t addr, uint64_t bytes)
{
	struct um_pool_waiting w = {.addr = addr, .bytes = bytes};

	if (a->crowded)
		return;
	if (a->n_streams <= 1) {
		give_back(a, addr, bytes);
		return;
	}
	if (um_vec_reserve(&a->waiting, 1)) {
		/* Without a place in the list the order must come from waiting here. */
		for (unsigned i = 0; i < a->n_streams; i++)
			if (a->gpu->api->cudaStreamSynchronize(a->gpu, a->streams[i]))
				return; /* never used again: nobody can tell when it may be */
		give_back(a, addr, bytes);
		return;
	}
	w.missing = (1u << a->n_streams) - 1;
	record_missing(a, &w);
	a->waiting.at[a->waiting.n++] = w;
}

void um_pool_see_stream(struct um_pool *a, um_stream stream)
{
	for (unsigned i = 0; i < a->n_streams; i++)
		if (a->streams[i] == stream)
			return;
	if (a->n_streams < UM_POOL_STREAMS)
		a->streams[a->n_streams++] = stream;
	else
		a->crowded = 1;
}
