/* SPDX-License-Identifier: Apache-2.0
 *
 * hint.c - prefetch and discard on the simulated GPU
 *
 * On an idle stream the calling thread does the work; on a busy one the call only enqueues it, and one worker thread of
 * the driver does the work when the stream reaches it.
 *
 * A prefetch of several blocks makes two passes, as the driver does: the first migrates, the second migrates again
 * blocks that were evicted meanwhile (by the first pass itself if the range exceeds the memory), and maps.
 */
#include "sim/check.h"
#include "sim/state.h"

#include <assert.h>

/* Maps for a prefetch: pages that no processor has mapped become writable, including duplicates. */
static void prefetch_map(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	uint32_t fresh = pages & b->gpu & ~b->map;

	um_sim_map(b, pages);
	b->rw |= fresh & ~(b->read_mostly & (b->cmap | um_sim_elsewhere(sim, b)));
	b->disc &= ~pages;
	um_sim_block_changed(b);
	um_sim_used(sim, b);
}

/* One range to the GPU. Stops when memory runs out. */
static int to_gpu(struct um_sim *sim, struct um_sim_mem *m, const struct um_sim_range *r, uint64_t *t, uint64_t *end)
{
	uint64_t off = r->addr - m->addr;
	uint32_t first = (uint32_t)(off / UM_BLOCK_BYTES), last = (uint32_t)((off + r->bytes - 1) / UM_BLOCK_BYTES);

	for (int pass = 1; pass <= (last > first ? 2 : 1); pass++)
		for (uint32_t i = first; i <= last; i++) {
			struct um_sim_block *b = &m->block[i];
			uint32_t pages = um_sim_pages_out(m, i, off, r->bytes), missing = pages & ~b->gpu;
			int err;

			if (missing)
				*t += sim->profile.c_pf;
			else if (pass == 1)
				*t += sim->profile.c_pf_res;
			if (missing)
				um_sim_own(sim, b, t);
			err = um_sim_to_gpu(sim, b, missing, UM_SIM_USER, NULL, t);
			if (err)
				return err;
			prefetch_map(sim, b, pages);
			*end = um_sim_later(*end, b->tracker);
		}
	return UM_CUDA_OK;
}

/* One range to the host: the thread waits for each copy, then maps. */
static void to_cpu(struct um_sim *sim, struct um_sim_mem *m, const struct um_sim_range *r, uint64_t *t)
{
	uint64_t begin = *t, off = r->addr - m->addr;
	uint32_t first = (uint32_t)(off / UM_BLOCK_BYTES), last = (uint32_t)((off + r->bytes - 1) / UM_BLOCK_BYTES);

	for (uint32_t i = first; i <= last; i++) {
		struct um_sim *of = sim;
		struct um_sim_block *b = um_sim_active(&of, &m->block[i]);
		uint32_t pages = um_sim_pages_out(m, i, off, r->bytes);

		*t += pages & ~b->cpu ? sim->profile.c_pf : sim->profile.c_pf_res;
		um_sim_to_cpu(of, b, pages, UM_SIM_USER, NULL, t);
		b->disc &= ~pages;
	}
	for (uint32_t i = first; i <= last; i++) {
		struct um_sim *of = sim;
		struct um_sim_block *b = um_sim_active(&of, &m->block[i]);
		uint32_t pages = um_sim_pages_out(m, i, off, r->bytes);

		if (pages & ~b->cmap) {
			*t = um_sim_later(*t, b->tracker) + sim->profile.c_pf_cpu;
			b->cmap |= pages;
		}
	}
	sim->host_from = begin <= sim->host_until ? sim->host_from : begin;
	sim->host_until = um_sim_later(sim->host_until, *t);
}

/* The pages that a discard of `pages` changes: newly discarded ones, and those whose kind of discard changes. Without
 * unmapping, the driver looks for the latter in the whole block. */
