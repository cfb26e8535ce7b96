/* SPDX-License-Identifier: Apache-2.0
 *
 * residency.c - residency of pages: migration, eviction, chunks and lists
 *
 * State changes at once, at the CPU time of the caller; the device's work for it is booked on its engines, and the
 * block's tracker says when it will be complete. A use of the block on the device before that waits for the tracker.
 *
 * Lists are the driver's: a chunk goes to the end of USED when it is allocated or when a service with the GPU as
 * destination ends on its (full-size) block, and at no other time. Victims come from the head of UNUSED, DISCARDED,
 * USED.
 */
#include "sim/state.h"

#include <assert.h>

static const char *const cause_name[] = {"user", "coherence", "eviction"};

/* Checks the invariants of a block, and updates the bit that lets kernels skip complete blocks. */
void um_sim_block_changed(struct um_sim_block *b)
{
	uint32_t i = (uint32_t)(b - b->mem->block);
	uint64_t bit = 1ull << (i % 64);

	assert((b->map & ~b->gpu) == 0 && (b->rw & ~b->map) == 0 && (b->remote & (b->gpu | ~b->cpu)) == 0);
	assert((b->gpu & b->cpu & ~b->read_mostly) == 0 && (b->cmap & ~b->cpu) == 0);
	b->late &= b->map;
	if ((b->map & b->rw & ~b->late) == b->all)
		b->mem->odd[i / 64] &= ~bit;
	else
		b->mem->odd[i / 64] |= bit;
}

/* Attributes resident pages to prefetches: counts the blocks with at least one prefetched page. */
static void attribute(struct um_sim *sim, struct um_sim_block *b, uint32_t prefetched)
{
	assert((prefetched & ~b->gpu) == 0);
	if (!b->prefetched && prefetched && ++sim->prefetched > sim->prefetched_peak)
		sim->prefetched_peak = sim->prefetched;
	if (b->prefetched && !prefetched)
		sim->prefetched--;
	b->prefetched = prefetched;
}

/* The last block of an allocation may be shorter than its chunk. */
static uint64_t data_bytes(const struct um_sim_block *b)
{
	uint64_t left = b->mem->bytes - (uint64_t)(b - b->mem->block) * UM_BLOCK_BYTES;

	return left < UM_BLOCK_BYTES ? left : UM_BLOCK_BYTES;
}

/* Pages that are not resident are unmapped; counts the blocks with resident pages. */
void um_sim_gpu_set(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	assert(!pages || b->chunk);
	if (!b->gpu && pages) {
		sim->resident_data += data_bytes(b);
		sim->tally.peak_data_bytes = um_sim_later(sim->tally.peak_data_bytes, sim->resident_data);
		if (++sim->resident > sim->peak)
			sim->peak = sim->resident;
	}
	if (b->gpu && !pages) {
		sim->resident_data -= data_bytes(b);
		sim->resident--;
	}
	b->gpu = pages;
	attribute(sim, b, b->prefetched & pages);
	b->map &= pages;
	b->rw &= pages;
	b->remote &= ~pages;
	if (pages == b->all)
		b->whole_once = 1;
	um_sim_block_changed(b);
}

/* The process's page tables follow when the call ends. */
void um_sim_cpu_unmap(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	b->stale |= b->cmap & pages;
	sim->node->follow_stale |= b->stale != 0;
	b->cmap &= ~pages;
	b->cro &= ~pages;
}

void um_sim_map(struct um_sim_block *b, uint32_t pages)
{
	uint32_t fresh = pages & b->gpu & ~b->map;

	b->map |= fresh;
	if (fresh && b->tracker) {
		b->late |= fresh;
		b->late_until = b->tracker;
	}
}

void um_sim_arrive(struct um_sim_block *b, uint64_t t)
{
	if (b->late && t >= b->late_until) {
		b->late = 0;
		um_sim_block_changed(b);
	}
}

