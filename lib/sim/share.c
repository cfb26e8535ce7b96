/* SPDX-License-Identifier: Apache-2.0
 *
 * share.c - memory that several simulated devices use
 *
 * Without peer access a page that another device has reaches this one through the host. The driver moves the pages that
 * were asked for; here the whole block leaves the other device, which then has at most duplicates of read-mostly pages.
 */
#include "sim/state.h"

static uint32_t index_of(const struct um_sim_block *b)
{
	return (uint32_t)(b - b->mem->block);
}

static struct um_sim_mem *twin_new(const struct um_sim_mem *m)
{
	struct um_sim_mem *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->kind = m->kind;
	t->addr = m->addr;
	t->bytes = m->bytes;
	t->serial = m->serial;
	t->span = m->span;
	t->span_bytes = m->span_bytes;
	t->seen = m->seen;
	t->borrowed = 1;
	if (t->kind == UM_SIM_MANAGED && um_sim_mem_blocks(t)) {
		um_sim_mem_free(t);
		return NULL;
	}
	return t;
}

int um_sim_share_make(struct um_sim *sim, struct um_sim_mem *m)
{
	struct um_sim_node *node = sim->node;
	struct um_sim_share *share;

	if (node->n == 1)
		return 0;
	share = calloc(1, sizeof *share + m->n);
	if (!share)
		return -ENOMEM;
	for (unsigned d = 0; d < node->n; d++) {
		struct um_sim_mem *t = m;

		if (!node->sim[d])
			continue;
		if (node->sim[d] != sim)
			t = twin_new(m);
		if (!t || (t != m && um_sim_mem_add(node->sim[d], t))) {
			if (t)
				um_sim_mem_free(t);
			um_sim_share_end(node, share, m);
			return -ENOMEM;
		}
		share->twin[d] = t;
	}
	memset(share->active, (int)um_sim_device(sim), m->n);
	for (unsigned d = 0; d < node->n; d++)
		if (share->twin[d])
			share->twin[d]->share = share;
	return 0;
}

void um_sim_mem_leave(struct um_sim *sim, struct um_sim_mem *m)
{
	struct um_sim_share *share = m->share;
	struct um_sim *home = sim;
	struct um_sim_mem *theirs;
	uint64_t t = sim->app;

	if (!share || !m->borrowed) {
		um_sim_mem_release(sim, m);
		return;
	}
	theirs = um_sim_mem_any(&home, m->addr);
	for (uint32_t i = 0; i < m->n; i++)
		if (share->active[i] == um_sim_device(sim))
			um_sim_own(home, &theirs->block[i], &t);
	share->twin[um_sim_device(sim)] = NULL;
	um_sim_mem_remove(sim, m);
}

/* Ends all twins but `m`. */
void um_sim_share_end(struct um_sim_node *node, struct um_sim_share *share, const struct um_sim_mem *m)
{
	for (unsigned d = 0; d < node->n; d++)
		if (share->twin[d] && share->twin[d] != m)
			um_sim_mem_remove(node->sim[d], share->twin[d]);
	free(share);
}

struct um_sim_block *um_sim_active(struct um_sim **sim, struct um_sim_block *b)
{
	const struct um_sim_share *share = b->mem->share;
	uint32_t i = index_of(b);

	if (!share)
		return b;
	*sim = (*sim)->node->sim[share->active[i]];
	return &share->twin[share->active[i]]->block[i];
}

/* The host's part of the state goes along; `from` keeps its duplicates. */
static void hand_over(struct um_sim *from_sim, struct um_sim_block *from, struct um_sim *to_sim,
		      struct um_sim_block *to)
{
	uint32_t had = to->gpu;

	um_sim_gpu_set(to_sim, to, had & from->read_mostly & from->cpu);
	um_sim_emptied(to_sim, to, had);
	to->cpu = from->cpu;
	to->cmap = from->cmap;
	to->cro = from->cro;
	to->stale = from->stale;
	to->disc = from->disc;
	to->cuts = from->cuts;
	to->tracker = um_sim_later(to->tracker, from->tracker);
	to->remote = 0;
	if (from->cpu_chunk) {
		from_sim->tally.host_bytes -= UM_BLOCK_BYTES;
		to_sim->tally.host_bytes += UM_BLOCK_BYTES;
	}
	to->cpu_chunk = from->cpu_chunk;
	from->cpu_chunk = 0;
	from->remote = 0;
	from->cmap = from->cro = from->stale = from->disc = 0;
	from->rw = 0;
	from->cpu = from->gpu;
	um_sim_block_changed(from);
	um_sim_block_changed(to);
}

void um_sim_own(struct um_sim *sim, struct um_sim_block *b, uint64_t *t)
{
	struct um_sim *from_sim = sim;
	struct um_sim_block *from = um_sim_active(&from_sim, b);

	if (from == b)
		return;
	if (from->gpu & (~from->read_mostly | ~from->cpu))
		um_sim_to_cpu(from_sim, from, from->gpu, UM_SIM_COHERENCE, NULL, t);
	um_sim_thrash_free(from_sim, from);
	hand_over(from_sim, from, sim, b);
	b->mem->share->active[index_of(b)] = (uint8_t)um_sim_device(sim);
	um_sim_log_block(sim, *t, "take-over", b, um_sim_device(from_sim));
}

void um_sim_alone(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	const struct um_sim_share *share = b->mem->share;

	for (unsigned d = 0; share && d < sim->node->n; d++) {
		struct um_sim_block *o = share->twin[d] ? &share->twin[d]->block[index_of(b)] : b;
		uint32_t had = o->gpu;

		if (o == b || !(had & pages))
			continue;
		um_sim_gpu_set(sim->node->sim[d], o, had & ~pages);
		o->cpu = o->gpu;
		um_sim_emptied(sim->node->sim[d], o, had);
	}
}

uint32_t um_sim_elsewhere(const struct um_sim *sim, const struct um_sim_block *b)
{
	const struct um_sim_share *share = b->mem->share;
	uint32_t pages = 0;

	for (unsigned d = 0; share && d < sim->node->n; d++)
		if (d != um_sim_device(sim) && share->twin[d])
			pages |= share->twin[d]->block[index_of(b)].gpu;
	return pages;
}