static uint32_t discard_changes(const struct um_sim_block *b, uint32_t pages, int unmap)
{
	uint32_t mapped = b->map | b->remote | b->cmap;

	return unmap ? pages & (~b->disc | mapped) : (pages & ~b->disc) | (b->disc & ~mapped);
}

/* Duplicates collapse: the preferred location's copy stays, otherwise the host's. */
static void collapse(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	uint32_t twice = pages & b->gpu & b->cpu, stay = twice & b->pref_gpu, had = b->gpu;

	b->cpu &= ~stay;
	um_sim_cpu_unmap(sim, b, ~b->cpu);
	um_sim_gpu_set(sim, b, b->gpu & ~(twice & ~stay));
	um_sim_emptied(sim, b, had);
	if (stay)
		um_sim_used(sim, b);
}

/* With `unmap`, the pages are dropped everywhere; without, they stay and need no copy. */
static void discard_block(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int unmap, uint64_t *t)
{
	pages = discard_changes(b, pages, unmap);
	if (!pages) { /* the block keeps its place in the list */
		*t += sim->profile.c_disc;
		return;
	}
	b->disc |= pages;
	collapse(sim, b, pages);
	b->cpu &= unmap ? ~pages : UINT32_MAX;
	um_sim_cpu_unmap(sim, b, ~b->cpu);
	b->remote &= b->cpu;
	if (unmap) {
		/* Waits for work queued for the block, and for the unmapping. */
		*t = um_sim_later(*t, b->tracker) + sim->profile.c_disc_u;
		um_sim_gpu_set(sim, b, b->gpu & ~pages);
	} else {
		*t += sim->profile.c_disc;
	}
	if (b->chunk && !b->cuts && b->disc == b->all)
		um_sim_list_put(sim, b, b->gpu || b->cpu ? UM_SIM_DISCARDED : UM_SIM_UNUSED);
	um_sim_block_changed(b);
}

static void discard(struct um_sim *sim, struct um_sim_mem *m, const struct um_sim_range *r, int unmap, uint64_t *t)
{
	uint64_t off = r->addr - m->addr;
	uint32_t first = (uint32_t)(off / UM_BLOCK_BYTES), last = (uint32_t)((off + r->bytes - 1) / UM_BLOCK_BYTES);

	for (uint32_t i = first; i <= last; i++) {
		struct um_sim *of = sim;
		struct um_sim_block *b = um_sim_active(&of, &m->block[i]);
		uint32_t pages = um_sim_pages_in(m, i, off, r->bytes);

		if (pages && (b->chunk || b->cpu_chunk)) {
			um_sim_alone(of, b, pages);
			discard_block(of, b, pages, unmap, t);
		}
	}
	if (sim->opt.backed && sim->opt.poison) {
		memset((void *)(uintptr_t)r->addr, 0xdb, r->bytes);
		um_sim_check_wrote(m, r->addr, r->bytes);
		sim->node->follow_ran = 1;
	}
}

static int prefetch_range(struct um_sim *sim, const struct um_sim_range *r, uint64_t *t, uint64_t *end)
{
	struct um_sim *to = sim->node->sim[r->device];

	return to_gpu(to, um_sim_mem_find(to, r->addr), r, t, end);
}

