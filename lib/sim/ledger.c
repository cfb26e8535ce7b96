/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - sums per kernel name and per allocation
 *
 * Kernels are found by name in a table with open addressing that is never more than half full. The cost of a kernel is
 * the difference that each of its steps makes to the device's sums.
 */
#include "sim/ledger.h"

#include "base/hash.h"
#include "sim/state.h"

#include <time.h>

#define KERNELS_MAX 4096
#define MEMORY_MAX 65536
#define SLOTS_MIN 64
#define PATIENCE_S 2

struct um_ledger *um_sim_ledger_new(void)
{
	struct um_ledger *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	if (um_vec_push(&l->kernel, (struct um_ledger_kernel){0}) ||
	    um_vec_push(&l->memory, (struct um_ledger_memory){0}) || um_vec_reserve(&l->slot, SLOTS_MIN)) {
		um_sim_ledger_free(l);
		return NULL;
	}
	l->slot.n = SLOTS_MIN;
	memset(l->slot.at, 0, SLOTS_MIN * sizeof *l->slot.at);
	return l;
}

void um_sim_ledger_free(struct um_ledger *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->kernel.n; i++)
		free(l->kernel.at[i].name);
	for (size_t i = 0; i < l->memory.n; i++) {
		for (size_t k = 0; k < l->memory.at[i].names.n; k++)
			free(l->memory.at[i].names.at[k]);
		um_vec_fini(&l->memory.at[i].names);
	}
	um_vec_fini(&l->kernel);
	um_vec_fini(&l->memory);
	um_vec_fini(&l->slot);
	free(l);
}

/* The slot that holds the name's row, or a free one. */
static uint32_t *slot_of(const struct um_ledger *l, const char *name)
{
	size_t mask = l->slot.n - 1, i = um_hash_str(name) & mask;

	while (l->slot.at[i] && strcmp(l->kernel.at[l->slot.at[i]].name, name) != 0)
		i = (i + 1) & mask;
	return &l->slot.at[i];
}

/* Doubles the slots. If memory is short the old ones stay. */
static void widen(struct um_ledger *l)
{
	size_t n = l->slot.n;

	if (um_vec_reserve(&l->slot, n))
		return;
	l->slot.n = 2 * n;
	memset(l->slot.at, 0, l->slot.n * sizeof *l->slot.at);
	for (uint32_t i = 1; i < l->kernel.n; i++)
		*slot_of(l, l->kernel.at[i].name) = i;
}

static struct um_ledger_kernel *kernel_at(struct um_ledger *l, const char *name, int xfer)
{
	uint32_t *slot = slot_of(l, name);
	struct um_ledger_kernel row = {.xfer = xfer};

	if (*slot)
		return &l->kernel.at[*slot];
	if (l->kernel.n * 2 >= l->slot.n) {
		widen(l);
		slot = slot_of(l, name);
	}
	if (l->kernel.n * 2 >= l->slot.n || l->kernel.n > KERNELS_MAX)
		return &l->kernel.at[0];
	row.name = strdup(name);
	if (!row.name || um_vec_push(&l->kernel, row)) {
		free(row.name);
		return &l->kernel.at[0];
	}
	*slot = (uint32_t)(l->kernel.n - 1);
	return &l->kernel.at[*slot];
}

void um_sim_ledger_step(struct um_sim *sim, const struct um_sim_ledger_entry *e, const struct um_tally *before,
			uint64_t ns)
{
	const struct um_tally *now = &sim->tally;
	struct um_ledger_kernel *k = kernel_at(sim->ledger, e->name, e->xfer);

	k->launches += (uint64_t)e->begun;
	k->computed += (uint64_t)(e->begun && e->computes);
	k->ns += ns;
	k->stall_ns += now->stall_ns - before->stall_ns;
	k->faults += now->faults - before->faults;
	k->h2d_bytes += now->h2d_bytes + now->copied_h2d - before->h2d_bytes - before->copied_h2d;
	k->d2h_bytes += now->d2h_bytes + now->copied_d2h - before->d2h_bytes - before->copied_d2h;
	k->remote_bytes += now->remote_bytes - before->remote_bytes;
	k->evictions += now->evictions - before->evictions;
}

