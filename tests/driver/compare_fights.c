/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_fights.c - thrashing of a block between CPU and GPU: throttled processors, pinned pages, their locations
 *
 * A state is one event: a fault, with the copy that follows, pages that the density rule adds, a prefetch, new advice.
 * After each all decisions, thrashing pages, pins and the lapse must agree.
 */
#include "compare.h"

#include <string.h>

#define GPU 1
#define CPU 0
#define EVENTS 400 /* of one fight */

static const struct kind {
	const char *name;
	unsigned pages;
	uint64_t shortest, longest; /* ns between events */
	int advice, others; /* preferred locations; other copies than those of faults */
} kinds[] = {
	{"thrashing: one page, 1 to 50 us", 1, 1000, 50000, 0, 0},
	{"thrashing: one page, 50 to 450 us", 1, 50000, 450000, 0, 0},
	{"thrashing: one page, 0.3 to 1 ms", 1, 300000, 1000000, 0, 0},
	{"thrashing: 3 pages, 1 us to 5 ms", 3, 1000, 5000000, 0, 1},
	{"thrashing: 32 pages, 0.1 to 20 us", 32, 100, 20000, 0, 1},
	{"thrashing: 4 pages, 1 us to 0.5 ms, preferred locations", 4, 1000, 500000, 1, 1},
	{"thrashing: 2 pages, 10 us to 3 s", 2, 10000, 3000000000, 1, 1},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

struct fight {
	struct um_sim *sim;
	struct um_sim_block *b;
	uint64_t now;
	uint64_t asleep[2]; /* the processor's throttled fault repeats then */
};

/* Logarithmically uniform. */
static uint64_t gap(const struct kind *k)
{
	uint64_t t = k->shortest;

	while (t < k->longest && compare_below(4))
		t = t * 2 < k->longest ? t * 2 : k->longest;
	return t / 2 + compare_random() % (t / 2 + 1) + 1;
}

static void place(struct fight *f, unsigned page, int at)
{
	uint32_t bit = 1u << page;

	f->b->gpu = at == GPU ? f->b->gpu | bit : f->b->gpu & ~bit;
	f->b->cpu = at == CPU ? f->b->cpu | bit : f->b->cpu & ~bit;
	uvm_fight_place(page, at);
}

static void moved(struct fight *f, unsigned page, int to, enum uvm_moved cause)
{
	place(f, page, to);
	uvm_fight_moved(page, to, cause, f->now);
	if (cause == UVM_MOVED_API)
		um_sim_thrash_reset(f->sim, f->b, 1u << page);
	else
		um_sim_thrash_moved(f->sim, f->b, 1u << page, to == GPU, f->now);
}

static int is_pinned(const struct fight *f, unsigned page)
{
	for (size_t i = 0; i < f->sim->pins.n; i++)
		if (f->sim->pins.at[i].page == page)
			return 1;
	return 0;
}

/* A fault of a processor on a page that it does not have. */
static int faulted(struct fight *f, unsigned page, int by)
{
	uint64_t until = 0, sim_until = 0;
	int where = by, pinned;
	enum uvm_hint hint = uvm_fight_hint(page, by, f->now, &where, &until);
	uint32_t waits = um_sim_thrash_throttled(f->sim, f->b, 1u << page, by == GPU, f->now, &sim_until);

	if ((hint == UVM_HINT_THROTTLE) != !!waits || until != sim_until)
		return 0;
	if (hint == UVM_HINT_THROTTLE) {
		f->asleep[by] = until;
		return 1;
	}
	pinned = is_pinned(f, page);
	if ((hint == UVM_HINT_PIN) != pinned)
		return 0;
	if (pinned && (where == CPU) != !!(um_sim_thrash_pinned(f->b) >> page & 1))
		return 0;
	if (!((where == GPU ? f->b->gpu : f->b->cpu) >> page & 1))
		moved(f, page, where, UVM_MOVED_FAULT);
	return 1;
}

/* Something else than a fault. */
static void other(struct fight *f, const struct kind *k)
{
	unsigned page = compare_below(k->pages);
	int to = (int)compare_below(2), at = f->b->gpu >> page & 1 ? GPU : CPU;

	if (k->advice && !compare_below(8)) {
		int prefers = (int)compare_below(3) - 1;

		uvm_fight_prefer(prefers);
		f->b->pref_gpu = prefers == GPU ? UINT32_MAX : 0;
		f->b->pref_cpu = prefers == CPU ? UINT32_MAX : 0;
	} else if (to != at && !compare_below(10)) {
		moved(f, page, to, UVM_MOVED_API);
	} else if (to != at && !(um_sim_thrash_pages(f->b) >> page & 1)) {
		moved(f, page, to, UVM_MOVED_ADDED);
	}
}

static int event(struct fight *f, const struct kind *k)
{
	unsigned page = compare_below(k->pages);
	int by = (int)compare_below(2), same = 1;

	f->now += gap(k);
	if (f->asleep[by] && compare_below(2)) /* mostly it does wait */
		f->now = f->now > f->asleep[by] ? f->now : f->asleep[by] + compare_below(3);
	f->asleep[by] = 0;
	uvm_fight_timer(f->now);
	um_sim_thrash_expire(f->sim, f->now);
	if (k->others && !compare_below(6))
		other(f, k);
	else if (!((by == GPU ? f->b->gpu : f->b->cpu) >> page & 1))
		same = faulted(f, page, by);
	return same && uvm_fight_thrashing() == um_sim_thrash_pages(f->b) && uvm_fight_lapse() == f->sim->lapse;
}

static void fight(const struct kind *k, uint64_t driver, struct compare_row *row)
{
	struct fight f = {.sim = compare_open(driver, 2, UM_BLOCK_BYTES, NULL), .now = 1000000};
	struct um_sim_block untouched;
	int same = 1;

	f.b = &f.sim->mem_order.at[0]->block[0];
	untouched = *f.b;
	uvm_fight_open();
	for (unsigned page = 0; page < k->pages; page++)
		place(&f, page, (int)compare_below(2));
	for (unsigned i = 0; i < EVENTS && same; i++)
		same = compare_judge(row, event(&f, k));
	um_sim_thrash_free(f.sim, f.b);
	*f.b = untouched;
	compare_close(f.sim);
}

unsigned compare_fights(struct compare_row *rows, unsigned long states, uint64_t driver)
{
	for (unsigned k = 0; k < N_KINDS; k++) {
		rows[k] = (struct compare_row){.name = kinds[k].name};
		while (rows[k].states < states)
			fight(&kinds[k], driver, &rows[k]);
	}
	return N_KINDS;
}
