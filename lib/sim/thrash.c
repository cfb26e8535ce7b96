/* SPDX-License-Identifier: Apache-2.0
 *
 * thrash.c - the thrashing detector: CPU and GPU alternating on a page
 *
 * A copy of the driver's decisions (uvm_perf_thrashing.c) for one GPU on a bus without coherence: the GPU reaches host
 * memory, the CPU reaches no device memory. tests/driver compares it with the driver's code. Here a page is 64 KiB; to
 * the driver each of its 4 KiB is one, and the first stands for all.
 *
 * Copies by faults count as events; evictions do not, and other copies reset the page. A block has page state once two
 * processors alternate on it within a lapse. A page is thrashing after 3 events, each within a lapse of the one before.
 * Then one processor is served in each period, the other is throttled until the period ends. After 10 throttles the
 * page is pinned, and released 150 ms later.
 */
#include "sim/state.h"

#define LAPSE 500000u /* ns between events that count, at first */
#define LAPSE_MAX 500000000u
#define LAPSE_MIN 5000u
#define VOTES 32
#define PERIOD 500000u
#define EVENTS 3u /* counted events until a page is thrashing */
#define EVENTS_MAX 7u
#define THROTTLES 10u /* until the page is pinned */
#define PIN 150000000u
#define EPOCH 1000000000u /* without thrashing, after which a block is forgotten */
#define RESETS 4u /* times that a block is forgotten */
#define TIMER 20000u /* the worker that unpins takes along what is due by then */

enum { NOBODY = 0, GPU = 1, CPU = 2 }; /* sets of processors */

struct um_sim_thrash {
	uint64_t hot_at; /* ns: last event of a thrashing page; 0: none */
	uint32_t hot, pinned, host; /* pages: thrashing; of these, pinned; of these, to the host */
	uint8_t tracked; /* there is page state */
	uint8_t resets;
	uint8_t pinned_ever;
	struct page {
		uint64_t stamp; /* ns: last event; 0 none */
		uint64_t period_end;
		uint8_t events, throttles;
		uint8_t users; /* processors that caused events or asked */
		uint8_t throttled; /* processors */
		uint8_t served; /* the processor that is not throttled in this period */
	} page[UM_SIM_PAGES];
};

void um_sim_thrash_init(struct um_sim *sim)
{
	sim->lapse = LAPSE;
}

/* The driver keeps 58 bits of a time stamp. */
static uint64_t stamp_of(uint64_t t)
{
	return t & ~(uint64_t)63;
}

/* --- pinned pages ------------------------------------------------------------------------------------------------- */

static int pin_add(struct um_sim *sim, struct um_sim_block *b, unsigned page, uint64_t t)
{
	if (um_vec_push(&sim->pins, ((struct um_sim_pin){b, page, t + PIN})))
		return -ENOMEM;
	if (sim->pins.n == 1)
		sim->unpin_at = t + PIN;
	return 0;
}

static void pin_remove(struct um_sim *sim, const struct um_sim_block *b, unsigned page)
{
	size_t left = 0;

	for (size_t i = 0; i < sim->pins.n; i++)
		if (sim->pins.at[i].block != b || sim->pins.at[i].page != page)
			sim->pins.at[left++] = sim->pins.at[i];
	sim->pins.n = left;
}

/* --- the state of a page ------------------------------------------------------------------------------------------ */

static void throttle_end(struct page *p, unsigned by)
{
	p->throttled &= (uint8_t)~by;
	if (!p->throttled)
		p->period_end = 0;
}

/* The page counts as new. The number of throttles and the period's processor stay, as in the driver. */
static void page_reset(struct um_sim *sim, struct um_sim_block *b, unsigned i)
{
	struct um_sim_thrash *th = b->thrash;
	struct page *p = &th->page[i];

	if (p->throttled)
		throttle_end(p, GPU | CPU);
	if (th->pinned & 1u << i)
		pin_remove(sim, b, i);
	th->hot &= ~(1u << i);
	th->pinned &= th->hot;
	th->host &= th->hot;
	p->stamp = 0;
	p->events = 0;
	p->users = NOBODY;
}

void um_sim_thrash_reset(struct um_sim *sim, struct um_sim_block *b, uint32_t pages)
{
	if (!b->thrash)
		return;
	for (pages &= b->thrash->hot; pages; pages &= pages - 1)
		page_reset(sim, b, (unsigned)__builtin_ctz(pages));
}

