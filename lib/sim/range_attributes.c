/* SPDX-License-Identifier: Apache-2.0
 *
 * range_attributes.c - attributes of a managed range: advice, and last prefetch location
 *
 * As in the real driver, they do not show where pages are.
 */
#include "sim/state.h"

#define ON_CPU (-1)
#define NOT_ALIKE (-2)

/* The block on a device, or NULL. */
static struct um_sim_block *block_on(const struct um_sim *sim, struct um_sim_block *b, unsigned device)
{
	const struct um_sim_share *share = b->mem->share;

	if (!share)
		return device == um_sim_device(sim) ? b : NULL;
	return share->twin[device] ? &share->twin[device]->block[b - b->mem->block] : NULL;
}

/* Of pages of a block. The host's part of the state is the same on all devices, but for prefetches. */
static struct um_sim_range_attributes of_block(const struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	struct um_sim_range_attributes out = {.read_mostly = !(pages & ~b->read_mostly),
					      .preferred = pages & ~b->pref_cpu ? NOT_ALIKE : ON_CPU,
					      .prefetched = NOT_ALIKE,
					      .accessed_cpu = !(pages & ~b->accessed_cpu)};

	for (unsigned d = 0; d < sim->node->n; d++) {
		const struct um_sim_block *o = block_on(sim, b, d);

		if (!o)
			continue;
		out.preferred = pages & ~o->pref_gpu ? out.preferred : (int)d;
		out.prefetched = !(pages & ~o->sent_gpu) ? (int)d : !(pages & ~o->sent_cpu) ? ON_CPU : out.prefetched;
		out.accessed_gpu |= pages & ~o->accessed_by ? 0 : 1u << d;
	}
	return out;
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

		for (unsigned d = 0; d < sim->node->n; d++) {
			struct um_sim_block *b = block_on(sim, &m->block[i], d);

			if (!b)
				continue;
			b->sent_cpu = r->to_cpu ? b->sent_cpu | pages : b->sent_cpu & ~pages;
			b->sent_gpu = !r->to_cpu && r->device == d ? b->sent_gpu | pages : b->sent_gpu & ~pages;
		}
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
		struct um_sim_range_attributes t = of_block(sim, &m->block[i], um_sim_pages_out(m, i, off, bytes));

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