/* Ranges one after the other. Ranges freed meanwhile are skipped. */
int um_sim_hint_run(struct um_sim *sim, const struct um_sim_hint *h, uint64_t t, uint64_t *cpu, uint64_t *end)
{
	int err = UM_CUDA_OK;

	*end = t;
	for (size_t i = 0; i < h->n && !err && !sim->opt.in_core; i++) {
		const struct um_sim_range *r = &h->range[i];
		struct um_sim_mem *m = um_sim_mem_find(sim, r->addr);

		if (!m)
			continue;
		if (sim->opt.log)
			um_sim_log(sim, t, "%s m%u+%llu %llu",
				   h->kind == UM_SIM_DISCARD ? "discard"
				   : r->to_cpu		     ? "prefetch-cpu"
				   : h->kind == UM_SIM_RENEW ? "renew"
							     : "prefetch",
				   m->serial, (unsigned long long)(r->addr - m->addr), (unsigned long long)r->bytes);
		if (h->kind & UM_SIM_DISCARD)
			discard(sim, m, r, h->kind == UM_SIM_DISCARD, &t);
		if (!(h->kind & UM_SIM_PREFETCH))
			continue;
		if (r->to_cpu)
			to_cpu(sim, m, r, &t);
		else
			err = prefetch_range(sim, r, &t, end);
	}
	sim->readers_until = um_sim_later(sim->readers_until, t);
	*cpu = t;
	*end = um_sim_later(*end, t);
	if (err)
		um_sim_log(sim, t, "no-memory");
	return err;
}

void um_sim_hint_free(struct um_sim_hint *h)
{
	if (h)
		free(h->range);
	free(h);
}

/* Enqueues the work for the driver's worker. */
static int defer(struct um_sim *sim, struct um_sim_stream *s, const struct um_sim_hint *h)
{
	struct um_sim_hint *later = malloc(sizeof *later);
	int err;

	if (!later)
		return UM_CUDA_NO_MEMORY;
	*later = *h;
	later->range = malloc(h->n * sizeof *h->range);
	if (!later->range) {
		free(later);
		return UM_CUDA_NO_MEMORY;
	}
	memcpy(later->range, h->range, h->n * sizeof *h->range);
	err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_HINT, .hint = later});
	if (err)
		um_sim_hint_free(later);
	return err;
}

/* Are the ranges managed memory, and discarded ones whole 4 KiB pages? */
static int check(struct um_sim *sim, const struct um_sim_hint *h)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct um_sim_range *r = &h->range[i];
		struct um_sim_mem *m = um_sim_mem_find(sim, r->addr);

		if (!m || m->kind != UM_SIM_MANAGED || !r->bytes || r->bytes > m->bytes - (r->addr - m->addr))
			return UM_CUDA_INVALID_VALUE;
		if (h->kind & UM_SIM_DISCARD && (r->addr % 4096 || r->bytes % 4096))
			return UM_CUDA_INVALID_VALUE;
	}
	return UM_CUDA_OK;
}

/* Runs now, on the caller's time, or later: this depends on the stream only, as in the real runtime. */
static int issue(struct um_sim *sim, um_stream stream, const struct um_sim_hint *h, const char *call)
{
	struct um_sim_stream *s;
	uint64_t *clock, begin, cpu, end;
	int err, busy;

	um_sim_enter_call(sim, call);
	clock = um_sim_clock(sim);
	begin = *clock;
	s = um_sim_stream_of(sim, stream);
	err = s ? check(sim, h) : UM_CUDA_INVALID_HANDLE;
	if (!err) {
		um_sim_settle(sim, s, *clock);
		busy = sim->opt.hazards.defer || um_sim_busy(sim, s, *clock);
		*clock += sim->profile.c_api;
		if (busy) {
			err = defer(sim, s, h);
		} else {
			err = um_sim_hint_run(sim, h, um_sim_later(*clock, sim->writer_until), &cpu, &end);
			*clock = cpu;
			s->ready = end;
			s->hinted = 1;
		}
	}
	for (size_t i = 0; i < h->n && !err && h->kind & UM_SIM_PREFETCH; i++)
		um_sim_record_prefetch(sim, &h->range[i]);
	um_sim_watch_call(sim, call, begin);
	(*(err ? &sim->tally.refused : &sim->tally.hints))++;
	return um_sim_leave(sim, err);
}

