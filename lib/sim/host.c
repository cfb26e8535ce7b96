/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c - accesses of the program's CPU code to managed memory
 *
 * The CPU faults on pages that are not mapped, one page after the other, in ascending order; a fault also migrates the
 * pages of the density prefetcher, and waits for the copy. The driver maps discarded pages read-only, so a write to one
 * faults even if it is mapped, once for each 4 KiB, and ends the discard of that page only.
 */
#include "sim/state.h"

void um_sim_cpu_touch(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, uint64_t from, int write, uint64_t *t)
{
	uint32_t need;

	b = um_sim_active(&sim, b);
	um_sim_thrash_expire(sim, *t);
	if (!b->gpu) /* its copy to the host may be in progress */
		*t = um_sim_later(*t, b->tracker);
	while ((need = pages & ~(b->cmap & ~(write ? b->gpu | b->cro | b->disc : 0)))) {
		uint32_t page = need & -need, disc = write ? page & b->disc : 0, region, faults;
		uint64_t throttle = 0;
		struct um_sim_faulted f;

		if (um_sim_thrash_throttled(sim, b, page, 0, *t, &throttle)) {
			*t = throttle;
			continue;
		}
		*t = um_sim_later(*t, sim->writer_until) + sim->profile.c_cpuf;
		faults = disc || (page & b->pref_gpu & b->gpu && !um_sim_adds_away(sim)) ? UM_SIM_SUBPAGES : 1;
		sim->tally.cpu_faults += faults;
		um_sim_ledger_cpu_fault(sim, b->mem, faults);
		um_sim_watch_cpu_faults(sim, b, page, from, faults, *t - sim->profile.c_cpuf);
		*t += disc ? (faults - 1) * sim->profile.c_cpuf : 0;
		region = um_sim_grow_cpu(sim, b, page);
		um_sim_log_block(sim, *t, "cpu-fault", b, um_sim_count(region));
		f = (struct um_sim_faulted){page, faults > 1 ? page : 0};
		um_sim_to_cpu(sim, b, region, UM_SIM_COHERENCE, &f, t);
		*t = um_sim_later(*t, b->tracker);
		b->cmap |= region;
		b->remote |= um_sim_thrash_users(b, page, 1) & ~b->pref_gpu & ~b->gpu;
		if (write) { /* a written page has one copy */
			uint32_t had = b->gpu;

			um_sim_alone(sim, b, page);
			um_sim_gpu_set(sim, b, b->gpu & ~page);
			b->cro &= ~page;
			b->disc &= ~page;
			um_sim_emptied(sim, b, had);
		}
		sim->readers_until = um_sim_later(sim->readers_until, *t);
	}
}

int um_sim_host_touch(struct um_gpu *gpu, void *ptr, uint64_t bytes, uint32_t access)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t addr = (uint64_t)(uintptr_t)ptr, off, t;
	struct um_sim_mem *m;

	if (!bytes)
		return UM_CUDA_OK;
	um_sim_enter(sim);
	m = um_sim_mem_find(sim, addr);
	if (!m || m->kind != UM_SIM_MANAGED || bytes > m->bytes - (addr - m->addr))
		return um_sim_leave(sim, UM_CUDA_INVALID_VALUE);
	off = addr - m->addr;
	t = *um_sim_clock(sim);
	for (uint32_t i = (uint32_t)(off / UM_BLOCK_BYTES);
	     i <= (off + bytes - 1) / UM_BLOCK_BYTES && !sim->opt.in_core; i++)
		um_sim_cpu_touch(sim, &m->block[i], um_sim_pages_out(m, i, off, bytes), off, (access & UM_WRITE) != 0,
				 &t);
	*um_sim_clock(sim) = t;
	return um_sim_leave(sim, UM_CUDA_OK);
}