void um_sim_list_put(struct um_sim *sim, struct um_sim_block *b, enum um_sim_list list)
{
	struct um_sim_ring *r = &sim->list[b->list];

	if (b->list != UM_SIM_NONE) {
		*(b->prev ? &b->prev->next : &r->head) = b->next;
		*(b->next ? &b->next->prev : &r->tail) = b->prev;
		b->prev = b->next = NULL;
	}
	b->list = (uint8_t)list;
	if (list == UM_SIM_NONE)
		return;
	r = &sim->list[list];
	b->prev = r->tail;
	*(r->tail ? &r->tail->next : &r->head) = b;
	r->tail = b;
}

void um_sim_used(struct um_sim *sim, struct um_sim_block *b)
{
	/* a split block keeps its position in the list */
	if (b->chunk && (!b->cuts || b->list != UM_SIM_USED))
		um_sim_list_put(sim, b, UM_SIM_USED);
}

void um_sim_emptied(struct um_sim *sim, struct um_sim_block *b, uint32_t had)
{
	if (had && !b->gpu && b->chunk && !b->cuts)
		um_sim_list_put(sim, b, UM_SIM_UNUSED);
}

/* Host memory for a block, 2 MiB at once, until the program frees the memory. */
static void host_chunk(struct um_sim *sim, struct um_sim_block *b, int zero, uint64_t *t)
{
	if (b->cpu_chunk)
		return;
	b->cpu_chunk = 1;
	sim->tally.host_bytes += UM_BLOCK_BYTES;
	*t += sim->profile.c_hostpop + (zero ? sim->profile.c_hostzero : 0);
}

static unsigned segment_add(struct um_sim_segment *out, unsigned n, uint32_t off, uint32_t bytes, int added)
{
	if (n && out[n - 1].off + out[n - 1].bytes == off && out[n - 1].added == added) {
		out[n - 1].bytes += bytes;
		return n;
	}
	out[n] = (struct um_sim_segment){off, bytes, added};
	return n + 1;
}

unsigned um_sim_segments(uint32_t pages, const struct um_sim_faulted *f, struct um_sim_segment out[2 * UM_SIM_PAGES])
{
	const uint32_t sub = UM_SIM_PAGE / UM_SIM_SUBPAGES;
	unsigned n = 0;

	for (; pages; pages &= pages - 1) {
		uint32_t page = pages & -pages, off = (uint32_t)__builtin_ctz(page) * UM_SIM_PAGE;

		if (f && page & f->pages & ~f->each) {
			n = segment_add(out, n, off, sub, 0);
			n = segment_add(out, n, off + sub, UM_SIM_PAGE - sub, 1);
		} else {
			n = segment_add(out, n, off, UM_SIM_PAGE, f && !(page & f->pages));
		}
	}
	return n;
}

/* Queues the copy of `pages`, after earlier work on the block, not before `ready`; the tracker is its end. */
static void copy(struct um_sim *sim, struct um_sim_block *b, enum um_sim_engine_id id, uint32_t pages,
		 enum um_sim_cause cause, const struct um_sim_faulted *f, uint64_t *t)
{
	struct um_sim_segment seg[2 * UM_SIM_PAGES];
	uint64_t bytes = (uint64_t)um_sim_count(pages) * UM_SIM_PAGE, begin, work;
	unsigned n = um_sim_segments(pages, f, seg);