static int location(struct um_sim *sim, struct um_location to, struct um_sim_range *r)
{
	if (to.type == UM_LOC_DEVICE && !um_sim_beside(sim, to.id))
		return UM_CUDA_INVALID_DEVICE;
	if (to.type != UM_LOC_DEVICE && to.type != UM_LOC_HOST && to.type != UM_LOC_HOST_NUMA)
		return UM_CUDA_INVALID_VALUE;
	r->to_cpu = to.type != UM_LOC_DEVICE;
	r->device = r->to_cpu ? 0 : (unsigned)to.id;
	return UM_CUDA_OK;
}

/* Refused before any range was checked. */
static int refuse(struct um_sim *sim, int err)
{
	um_sim_enter(sim);
	sim->tally.refused++;
	return um_sim_leave(sim, err);
}

int um_sim_prefetch(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
		    um_stream stream)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_range r = {(uint64_t)(uintptr_t)ptr, bytes, 0, 0};
	int err = flags ? UM_CUDA_INVALID_VALUE : location(sim, to, &r);

	if (err)
		return refuse(sim, err);
	return issue(sim, stream, &(struct um_sim_hint){UM_SIM_PREFETCH, 1, &r}, "cudaMemPrefetchAsync_v8000");
}

/* The common part of the three batch calls. The stream must not be the default one. */
static int batch(struct um_sim *sim, enum um_sim_hint_kind kind, void **ptrs, size_t *sizes, size_t count,
		 struct um_location *locs, size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	static const char *const calls[] = {[UM_SIM_PREFETCH] = "cudaMemPrefetchBatchAsync_v13000",
					    [UM_SIM_DISCARD] = "cudaMemDiscardBatchAsync_v13000",
					    [UM_SIM_RENEW] = "cudaMemDiscardAndPrefetchBatchAsync_v13000"};
	struct um_sim_range *range;
	size_t at = 0;
	int err = UM_CUDA_OK;

	if (!stream || !ptrs || !sizes || !count || flags)
		return refuse(sim, UM_CUDA_INVALID_VALUE);
	if (kind & UM_SIM_PREFETCH && (!locs || !loc_idxs || !n_locs || n_locs > count || loc_idxs[0]))
		return refuse(sim, UM_CUDA_INVALID_VALUE);
	range = malloc(count * sizeof *range);
	if (!range)
		return refuse(sim, UM_CUDA_NO_MEMORY);
	for (size_t i = 0; i < count && !err; i++) {
		range[i] = (struct um_sim_range){(uint64_t)(uintptr_t)ptrs[i], sizes[i], 0, 0};
		if (!(kind & UM_SIM_PREFETCH))
			continue;
		if (at + 1 < n_locs && loc_idxs[at + 1] == i)
			at++;
		if (at + 1 < n_locs && loc_idxs[at + 1] <= i)
			err = UM_CUDA_INVALID_VALUE; /* not ascending */
		else
			err = location(sim, locs[at], &range[i]);
	}
	if (!err && n_locs && at + 1 < n_locs)
		err = UM_CUDA_INVALID_VALUE; /* beyond count */
	err = err ? refuse(sim, err) : issue(sim, stream, &(struct um_sim_hint){kind, count, range}, calls[kind]);
	free(range);
	return err;
}

int um_sim_prefetch_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
			  size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	return batch(um_sim_of(gpu), UM_SIM_PREFETCH, ptrs, sizes, count, locs, loc_idxs, n_locs, flags, stream);
}

int um_sim_discard_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, unsigned long long flags,
			 um_stream stream)
{
	return batch(um_sim_of(gpu), UM_SIM_DISCARD, ptrs, sizes, count, NULL, NULL, 0, flags, stream);
}

int um_sim_renew_batch(struct um_gpu *gpu, void **ptrs, size_t *sizes, size_t count, struct um_location *locs,
		       size_t *loc_idxs, size_t n_locs, unsigned long long flags, um_stream stream)
{
	return batch(um_sim_of(gpu), UM_SIM_RENEW, ptrs, sizes, count, locs, loc_idxs, n_locs, flags, stream);
}