void um_sim_thrash_free(struct um_sim *sim, struct um_sim_block *b)
{
	um_sim_thrash_reset(sim, b, UINT32_MAX);
	free(b->thrash);
	b->thrash = NULL;
	b->moved_by = NOBODY;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void page_event(struct um_sim *sim, struct um_sim_block *b, unsigned i, unsigned by, uint64_t t)
{
	struct page *p = &b->thrash->page[i];
	uint64_t last = p->stamp;

	p->users |= (uint8_t)by;
	p->stamp = stamp_of(t);
	if (!last)
		return;
	if (t - last > sim->lapse) {
		if (p->events >= EVENTS)
			page_reset(sim, b, i);
		return;
	}
	if (p->events < EVENTS_MAX)
		p->events++;
	if (p->events == EVENTS) {
		b->thrash->hot |= 1u << i;
		um_sim_log_block(sim, t, "thrashing", b, i);
	}
	if (p->events >= EVENTS)
		b->thrash->hot_at = t;
}

/* The block's first event only leaves a time stamp; the second, by the other processor, creates the page state and
 * stamps its pages; events count from the third on. Copies to where a page is pinned do not count. */
void um_sim_thrash_moved(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int to_gpu, uint64_t t)
{
	unsigned by = to_gpu ? GPU : CPU;
	int alternates = b->moved_by && b->moved_by != by && t - b->moved_at <= sim->lapse;

	if (b->thrash)
		pages &= ~b->thrash->pinned;
	if (!pages)
		return;
	if (!b->thrash && alternates)
		b->thrash = calloc(1, sizeof *b->thrash); /* out of memory: not detected */
	if (b->thrash && alternates)
		b->thrash->tracked = 1;
	b->moved_by = (uint8_t)by;
	b->moved_at = t;
	for (; b->thrash && b->thrash->tracked && pages; pages &= pages - 1)
		page_event(sim, b, (unsigned)__builtin_ctz(pages), by, t);
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

/* A block that has not been thrashing for long is forgotten, a few times. */
static int forgotten(struct um_sim_block *b, uint64_t t)
{
	struct um_sim_thrash *th = b->thrash;
	uint8_t resets = th->resets;

	if (!th->hot_at || t - th->hot_at <= EPOCH || th->pinned_ever || resets >= RESETS)
		return 0;
	*th = (struct um_sim_thrash){.resets = (uint8_t)(resets + 1)};
	b->moved_by = NOBODY;
	return 1;
}

/* Since 590 the lapse follows the times between events and faults. The driver's comparison is unsigned: fewer short
 * ones than long ones make it longer, too. */
static void adapt_lapse(struct um_sim *sim, uint64_t since)
{
	uint64_t eighth = sim->lapse / 8;

	if (sim->profile.driver < 590)
		return;
	sim->lapse_votes = (int8_t)(sim->lapse_votes + (since < sim->lapse ? -1 : 1));
	if ((unsigned)sim->lapse_votes >= VOTES && sim->lapse < LAPSE_MAX)
		sim->lapse += eighth < LAPSE_MAX / 10 ? eighth : LAPSE_MAX / 10;
	else if (sim->lapse_votes >= VOTES && sim->lapse > LAPSE_MIN)
		sim->lapse -= eighth > LAPSE_MIN ? eighth : LAPSE_MIN;
	else
		return;
	sim->lapse_votes /= 2;
}

/* A period begins with the first fault after the last one; its processor is not the one of the period before. */
static void period_update(struct page *p, unsigned by, uint64_t t)
{
	if (t > p->period_end) {
		p->period_end = stamp_of(t + PERIOD);
		p->served = p->served == by ? NOBODY : (uint8_t)by;
	} else if (!p->served) {
		p->served = (uint8_t)by;
	}
}

enum decision { SERVE, THROTTLE, PIN_GPU, PIN_CPU };

/* What the driver does with a fault by `by` on a thrashing page. The CPU is a place that both reach. */
static enum decision decide(const struct um_sim_block *b, unsigned i, unsigned by)
{
	const struct um_sim_thrash *th = b->thrash;
	const struct page *p = &th->page[i];
	uint32_t bit = 1u << i;
	unsigned at = by == GPU ? (b->gpu & bit ? GPU : CPU) : (b->cpu & bit ? CPU : GPU);
	int prefers = !!(b->pref_gpu & bit), pinned = !!(th->pinned & bit), is_host = !!(th->host & bit);
	enum decision here = by == GPU ? PIN_GPU : PIN_CPU;

	if (!((b->gpu | b->cpu) & bit))
		at = NOBODY;
	if (b->pref_cpu & bit)
		return PIN_CPU;
	if (prefers && p->users == GPU)
		return PIN_GPU;
	if (p->users == at && !(prefers && p->users & GPU)) /* one processor alone, where the page is */
		return at == GPU ? PIN_GPU : SERVE;
	if (prefers && by == GPU) {
		if (pinned)
			return !is_host || p->served == GPU ? PIN_GPU : THROTTLE;
		return p->served != GPU ? THROTTLE : p->throttles >= THROTTLES ? PIN_GPU : SERVE;
	}
	if (pinned) {
		if (p->served == by)
			return by == CPU || p->users & CPU ? PIN_CPU : PIN_GPU;
		return is_host ? PIN_CPU : by == GPU ? PIN_GPU : THROTTLE;
	}
	if (p->served != by)
		return THROTTLE;
	return p->throttles >= THROTTLES ? here : SERVE;
}

static enum decision pin(struct um_sim *sim, struct um_sim_block *b, unsigned i, enum decision where, uint64_t t)
{
	struct um_sim_thrash *th = b->thrash;
	struct page *p = &th->page[i];
	uint32_t bit = 1u << i, there = where == PIN_GPU ? b->gpu : b->cpu;

	if ((!(th->pinned & bit) || !(there & bit)) && p->throttled)
		throttle_end(p, GPU | CPU);
	if (!(th->pinned & bit)) {
		if (pin_add(sim, b, i, t))
			return THROTTLE;
		th->pinned |= bit;
		th->pinned_ever = 1;
		p->throttles = 0;
		um_sim_log_block(sim, t, "pin", b, i);
	}
	th->host = where == PIN_CPU ? th->host | bit : th->host & ~bit;
	return where;
}

/* A fault on one page. */
static enum decision hint(struct um_sim *sim, struct um_sim_block *b, unsigned i, unsigned by, uint64_t t)
{
	struct page *p = &b->thrash->page[i];
	enum decision d;

	if (p->events < EVENTS)
		return SERVE;
	if (p->throttled & by) {
		if (t < p->period_end && p->served != by)
			return THROTTLE;
		throttle_end(p, by);
	}
	adapt_lapse(sim, t - p->stamp);
	if (t - p->stamp > sim->lapse && !(b->thrash->pinned & 1u << i))
		return SERVE;
	p->users |= (uint8_t)by;
	period_update(p, by, t);
	d = decide(b, i, by);
	if (d == PIN_GPU || d == PIN_CPU)
		d = pin(sim, b, i, d, t);
	if (d == THROTTLE && !(p->throttled & by)) {
		p->throttled |= (uint8_t)by;
		if (!(b->thrash->pinned & 1u << i) && p->throttles < UINT8_MAX)
			p->throttles++;
		um_sim_log_block(sim, t, "throttle", b, i);
	}
	return d;
}

uint32_t um_sim_thrash_throttled(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int gpu, uint64_t t,
				 uint64_t *until)
{
	uint32_t out = 0;

	for (; pages && b->thrash && b->thrash->tracked; pages &= pages - 1) {
		unsigned i = (unsigned)__builtin_ctz(pages);

		if (forgotten(b, t))
			break;
		if (hint(sim, b, i, gpu ? GPU : CPU, t) == THROTTLE) {
			out |= 1u << i;
			*until = um_sim_later(*until, b->thrash->page[i].period_end);
		}
	}
	return out;
}

uint32_t um_sim_thrash_pinned(const struct um_sim_block *b)
{
	return b->thrash ? b->thrash->host : 0;
}

uint32_t um_sim_thrash_pages(const struct um_sim_block *b)
{
	return b->thrash ? b->thrash->hot : 0;
}

uint32_t um_sim_thrash_users(const struct um_sim_block *b, uint32_t pages, int gpu)
{
	uint32_t out = 0;

	for (pages &= um_sim_thrash_pinned(b); pages; pages &= pages - 1)
		if (b->thrash->page[__builtin_ctz(pages)].users & (gpu ? GPU : CPU))
			out |= pages & -pages;
	return out;
}

/* The worker that unpins runs when its first page is due, and then at the next one's time. It needs no event of its
 * own: this is called before pages are examined. */
void um_sim_thrash_expire(struct um_sim *sim, uint64_t t)
{
	while (sim->pins.n && sim->unpin_at <= t) {
		struct um_sim_pin p = sim->pins.at[0];

		if (p.until > sim->unpin_at + TIMER) {
			sim->unpin_at += (p.until - sim->unpin_at) / 1000 * 1000;
			continue;
		}
		um_sim_log_block(sim, sim->unpin_at, "unpin", p.block, p.page);
		p.block->remote &= ~(1u << p.page) | p.block->accessed_by;
		page_reset(sim, p.block, p.page);
		um_sim_block_changed(p.block);
	}
}
