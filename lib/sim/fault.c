/* SPDX-License-Identifier: Apache-2.0
 *
 * fault.c - one visit of the fault handler to one block
 *
 * Faults are extended to whole 64 KiB pages and, by the density of the block's binary tree, to more pages. Fault
 * entries: one for a page that becomes usable with its first fault; UM_SIM_SUBPAGES if each 4 KiB page must fault for
 * itself (writes to read-mostly or discarded pages, remote mapping of pages that the CPU has mapped).
 */
#include "sim/state.h"

#define DENSITY 51u /* percent: uvm_perf_prefetch_threshold */

/* 4 KiB pages of `pages`; the highest page of `all` has `last` of them. */
static unsigned weight(uint32_t pages, uint32_t all, unsigned last)
{
	uint32_t top = UINT32_MAX << (31 - __builtin_clz(all));

	return um_sim_count(pages & ~top) * UM_SIM_SUBPAGES + um_sim_count(pages & top) * last;
}

uint32_t um_sim_density(uint32_t all, uint32_t resident, uint32_t faulted, unsigned last)
{
	unsigned first = (unsigned)__builtin_ctz(all); /* the tree begins here */
	uint32_t set = resident | faulted, region = 0;

	for (uint32_t rest = faulted; rest; rest &= rest - 1) {
		unsigned page = (unsigned)__builtin_ctz(rest) - first;
		uint32_t best = rest & -rest;

		/* the largest node that is dense enough, even if a smaller one above the page is not */
		for (unsigned size = 2; size <= UM_SIM_PAGES; size *= 2) {
			uint32_t tree = size == 32 ? UINT32_MAX : ((1u << size) - 1) << (page / size * size);
			uint32_t node = tree << first & all;

			if (weight(set & node, all, last) * 100 > weight(node, all, last) * DENSITY)
				best = node;
		}
		region |= best;
	}
	return region;
}

uint32_t um_sim_piece(const struct um_sim_block *b, uint32_t pages)
{
	uint32_t low = pages & -pages, begin = b->cuts & (low | (low - 1)), end = b->cuts & ~(low | (low - 1));
	uint32_t from = begin ? UINT32_MAX << (31 - __builtin_clz(begin)) : UINT32_MAX;

	return b->all & from & (end ? (end & -end) - 1 : UINT32_MAX);
}

/* Pages of the piece of `faulted` that the density prefetcher adds to it, given those resident at the destination. The
 * driver's tree counts 4 KiB pages; a thrashing page counts, but adds none. */
static uint32_t dense(const struct um_sim_block *b, uint32_t resident, uint32_t faulted)
{
	uint32_t piece = um_sim_piece(b, faulted), hot = um_sim_thrash_pages(b);
	uint64_t top =
		(uint64_t)(b - b->mem->block) * UM_BLOCK_BYTES + (31 - (unsigned)__builtin_clz(piece)) * UM_SIM_PAGE;
	uint64_t left = b->mem->bytes - top;
	unsigned last = left < UM_SIM_PAGE ? (unsigned)((left + 4095) / 4096) : UM_SIM_SUBPAGES;

	return um_sim_density(piece, (resident | faulted) & piece, faulted & ~hot, last) & ~hot;
}

/* Pages whose fault leaves them on the host, or moves them there: they are then mapped remotely. */
uint32_t um_sim_stay_away(const struct um_sim_block *b, uint32_t pages)
{
	uint32_t remote = um_sim_thrash_pinned(b) | (~b->gpu & b->pref_cpu) | (~b->gpu & b->cpu & b->accessed_by);

	return pages & ~b->read_mostly & ~b->pref_gpu & remote;
}

uint32_t um_sim_need(const struct um_sim_block *b, uint32_t want, uint32_t write, uint64_t t)
{
	uint32_t remote = t >= b->remote_at ? b->remote : 0;

	return (want & ~(b->map | remote)) | (want & write & ~(b->rw | remote));
}

uint32_t um_sim_visit_pages(const struct um_sim_block *b, uint32_t need, uint32_t write, unsigned k, unsigned room,
			    unsigned *entries, uint32_t *each)
{
	uint32_t take = 0;
	unsigned n = 0;

	*each = (write & (b->disc | b->read_mostly)) | (um_sim_stay_away(b, need) & b->cmap);
	for (; need && k; need &= need - 1, k--) {
		uint32_t page = need & -need;
		unsigned more = page & *each ? UM_SIM_SUBPAGES : 1;

		if (n + more > room)
			break;
		n += more;
		take |= page;
	}
	*entries = n;
	return take;
}