	if (!pages)
		return;
	if (!b->dma) {
		*t += b->cuts ? sim->profile.c_dma_4k : sim->profile.c_dma;
		b->dma = 1;
	}
	begin = um_sim_later(um_sim_later(*t, b->tracker), sim->engine[id].free_at);
	work = um_sim_copy_ns(sim, id, bytes, n, b->cuts != 0);
	b->tracker = cause == UM_SIM_EVICTION ? um_sim_engine_evict(sim, begin, work)
					      : um_sim_engine_book(sim, id, begin, work);
	*(id == UM_SIM_H2D ? &sim->tally.h2d_bytes : &sim->tally.d2h_bytes) += bytes;
	um_sim_ledger_moved(sim, b->mem, id == UM_SIM_H2D, bytes);
	um_sim_watch_moved(sim, b, seg, n, id == UM_SIM_H2D, cause, begin, b->tracker);
	if (cause != UM_SIM_EVICTION)
		um_sim_thrash_reset(sim, b, cause == UM_SIM_COHERENCE ? pages & b->read_mostly : pages);
	if (cause == UM_SIM_COHERENCE)
		um_sim_thrash_moved(sim, b, pages & ~b->read_mostly, id == UM_SIM_H2D, *t);
	if (sim->opt.log)
		um_sim_log(sim, *t, "migrate %s %s m%u+%u %llu", id == UM_SIM_H2D ? "h2d" : "d2h", cause_name[cause],
			   b->mem->serial, (unsigned)(b - b->mem->block), (unsigned long long)bytes);
}

static int is_active(struct um_sim *sim, struct um_sim_block *b)
{
	return um_sim_active(&sim, b) == b;
}

/* Evicts the chunk of `v` to the host and detaches it. */
static void evict(struct um_sim *sim, struct um_sim_block *v, uint64_t *t, uint64_t *ready)
{
	uint32_t place = v->gpu | v->disc, moved = v->gpu & ~v->cpu & ~v->disc, remote;

	*t += v->list == UM_SIM_UNUSED ? sim->profile.c_evict_unused : sim->profile.c_evict;
	um_sim_log_block(sim, *t, "evict", v, (uint64_t)um_sim_count(v->gpu) * UM_SIM_PAGE);
	sim->tally.evictions++;
	um_sim_ledger_evicted(sim, v->mem);
	if (place && is_active(sim, v)) /* of a duplicate, the host has the content */
		host_chunk(sim, v, v->disc || (v->gpu | v->cpu) != v->all, t);
	copy(sim, v, UM_SIM_D2H, moved, UM_SIM_EVICTION, NULL, t);
	*ready = v->tracker;
	remote = v->gpu & v->accessed_by & ~v->read_mostly & ~v->pref_gpu;
	v->cpu |= place;
	v->chunk = 0;
	v->evicted = v->map;
	v->evicted_at = *t;
	um_sim_list_put(sim, v, UM_SIM_NONE);
	um_sim_gpu_set(sim, v, 0);
	if (remote) { /* a deferred work item maps them after the copy */
		v->remote |= remote;
		v->remote_at = um_sim_later(*t, v->tracker);
		um_sim_log_block(sim, v->remote_at, "remote-map", v, (uint64_t)um_sim_count(remote) * UM_SIM_PAGE);
		um_sim_block_changed(v);
	}
}

/* A chunk from an eviction is not clean, and may not be written before its old content has been copied. */
int um_sim_chunk_take(struct um_sim *sim, uint64_t *t, uint64_t *ready, int *clean)
{
	*ready = 0;
	*clean = sim->chunks_free > 0;
	if (sim->chunks_free) {
		sim->chunks_free--;
		return UM_CUDA_OK;
	}
	for (int list = UM_SIM_UNUSED; list <= UM_SIM_USED; list++)
		if (sim->list[list].head) {
			evict(sim, sim->list[list].head, t, ready);
			return UM_CUDA_OK;
		}
	return UM_CUDA_NO_MEMORY;
}

/* A block keeps its chunk when its pages leave: then no room is needed to return. */
static int chunk_attach(struct um_sim *sim, struct um_sim_block *b, uint64_t *t)
{
	uint64_t ready;
	int clean, err;

	if (b->chunk)
		return UM_CUDA_OK;
	err = um_sim_chunk_take(sim, t, &ready, &clean);
	if (err)
		return err;
	b->chunk = 1;
	b->clean = (uint8_t)clean;
	b->whole_once = 0;
	b->tracker = um_sim_later(b->tracker, ready);
	um_sim_list_put(sim, b, UM_SIM_USED);
	return UM_CUDA_OK;
}

