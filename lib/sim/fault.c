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

uint32_t um_sim_density(uint32_t all, uint32_t resident, uint32_t faulted)
{
	uint32_t set = resident | faulted, region = 0;

	for (uint32_t rest = faulted; rest; rest &= rest - 1) {
		unsigned page = (unsigned)__builtin_ctz(rest);
		uint32_t best = 1u << page;

		/* the largest node that is dense enough, even if a smaller one above the page is not */
		for (unsigned size = 2; size <= UM_SIM_PAGES; size *= 2) {
			uint32_t node = (size == 32 ? UINT32_MAX : ((1u << size) - 1) << (page / size * size)) & all;

			if (um_sim_count(set & node) * 100 > um_sim_count(node) * DENSITY)
				best = node;
		}
		region |= best;
	}
	return region;
}

uint32_t um_sim_same_advice(const struct um_sim_block *b, uint32_t pages)
{
	const uint32_t policy[] = {b->read_mostly, b->accessed_by, b->pref_gpu, b->pref_cpu};
	uint32_t low = pages & -pages, same = b->all;

	for (unsigned i = 0; i < 4; i++)
		same &= policy[i] & low ? policy[i] : ~policy[i];
	return same;
}

/* Pages whose fault leaves them on the host, or moves them there: they are then mapped remotely. */
static uint32_t stay_away(const struct um_sim_block *b, uint32_t pages)
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

	*each = (write & (b->disc | b->read_mostly)) | (stay_away(b, need) & b->cmap);
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

/* Pages that a fault on `local` migrates to the GPU, by the density prefetcher. */
static uint32_t grow(const struct um_sim_block *b, uint32_t local)
{
	uint32_t alike = um_sim_same_advice(b, local), region;

	if (!(b->gpu | b->cpu) && (local & b->pref_gpu))
		return local | (b->all & b->pref_gpu & alike);
	if (local & b->pref_cpu)
		return local;
	region = um_sim_density(b->all, b->gpu, local);
	return local | (region & alike & ~um_sim_thrash_pages(b));
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
	um_sim_cpu_unmap(sim, b, ~b->cpu);
	b->rw |= write;
	um_sim_used(sim, b);
	/* mapping comes after the list update, clearing the discard after mapping */
	if (attached && !b->split && b->disc & (fresh | write))
		um_sim_list_put(sim, b, UM_SIM_DISCARDED);
	b->disc &= ~write;
	um_sim_block_changed(b);
}

static int serve_local(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t local,
		       uint32_t write, uint64_t *t)
{
	uint32_t region = grow(b, local), come = region & ~b->gpu, moved = come & b->cpu & ~b->read_mostly;
	int attached = b->chunk, err;

	*t += come ? sim->profile.c_blk : sim->profile.c_perm;
	um_sim_log_block(sim, *t, "visit", b, (uint64_t)um_sim_count(come) * UM_SIM_PAGE);
	err = um_sim_to_gpu(sim, b, come, UM_SIM_COHERENCE, f, t);
	if (err)
		return err;
	map_local(sim, b, region, write, attached, *t);
	if (moved)
		um_sim_thrash_moved(sim, b, moved, 1, *t);
	return UM_CUDA_OK;
}

static void serve_remote(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t remote,
			 uint64_t *t)
{
	uint32_t region = remote, alike = um_sim_same_advice(b, remote);

	*t += sim->profile.c_perm;
	if (!(b->gpu | b->cpu) && (remote & b->pref_cpu))
		region |= b->all & b->pref_cpu & alike;
	else /* pages that the CPU has mapped are not merged */
		region |= um_sim_density(b->all, b->cpu, remote) & alike & b->cpu & ~b->cmap & stay_away(b, b->all);
	um_sim_to_cpu(sim, b, region, UM_SIM_COHERENCE, f, t);
	b->disc &= ~region;
	b->remote |= region;
	b->remote_at = 0;
	um_sim_log_block(sim, *t, "remote-map", b, (uint64_t)um_sim_count(region) * UM_SIM_PAGE);
	um_sim_block_changed(b);
}

int um_sim_visit(struct um_sim *sim, struct um_sim_block *b, const struct um_sim_faulted *f, uint32_t write,
		 uint64_t *t)
{
	uint32_t remote = stay_away(b, f->pages), local = f->pages & ~remote;
	int err = UM_CUDA_OK;

	sim->tally.visits++;
	if (remote)
		serve_remote(sim, b, f, remote, t);
	if (local)
		err = serve_local(sim, b, f, local, write & local, t);
	return err;
}