/* Up to driver 580 the density rule also brings pages away from their preferred location. */
int um_sim_adds_away(const struct um_sim *sim)
{
	return sim->profile.driver < 590;
}

uint32_t um_sim_grow_gpu(const struct um_sim *sim, const struct um_sim_block *b, uint32_t faulted)
{
	uint32_t piece = um_sim_piece(b, faulted);

	if (!((b->gpu | b->cpu) & piece) && faulted & b->pref_gpu)
		return faulted | (piece & ~um_sim_thrash_pages(b));
	if (faulted & b->pref_cpu && !um_sim_adds_away(sim))
		return faulted;
	return faulted | dense(b, b->gpu, faulted);
}

uint32_t um_sim_grow_cpu(const struct um_sim *sim, const struct um_sim_block *b, uint32_t faulted)
{
	uint32_t piece = um_sim_piece(b, faulted), had = b->cpu & b->cmap;

	if (!((b->gpu | b->cpu) & piece) && faulted & b->pref_cpu)
		return faulted | (piece & ~um_sim_thrash_pages(b));
	if (faulted & b->pref_gpu && !um_sim_adds_away(sim))
		return faulted;
	return faulted | (dense(b, b->cpu, faulted) & ~had); /* mapped pages are not mapped again */
}

/* Maps resident pages as the driver does for a fault on `local`, of which `write` is written. */
static void map_local(struct um_sim *sim, struct um_sim_block *b, uint32_t region, uint32_t write, int attached,
		      uint64_t t)
{
	uint32_t dup = region & b->read_mostly, fresh = region & ~b->map, gone = write & dup & b->cpu;

	um_sim_map(b, region);
	b->rw |= region & ~dup & ~b->disc;
	/* the read-duplicate path removes write permission from all pages it visits, also from pages written just
	 * before */
	b->rw &= ~dup;
	if (gone)
		um_sim_log_block(sim, t, "read-duplicate-invalidate", b, (uint64_t)um_sim_count(gone) * UM_SIM_PAGE);
	b->cpu &= ~(write & dup);
	um_sim_alone(sim, b, write & dup);
	um_sim_cpu_unmap(sim, b, ~b->cpu);
	b->rw |= write;
	um_sim_used(sim, b);
	/* mapping comes after the list update, clearing the discard after mapping */
	if (attached && !b->cuts && b->disc & (fresh | write))
		um_sim_list_put(sim, b, UM_SIM_DISCARDED);
	b->disc &= ~write;
	um_sim_block_changed(b);
}

static int serve_local(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t local,
		       uint32_t write, uint64_t *t)
{
	uint32_t region = um_sim_grow_gpu(sim, b, local), come = region & ~b->gpu;
	int attached = b->chunk, err;

	*t += come ? sim->profile.c_blk : sim->profile.c_perm;
	um_sim_log_block(sim, *t, "visit", b, (uint64_t)um_sim_count(come) * UM_SIM_PAGE);
	err = um_sim_to_gpu(sim, b, come, UM_SIM_COHERENCE, f, t);
	if (err)
		return err;
	map_local(sim, b, region, write, attached, *t);
	return UM_CUDA_OK;
}

static void serve_remote(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t remote,
			 uint64_t *t)
{
	uint32_t region = um_sim_grow_cpu(sim, b, remote);

	*t += sim->profile.c_perm;
	um_sim_to_cpu(sim, b, region, UM_SIM_COHERENCE, f, t);
	b->disc &= ~region;
	b->remote |= region;
	b->remote_at = 0;
	b->cmap |= um_sim_thrash_users(b, remote, 0); /* of a pinned page all who fought for it are mapped */
	um_sim_log_block(sim, *t, "remote-map", b, (uint64_t)um_sim_count(region) * UM_SIM_PAGE);
	um_sim_block_changed(b);
}

/* One visit for each piece of the block. */
int um_sim_visit(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t write,
		 uint64_t *t)
{
	int err = UM_CUDA_OK;

	um_sim_own(sim, b, t);
	for (uint32_t rest = f->pages, piece; rest && !err; rest &= ~piece) {
		uint32_t remote, local;

		piece = um_sim_piece(b, rest);
		remote = um_sim_stay_away(b, rest & piece);
		local = rest & piece & ~remote;
		sim->tally.visits++;
		if (remote)
			serve_remote(sim, b, f, remote, t);
		if (local)
			err = serve_local(sim, b, f, local, write & local, t);
	}
	return err;
}
