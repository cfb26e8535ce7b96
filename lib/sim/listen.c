/* SPDX-License-Identifier: Apache-2.0
 *
 * listen.c - extension of the simulated driver: a listener for kernels and faults that moves blocks itself
 *
 * Moves cost the same as the driver's own.
 */
#include "sim/state.h"

void um_sim_listen(struct um_gpu *gpu, const struct um_sim_listener *listener)
{
	struct um_sim *sim = um_sim_of(gpu);

	um_sim_enter(sim);
	sim->listener = listener;
	um_sim_leave(sim, 0);
}

uint64_t um_sim_room(struct um_gpu *gpu)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t n;

	um_sim_enter(sim);
	n = sim->chunks_free;
	for (const struct um_sim_block *b = sim->list[UM_SIM_UNUSED].head; b; b = b->next)
		n++;
	um_sim_leave(sim, 0);
	return n;
}

int um_sim_pull(struct um_gpu *gpu, uint64_t addr, uint64_t after, uint64_t *end)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_range r = {addr, 1, 0, um_sim_device(sim)};
	struct um_sim_hint h = {UM_SIM_PREFETCH, 1, &r};
	struct um_sim_mem *m;
	uint64_t *clock, off;
	uint32_t i;
	int err = -ENOENT;

	um_sim_enter(sim);
	clock = um_sim_clock(sim);
	m = um_sim_mem_find(sim, addr);
	if (m && m->kind == UM_SIM_MANAGED) {
		i = (uint32_t)((addr - m->addr) / UM_BLOCK_BYTES);
		off = (uint64_t)i * UM_BLOCK_BYTES;
		err = m->block[i].all & ~m->block[i].gpu ? 0 : -EALREADY;
		r.addr = m->addr + off;
		r.bytes = m->bytes - off < UM_BLOCK_BYTES ? m->bytes - off : UM_BLOCK_BYTES;
	}
	if (!err) {
		*clock = um_sim_later(um_sim_later(*clock, after), sim->writer_until);
		err = um_sim_hint_run(sim, &h, *clock, clock, end) ? -ENOMEM : 0;
	}
	return um_sim_leave(sim, err);
}

/* Evicts the block; the chunk stays, as the first victim, once its copy is complete. */
static void put_out(struct um_sim *sim, struct um_sim_block *b, int dead, uint64_t *t)
{
	*t += dead ? sim->profile.c_evict_unused : sim->profile.c_evict;
	um_sim_log_block(sim, *t, dead ? "drop" : "evict", b, (uint64_t)um_sim_count(b->gpu) * UM_SIM_PAGE);
	sim->tally.evictions++;
	um_sim_ledger_evicted(sim, b->mem);
	if (!dead)
		um_sim_to_cpu(sim, b, b->gpu, UM_SIM_EVICTION, NULL, t);
	um_sim_gpu_set(sim, b, 0);
	b->disc = 0;
	um_sim_list_put(sim, b, UM_SIM_UNUSED);
}

int um_sim_evict(struct um_gpu *gpu, enum um_sim_verdict (*may)(void *user, uint64_t addr), void *user)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t *clock;
	int err = -ENOENT;

	um_sim_enter(sim);
	clock = um_sim_clock(sim);
	*clock = um_sim_later(*clock, sim->writer_until);
	for (struct um_sim_block *b = sim->list[UM_SIM_USED].head; b && err; b = b->next) {
		uint64_t addr = b->mem->addr + (uint64_t)(b - b->mem->block) * UM_BLOCK_BYTES;
		enum um_sim_verdict verdict = may(user, addr);

		if (verdict == UM_SIM_STAYS)
			continue;
		put_out(sim, b, verdict == UM_SIM_IS_DEAD, clock);
		sim->readers_until = um_sim_later(sim->readers_until, *clock);
		err = 0;
	}
	return um_sim_leave(sim, err);
}
