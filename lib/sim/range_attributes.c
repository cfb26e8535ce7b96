/* SPDX-License-Identifier: Apache-2.0
 *
 * range_attributes.c - attributes of a managed range: advice, and last prefetch location
 *
 * As in the real driver, they do not show where pages are.
 */
#include "sim/state.h"

#define ON_CPU (-1)
#define NOT_ALIKE (-2)

/* The common location of all pages: the GPU, the host, or none. */
static int place(uint32_t all, uint32_t gpu, uint32_t cpu)
{
	return !(all & ~gpu) ? 0 : !(all & ~cpu) ? ON_CPU : NOT_ALIKE;
}

static int both(int a, int b)
{
	return a == b ? a : NOT_ALIKE;
}

void um_sim_record_prefetch(struct um_sim *sim, const struct um_sim_range *r)
{
	struct um_sim_mem *m = um_sim_mem_find(sim, r->addr);
	uint64_t off = r->addr - m->addr;

	for (uint32_t i = (uint32_t)(off / UM_BLOCK_BYTES); i <= (off + r->bytes - 1) / UM_BLOCK_BYTES; i++) {
		uint32_t pages = um_sim_pages_out(m, i, off, r->bytes);
		struct um_sim_block *b = &m->block[i];

		*(r->to_cpu ? &b->sent_cpu : &b->sent_gpu) |= pages;
		*(r->to_cpu ? &b->sent_gpu : &b->sent_cpu) &= ~pages;
	}
}

int um_sim_range_attributes(struct um_gpu *gpu, const void *ptr, uint64_t bytes, struct um_sim_range_attributes *out)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t addr = (uint64_t)(uintptr_t)ptr, off;
	const struct um_sim_mem *m;
	uint32_t first;

	um_sim_enter(sim);
	m = um_sim_mem_find(sim, addr);
	if (!m || m->kind != UM_SIM_MANAGED || !bytes || bytes > m->bytes - (addr - m->addr))
		return um_sim_leave(sim, UM_CUDA_INVALID_VALUE);
	off = addr - m->addr;
	first = (uint32_t)(off / UM_BLOCK_BYTES);
	for (uint32_t i = first; i <= (off + bytes - 1) / UM_BLOCK_BYTES; i++) {
		const struct um_sim_block *b = &m->block[i];
		uint32_t pages = um_sim_pages_out(m, i, off, bytes);
		struct um_sim_range_attributes t = {.read_mostly = !(pages & ~b->read_mostly),
						    .preferred = place(pages, b->pref_gpu, b->pref_cpu),
						    .prefetched = place(pages, b->sent_gpu, b->sent_cpu),
						    .accessed_gpu = !(pages & ~b->accessed_by),
						    .accessed_cpu = !(pages & ~b->accessed_cpu)};

		if (i == first) {
			*out = t;
			continue;
		}
		out->read_mostly &= t.read_mostly;
		out->preferred = both(out->preferred, t.preferred);
		out->prefetched = both(out->prefetched, t.prefetched);
		out->accessed_gpu &= t.accessed_gpu;
		out->accessed_cpu &= t.accessed_cpu;
	}
	return um_sim_leave(sim, UM_CUDA_OK);
}
