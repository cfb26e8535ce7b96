/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_copies.c - which copies is a migration made of?
 *
 * The simulated GPU says of a faulting page that its first 4 KiB faulted, or all.
 */
#include "compare.h"

#define SUB UM_SIM_SUBPAGES
#define SUB_BYTES (UM_SIM_PAGE / SUB)

static const struct kind {
	const char *name;
	int to_gpu, by_fault;
} kinds[] = {
	{"copies: faults, to the device", 1, 1},
	{"copies: faults, to the host", 0, 1},
	{"copies: prefetches and evictions", 0, 0},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

static void put(uint64_t *map, uint32_t page, unsigned from)
{
	for (unsigned i = page * SUB + from; i < (page + 1) * SUB; i++)
		map[i / 64] |= 1ull << i % 64;
}

static uint32_t some_pages(void)
{
	uint32_t m = (uint32_t)compare_random();

	return compare_below(2)	  ? m & (uint32_t)compare_random()
	       : compare_below(2) ? m
				  : m | (uint32_t)compare_random();
}

static int state(const struct kind *k)
{
	uint32_t pages = some_pages(), there = some_pages() & ~pages;
	struct um_sim_faulted f = {pages & some_pages(), 0};
	struct um_sim_segment seg[2 * UM_SIM_PAGES];
	uint64_t copy[8] = {0}, added[8] = {0}, at[8] = {0};
	struct uvm_copy want[512];
	unsigned n, n_want;

	f.each = f.pages & some_pages();
	for (uint32_t page = 0; page < 32; page++) {
		if ((pages | there) >> page & 1)
			put(copy, page, 0);
		if (there >> page & 1)
			put(at, page, 0);
		if (!(f.each >> page & 1)) /* also of pages that do not move */
			put(added, page, f.pages >> page & 1);
	}
	n_want = uvm_copies(k->to_gpu, k->by_fault, copy, added, at, want);
	n = um_sim_segments(pages, k->by_fault ? &f : NULL, seg);
	if (n != n_want)
		return 0;
	for (unsigned i = 0; i < n; i++)
		if (seg[i].off != want[i].first * SUB_BYTES || seg[i].bytes != want[i].pages * SUB_BYTES ||
		    seg[i].added != want[i].added)
			return 0;
	return 1;
}

unsigned compare_copies(struct compare_row *rows, unsigned long states)
{
	for (unsigned k = 0; k < N_KINDS; k++) {
		rows[k] = (struct compare_row){.name = kinds[k].name};
		while (rows[k].states < states)
			compare_judge(&rows[k], state(&kinds[k]));
	}
	return N_KINDS;
}