void um_sim_ledger_call(struct um_sim *sim)
{
	if (sim->ledger)
		sim->ledger->calls++;
}

void um_sim_ledger_born(struct um_sim *sim, struct um_sim_mem *m)
{
	struct um_ledger *l = sim->ledger;
	struct um_ledger_kind *kind;

	if (!l)
		return;
	kind = &l->kind[m->kind];
	if (!m->borrowed) { /* counted where it was allocated */
		kind->n++;
		kind->bytes += m->bytes;
		kind->peak_bytes = um_sim_later(kind->peak_bytes, kind->bytes);
	}
	m->row = 0;
	if (m->kind == UM_SIM_MANAGED && l->memory.n <= MEMORY_MAX &&
	    !um_vec_push(&l->memory, ((struct um_ledger_memory){.serial = m->serial, .alive = 1, .bytes = m->bytes})))
		m->row = (uint32_t)(l->memory.n - 1);
}

void um_sim_ledger_gone(struct um_sim *sim, const struct um_sim_mem *m)
{
	if (!sim->ledger)
		return;
	if (!m->borrowed)
		sim->ledger->kind[m->kind].bytes -= m->bytes;
	sim->ledger->memory.at[m->row].alive = 0;
}

static void add_name(struct um_ledger_memory *row, const char *name)
{
	char *copy = NULL;

	for (size_t i = 0; i < row->names.n; i++)
		if (strcmp(row->names.at[i], name) == 0)
			return;
	if (row->names.n < UM_LEDGER_NAMES)
		copy = strdup(name);
	if (!copy || um_vec_push(&row->names, copy)) {
		free(copy);
		row->names_left_out++;
	}
}

/* Takes no simulated time: results are the same with names and without. */
void um_sim_ledger_name(struct um_gpu *gpu, const void *at, const char *name)
{
	struct um_sim *sim = um_sim_of(gpu);
	const struct um_sim_mem *m;

	if (!sim->ledger)
		return;
	pthread_mutex_lock(&sim->node->lock);
	m = um_sim_mem_find(sim, (uint64_t)(uintptr_t)at);
	if (m && m->row)
		add_name(&sim->ledger->memory.at[m->row], name);
	pthread_mutex_unlock(&sim->node->lock);
}

static struct um_ledger_memory *row_of(struct um_sim *sim, const struct um_sim_mem *m)
{
	return &sim->ledger->memory.at[m->row];
}

void um_sim_ledger_moved(struct um_sim *sim, const struct um_sim_mem *m, int to_device, uint64_t bytes)
{
	if (sim->ledger)
		*(to_device ? &row_of(sim, m)->h2d_bytes : &row_of(sim, m)->d2h_bytes) += bytes;
}

void um_sim_ledger_evicted(struct um_sim *sim, const struct um_sim_mem *m)
{
	if (sim->ledger)
		row_of(sim, m)->evictions++;
}

void um_sim_ledger_faulted(struct um_sim *sim, const struct um_sim_mem *m, uint64_t faults, uint64_t stall_ns)
{
	if (sim->ledger) {
		row_of(sim, m)->faults += faults;
		row_of(sim, m)->stall_ns += stall_ns;
	}
}

void um_sim_ledger_cpu_fault(struct um_sim *sim, const struct um_sim_mem *m, uint64_t faults)
{
	if (sim->ledger)
		row_of(sim, m)->cpu_faults += faults;
}

int um_sim_ledger_show(struct um_gpu *gpu,
		       void (*fn)(void *user, const struct um_tally *tally, const struct um_ledger *ledger), void *user)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_tally tally;
	struct timespec until;
	int inside;

	if (!sim->ledger)
		return -ENOENT;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_mutex_timedlock(&sim->node->lock, &until))
		return -EBUSY;
	/* A program may end inside the host code of a kernel: then nothing more happens. */
	inside = sim->node->stepping || sim->node->lane;
	if (!inside)
		um_sim_enter(sim);
	um_sim_tally_at(sim, sim->now, &tally);
	fn(user, &tally, sim->ledger);
	if (!inside)
		um_sim_leave(sim, UM_CUDA_OK);
	pthread_mutex_unlock(&sim->node->lock);
	return 0;
}
