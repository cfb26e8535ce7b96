/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_policies.c - on which processor does a faulting page become resident, and is it a duplicate?
 */
#include "compare.h"

#define PINNED 0 /* the page that is pinned to the host */
#define FREE 1

/* Alternate copies, then a fault while the host is preferred. */
static void pin(struct um_sim *sim, struct um_sim_block *b)
{
	uint64_t until;

	b->cpu = b->all;
	b->pref_cpu = b->all;
	for (unsigned i = 1; i <= 5; i++)
		um_sim_thrash_moved(sim, b, 1u << PINNED, i % 2, i * 100000);
	um_sim_thrash_throttled(sim, b, 1u << PINNED, 1, 600000, &until);
}

static int state(struct um_sim_block *b)
{
	unsigned page = compare_below(2);
	uint32_t bit = 1u << page;
	struct uvm_fault f = {.by = 1,
			      .writes = (int)compare_below(2),
			      .on_gpu = (int)compare_below(2),
			      .on_cpu = (int)compare_below(2),
			      .preferred = (int)compare_below(3) - 1,
			      .accessed_by_gpu = (int)compare_below(2),
			      .read_mostly = (int)compare_below(2),
			      .pinned = page == PINNED ? 0 : -1};
	int to, duplicate;

	if (f.on_gpu && f.on_cpu && !f.read_mostly)
		f.on_cpu = 0;
	if (f.pinned == 0 && f.preferred == f.by) /* it would be pinned there */
		f.preferred = -1;
	b->gpu = f.on_gpu ? bit : 0;
	b->cpu = f.on_cpu ? bit : 0;
	b->pref_gpu = f.preferred == 1 ? bit : 0;
	b->pref_cpu = f.preferred == 0 ? bit : 0;
	b->accessed_by = f.accessed_by_gpu ? bit : 0;
	b->read_mostly = f.read_mostly ? bit : 0;
	to = uvm_residency(&f, &duplicate);
	return (um_sim_stay_away(b, bit) ? 0 : 1) == to && duplicate == (f.read_mostly && !f.writes);
}

/* The CPU reaches no device memory: its faults always bring the page to the host. */
static int cpu_state(void)
{
	struct uvm_fault f = {.writes = (int)compare_below(2),
			      .on_gpu = (int)compare_below(2),
			      .preferred = (int)compare_below(3) - 1,
			      .accessed_by_gpu = (int)compare_below(2),
			      .read_mostly = (int)compare_below(2),
			      .pinned = (int)compare_below(2) - 1};
	int duplicate;

	return uvm_residency(&f, &duplicate) == 0;
}

unsigned compare_policies(struct compare_row *rows, unsigned long states, uint64_t driver)
{
	struct um_sim *sim = compare_open(driver, 2, UM_BLOCK_BYTES, NULL);
	struct um_sim_block *b = &sim->mem_order.at[0]->block[0], untouched = *b;

	rows[0] = (struct compare_row){.name = "residency: faults of the device, by advice and pins"};
	rows[1] = (struct compare_row){.name = "residency: faults of the CPU, by advice and pins"};
	pin(sim, b);
	while (rows[0].states < states)
		compare_judge(&rows[0], state(b));
	while (rows[1].states < states)
		compare_judge(&rows[1], cpu_state());
	um_sim_thrash_free(sim, b);
	*b = untouched;
	compare_close(sim);
	return 2;
}