void um_sim_block_drop(struct um_sim *sim, struct um_sim_block *b)
{
	um_sim_thrash_free(sim, b);
	um_sim_list_put(sim, b, UM_SIM_NONE);
	um_sim_gpu_set(sim, b, 0);
	sim->chunks_free += b->chunk;
	b->chunk = 0;
	if (b->cpu_chunk)
		sim->tally.host_bytes -= UM_BLOCK_BYTES;
	b->cpu_chunk = 0;
}

/* Zeroes new pages, once per chunk, unless the chunk was clean or once full. */
static void zero(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, uint64_t t)
{
	if (!pages || b->clean || b->whole_once || b->gpu)
		return;
	pages = b->all & ~(b->cpu & ~b->disc);
	b->tracker = um_sim_engine_book(sim, UM_SIM_MEMSET, um_sim_later(t, b->tracker),
					sim->profile.c_zero * um_sim_count(pages) / UM_SIM_PAGES);
	sim->tally.zeroed_bytes += (uint64_t)um_sim_count(pages) * UM_SIM_PAGE;
}

/* Makes pages resident; the caller maps them. Discarded pages arrive without their content. */
int um_sim_to_gpu(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, enum um_sim_cause cause,
		  const struct um_sim_faulted *f, uint64_t *t)
{
	uint32_t mig = pages & ~b->gpu, moved = mig & b->cpu & ~b->disc, unmap = mig & b->cmap & ~b->cro;
	int err;

	if (!mig)
		return UM_CUDA_OK;
	err = chunk_attach(sim, b, t);
	if (err)
		return err;
	if (unmap) { /* read-mostly pages keep their CPU mapping, read-only; no cost if they have it already */
		*t += sim->profile.c_unmap;
		um_sim_cpu_unmap(sim, b, unmap & ~b->read_mostly);
		b->cro |= unmap & b->read_mostly;
	}
	zero(sim, b, mig & ~moved, *t);
	copy(sim, b, UM_SIM_H2D, moved, cause, f, t);
	if (moved & b->read_mostly)
		um_sim_log_block(sim, *t, "read-duplicate", b,
				 (uint64_t)um_sim_count(moved & b->read_mostly) * UM_SIM_PAGE);
	b->cpu &= ~(mig & ~b->read_mostly); /* a duplicate, also of discarded content, which was not copied */
	um_sim_cpu_unmap(sim, b, ~b->cpu);
	b->remote &= ~mig;
	um_sim_gpu_set(sim, b, b->gpu | mig);
	if (cause == UM_SIM_USER)
		attribute(sim, b, b->prefetched | mig);
	return UM_CUDA_OK;
}

/* Makes pages resident on the host. A chunk without pages becomes the first victim. */
void um_sim_to_cpu(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, enum um_sim_cause cause,
		   const struct um_sim_faulted *f, uint64_t *t)
{
	uint32_t come = pages & ~b->cpu, moved = come & b->gpu & ~b->disc, gone = pages & b->gpu & ~b->read_mostly;
	uint32_t remote = come & b->accessed_by & ~b->read_mostly & ~b->pref_gpu, had = b->gpu;

	if (come)
		host_chunk(sim, b, (come & ~moved) != 0, t);
	copy(sim, b, UM_SIM_D2H, moved, cause, f, t);
	b->rw &= ~pages; /* the rest is a duplicate: read-only */
	um_sim_gpu_set(sim, b, b->gpu & ~gone);
	b->cpu |= come;
	if (remote) {
		b->remote |= remote & ~b->gpu;
		b->remote_at = um_sim_later(*t, b->tracker);
	}
	um_sim_emptied(sim, b, had);
	um_sim_block_changed(b);
}
