/* SPDX-License-Identifier: Apache-2.0
 *
 * advise.c - cudaMemAdvise on the simulated GPU
 *
 * Advice acts when it is called, not in stream order, and holds the VA-space lock for writing: it waits for prefetches,
 * discards and fault service in progress, and later ones wait for it.
 */
#include "sim/state.h"

/* Maps host-resident pages remotely, where advice allows it, from now on. */
static void map_remote(struct um_sim_block *b, uint32_t pages, uint64_t t)
{
	b->remote |= pages & b->cpu & ~b->gpu;
	b->remote_at = t;
}

/* Copies nothing: duplicates are made by later reads. */
static void set_read_mostly(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	b->rw &= ~pages;
	b->remote &= ~pages;
	if (b->gpu & pages & ~b->read_mostly)
		um_sim_used(sim, b);
	b->read_mostly |= pages;
}

/* Duplicates collapse without a copy: the preferred location's copy stays, otherwise the host's. */
static void unset_read_mostly(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	uint32_t twice = pages & b->read_mostly & b->gpu & b->cpu, stay = twice & b->pref_gpu, had = b->gpu;

	b->cpu &= ~stay;
	um_sim_cpu_unmap(sim, b, ~b->cpu);
	b->read_mostly &= ~pages;
	um_sim_gpu_set(sim, b, b->gpu & ~(twice & ~stay));
	um_sim_emptied(sim, b, had);
}

enum place { HOST, HERE, OTHER }; /* the host, this device, another one */

/* One block, on one device. Location matters for preferred location and accessed-by only. */
static void apply_on(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int advice, enum place at, uint64_t t)
{
	int host = at == HOST;

	switch (advice) {
	case UM_ADV_SET_READ_MOSTLY:
		set_read_mostly(sim, b, pages);
		break;
	case UM_ADV_UNSET_READ_MOSTLY:
		unset_read_mostly(sim, b, pages);
		break;
	case UM_ADV_SET_PREFERRED:
		b->pref_cpu = host ? b->pref_cpu | pages : b->pref_cpu & ~pages;
		b->pref_gpu = at == HERE ? b->pref_gpu | pages : b->pref_gpu & ~pages;
		if (at == HERE)
			b->remote &= ~pages; /* the preferred processor drops its remote mappings */
		break;
	case UM_ADV_UNSET_PREFERRED:
		b->pref_cpu &= ~pages;
		b->pref_gpu &= ~pages;
		break;
	case UM_ADV_SET_ACCESSED_BY:
		if (host) { /* the host cannot access device memory here */
			b->accessed_cpu |= pages;
			break;
		}
		if (at == HERE) {
			b->accessed_by |= pages;
			map_remote(b, pages & ~b->read_mostly, t);
		}
		break;
	default:
		*(host ? &b->accessed_cpu : &b->accessed_by) &= at == OTHER ? UINT32_MAX : ~pages;
		break;
	}
	um_sim_block_changed(b);
}

/* One block, on all devices. A device that does not have the block maps nothing of it on the host. */
static void apply(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int advice, int device, uint64_t t)
{
	const struct um_sim_share *share = b->mem->share;
	struct um_sim *of = sim;
	struct um_sim_block *active = um_sim_active(&of, b);

	if (advice == UM_ADV_UNSET_READ_MOSTLY)
		um_sim_alone(of, active, pages);
	for (unsigned d = 0; d < sim->node->n; d++) {
		struct um_sim_block *o = !share ? b : share->twin[d] ? &share->twin[d]->block[b - b->mem->block] : NULL;

		if (o && sim->node->sim[d])
			apply_on(sim->node->sim[d], o, pages, advice,
				 device < 0		 ? HOST
				 : d == (unsigned)device ? HERE
							 : OTHER,
				 t);
	}
}

/* A boundary of advice inside a block splits it permanently, unless both sides have equal advice. */
static void cut(struct um_sim *sim, struct um_sim_block *b, uint64_t t)
{
	const uint32_t policy[] = {b->read_mostly, b->accessed_by, b->accessed_cpu, b->pref_gpu, b->pref_cpu};
	uint32_t cuts = b->cuts;

	for (unsigned i = 0; i < sizeof policy / sizeof *policy; i++)
		cuts |= (policy[i] ^ policy[i] << 1) & b->all & b->all << 1;
	if (cuts != b->cuts)
		um_sim_log_block(sim, t, "split", b, 0);
	b->cuts = cuts;
}

static int range_advise(struct um_sim *sim, struct um_sim_mem *m, uint64_t off, uint64_t bytes, int advice, int device)
{
	uint64_t t = um_sim_later(*um_sim_clock(sim), um_sim_later(sim->readers_until, sim->writer_until));
	uint32_t last = (uint32_t)((off + bytes - 1) / UM_BLOCK_BYTES);
	int accessed_by = advice == UM_ADV_SET_ACCESSED_BY || advice == UM_ADV_UNSET_ACCESSED_BY;

	um_sim_log(sim, t, "advise %d m%u+%llu %llu", advice, m->serial, (unsigned long long)off,
		   (unsigned long long)bytes);
	t += sim->profile.c_api;
	for (uint32_t i = (uint32_t)(off / UM_BLOCK_BYTES); i <= last; i++) {
		struct um_sim *of = sim;
		struct um_sim_block *b = um_sim_active(&of, &m->block[i]);

		if (b->chunk || b->cpu_chunk)
			t += accessed_by ? sim->profile.c_adv_ab : sim->profile.c_adv;
		apply(of, b, um_sim_pages_out(m, i, off, bytes), advice, device, t);
		cut(of, b, t);
	}
	sim->writer_until = t;
	*um_sim_clock(sim) = t;
	return UM_CUDA_OK;
}

int um_sim_advise(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	int located = advice >= UM_ADV_SET_PREFERRED && advice != UM_ADV_UNSET_PREFERRED;
	int host = where.type == UM_LOC_HOST || where.type == UM_LOC_HOST_NUMA, err = UM_CUDA_OK;
	struct um_sim_mem *m;
	uint64_t begin;

	um_sim_enter_call(sim, "cudaMemAdvise");
	begin = *um_sim_clock(sim);
	m = um_sim_mem_find(sim, addr);
	if (!m || m->kind != UM_SIM_MANAGED || !bytes || bytes > m->bytes - (addr - m->addr))
		err = UM_CUDA_INVALID_VALUE;
	else if (advice < UM_ADV_SET_READ_MOSTLY || advice > UM_ADV_UNSET_ACCESSED_BY)
		err = UM_CUDA_INVALID_VALUE;
	else if (located && !host && where.type != UM_LOC_DEVICE)
		err = UM_CUDA_INVALID_VALUE;
	else if (located && !host && !um_sim_beside(sim, where.id))
		err = UM_CUDA_INVALID_DEVICE;
	else if (sim->opt.in_core)
		*um_sim_clock(sim) += sim->profile.c_api;
	else
		err = range_advise(sim, m, addr - m->addr, bytes, advice, host ? -1 : where.id);
	um_sim_watch_call(sim, "cudaMemAdvise_v8000", begin);
	(*(err ? &sim->tally.refused : &sim->tally.hints))++;
	return um_sim_leave(sim, err);
}
