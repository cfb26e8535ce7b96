/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_density.c - which pages does one visit serve?
 *
 * The simulated GPU knows pages of 64 KiB, the driver 4 KiB. A page of the simulation is resident, mapped or thrashing
 * as a whole. Of a faulting page some of the 4 KiB fault, or all where the driver adds nothing to a fault: of a
 * thrashing page, away from the preferred location, of a page that the CPU has mapped.
 */
#include "compare.h"

#include <string.h>

#define SUB UM_SIM_SUBPAGES

enum shape { WHOLE, TAIL, CUT, CUT_4K, HOLES };
enum place { TO_GPU, TO_CPU, TO_CPU_BY_GPU };

static const struct kind {
	const char *name, *documented;
	enum shape shape;
	enum place place;
	int hot, prefers;
} kinds[] = {
	{"density: full block, to the device", NULL, WHOLE, TO_GPU, 0, 0},
	{"density: block of any number of 4 KiB, to the device", NULL, TAIL, TO_GPU, 0, 0},
	{"density: thrashing pages, to the device", NULL, WHOLE, TO_GPU, 1, 0},
	{"density: preferred location, first touch, to the device", NULL, TAIL, TO_GPU, 1, 1},
	{"density: block cut at 64 KiB, to the device", NULL, CUT, TO_GPU, 1, 1},
	{"density: fault of the CPU", NULL, TAIL, TO_CPU, 1, 1},
	{"density: fault of the CPU, block cut at 64 KiB", NULL, CUT, TO_CPU, 1, 1},
	{"density: fault of the device that maps host memory", NULL, CUT, TO_CPU_BY_GPU, 1, 1},
	{"density: block cut at 4 KiB", "pages of 64 KiB", CUT_4K, TO_GPU, 0, 0},
	{"density: residency by 4 KiB", "pages of 64 KiB", HOLES, TO_GPU, 0, 0},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

/* A mask of varied density and structure. */
static uint32_t some_pages(void)
{
	uint32_t m = (uint32_t)compare_random(), n = 1 + compare_below(32);

	switch (compare_below(6)) {
	case 0:
		return m & (uint32_t)compare_random() & (uint32_t)compare_random();
	case 1:
		return m & (uint32_t)compare_random();
	case 2:
		return m;
	case 3:
		return m | (uint32_t)compare_random();
	case 4:
		return (n == 32 ? UINT32_MAX : (1u << n) - 1) << compare_below(32);
	default:
		return 1u << compare_below(32);
	}
}

static uint32_t one_of(uint32_t pages)
{
	for (uint32_t skip = compare_below(um_sim_count(pages)); skip; skip--)
		pages &= pages - 1;
	return pages & -pages;
}

static int get(const uint64_t *map, unsigned i)
{
	return map[i / 64] >> i % 64 & 1;
}

static void put(uint64_t *map, unsigned i)
{
	map[i / 64] |= 1ull << i % 64;
}

/* All 4 KiB of `pages` that lie in the driver's block, by their number there. */
static void spread(uint64_t *map, uint32_t pages, const struct uvm_visit *v)
{
	for (unsigned i = 0; i < v->pages; i++)
		if (pages >> (v->first + i) / SUB & 1)
			put(map, i);
}

/* Some 4 KiB of each page, at least one; of those in `each` all. */
static void fault(uint64_t *map, uint32_t pages, uint32_t each, const struct uvm_visit *v)
{
	for (; pages; pages &= pages - 1) {
		uint32_t page = (uint32_t)__builtin_ctz(pages), pick;
		int any = 0;

		while (!any) {
			pick = each >> page & 1
				       ? UINT32_MAX
				       : (uint32_t)(compare_random() & compare_random()) | 1u << compare_below(16);
			for (unsigned k = 0; k < SUB; k++) {
				unsigned i = page * SUB + k;

				if (pick >> k & 1 && i >= v->first && i < v->first + v->pages) {
					put(map, i - v->first);
					any = 1;
				}
			}
		}
	}
}

/* Pages of 64 KiB that have a part in the driver's block. */
static uint32_t touched(const struct uvm_visit *v)
{
	uint32_t out = 0;

	for (unsigned i = v->first; i < v->first + v->pages; i++)
		out |= 1u << i / SUB;
	return out;
}

static void choose_shape(const struct kind *k, struct um_sim_block *b, struct uvm_visit *v)
{
	unsigned step = k->shape == CUT_4K ? 1 : SUB;

	v->pages = k->shape == TAIL ? 1 + compare_below(512) : 512;
	b->mem->bytes = v->pages * 4096ull;
	b->all = touched(v);
	b->cuts = 0;
	if (k->shape != CUT && k->shape != CUT_4K)
		return;
	v->first = step * compare_below(512 / step);
	v->pages = step * (1 + compare_below((512 - v->first) / step));
	for (unsigned i = 1; i < 32; i++) /* other pieces may be cut further */
		if (i * SUB == v->first || i * SUB == v->first + v->pages ||
		    (!compare_below(4) && (i * SUB <= v->first || i * SUB >= v->first + v->pages)))
			b->cuts |= 1u << i;
}

/* Residency, advice and mappings; returns the pages that may fault. */
static uint32_t choose_state(const struct kind *k, struct um_sim_block *b, struct uvm_visit *v, uint32_t piece)
{
	uint32_t gpu = some_pages() & b->all, cpu = compare_below(2) ? b->all & ~gpu : some_pages() & b->all & ~gpu;

	if (!compare_below(8)) {
		gpu = 0;
		cpu = compare_below(2) ? b->all : 0;
	}
	if (k->prefers && !compare_below(4)) { /* a first touch */
		gpu &= ~piece;
		cpu &= ~piece;
	}
	b->gpu = gpu;
	b->cpu = cpu;
	b->cmap = cpu & some_pages();
	b->pref_gpu = b->pref_cpu = b->accessed_by = 0;
	v->preferred = -1;
	if (k->place == TO_CPU_BY_GPU ? compare_below(2) : k->prefers && compare_below(2)) {
		v->preferred = k->place == TO_CPU_BY_GPU ? 0 : (int)compare_below(2);
		*(v->preferred ? &b->pref_gpu : &b->pref_cpu) = piece;
	}
	v->to_gpu = k->place == TO_GPU;
	if (k->place == TO_GPU)
		return piece & ~gpu;
	if (k->place == TO_CPU)
		return piece & ~(cpu & b->cmap);
	return piece & ~gpu & (v->preferred == 0 ? UINT32_MAX : cpu);
}

/* Makes the pages thrash: their first copies by turns. */
static void choose_hot(const struct kind *k, struct um_sim *sim, struct um_sim_block *b, uint32_t *hot)
{
	um_sim_thrash_free(sim, b);
	*hot = k->hot && compare_below(2) ? some_pages() & some_pages() & b->all : 0;
	for (unsigned i = 1; *hot && i <= 5; i++)
		um_sim_thrash_moved(sim, b, *hot, i % 2, i * 100000);
}

static int state(const struct kind *k, struct um_sim *sim, struct compare_row *row)
{
	struct um_sim_block *b = &sim->mem_order.at[0]->block[0];
	struct uvm_visit v = {0};
	uint64_t served[8], want[8] = {0};
	uint32_t piece, may, faulted, hot, out;
	int away;

	choose_shape(k, b, &v);
	piece = touched(&v);
	may = choose_state(k, b, &v, piece);
	faulted = k->place == TO_CPU && may ? one_of(may) : may & some_pages();
	if (!faulted)
		return 0;
	choose_hot(k, sim, b, &hot);
	away = v.preferred >= 0 && v.preferred != v.to_gpu && !um_sim_adds_away(sim);
	spread(v.here, v.to_gpu ? b->gpu : b->cpu, &v);
	spread(v.there, v.to_gpu ? b->cpu : b->gpu, &v);
	spread(v.mapped, b->cmap, &v);
	spread(v.hot, hot, &v);
	fault(v.faulted, faulted, hot | (away ? UINT32_MAX : 0) | (v.to_gpu ? 0 : b->cpu & b->cmap), &v);
	if (k->shape == HOLES) /* pages of which a part is resident: to the simulation they are not */
		for (unsigned i = 0; i < 512; i++)
			if (!get(v.faulted, i) && !(b->gpu >> i / SUB & 1) && !compare_below(4))
				put(v.here, i);
	uvm_density(&v, served);
	out = v.to_gpu ? um_sim_grow_gpu(sim, b, faulted) : um_sim_grow_cpu(sim, b, faulted);
	spread(want, out, &v);
	compare_judge(row, !memcmp(served, want, sizeof want));
	return 1;
}

unsigned compare_density(struct compare_row *rows, unsigned long states, uint64_t driver)
{
	struct um_sim *sim = compare_open(driver, 2, UM_BLOCK_BYTES, NULL);
	struct um_sim_block *b = &sim->mem_order.at[0]->block[0], untouched = *b;

	for (unsigned k = 0; k < N_KINDS; k++) {
		rows[k] = (struct compare_row){.name = kinds[k].name, .documented = kinds[k].documented};
		while (rows[k].states < states)
			state(&kinds[k], sim, &rows[k]);
	}
	um_sim_thrash_free(sim, b);
	*b = untouched;
	compare_close(sim);
	return N_KINDS;
}
