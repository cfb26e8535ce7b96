/* SPDX-License-Identifier: Apache-2.0
 *
 * thrash.c - the thrashing detector: CPU and GPU alternating on a page
 *
 * Evictions do not count, and a migration by prefetch resets it. The driver adapts the lapse; here it is constant.
 */
#include "sim/state.h"

#define LAPSE 500000u /* ns between events that count, and the length of a delay */
#define EVENTS 3 /* counted events until a page is thrashing */
#define THROTTLES 10 /* delays until the page is pinned */
#define PIN (300ull * LAPSE)
#define EPOCH (2000ull * LAPSE) /* after that a page is forgotten */

struct um_sim_thrash {
	struct um_sim_thrash *next; /* in the list of pinned blocks */
	struct um_sim_block *block;
	uint64_t release; /* ns: pinned until */
	uint32_t hot, pinned; /* pages */
	struct {
		uint64_t stamp; /* ns: last event; 0 none */
		uint64_t throttled_until;
		uint8_t events, throttles, throttled; /* throttled: the delayed processor */
	} page[UM_SIM_PAGES];
};

/* The block's first migration only sets the time stamp; the second, by the other processor, creates the page state;
 * events count from the third on. */
void um_sim_thrash_moved(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int by, uint64_t t)
{
	struct um_sim_thrash *th = b->thrash;
	int first = 0;

	if (!th && b->moved_by && b->moved_by != by && t - b->moved_at <= LAPSE) {
		th = b->thrash = calloc(1, sizeof *th); /* out of memory: not detected */
		first = 1;
	}
	b->moved_by = (uint8_t)by;
	b->moved_at = t;
	if (!th)
		return;
	th->block = b;
	for (; pages; pages &= pages - 1) {
		unsigned i = (unsigned)__builtin_ctz(pages);
		int counts = !first && th->page[i].stamp && t - th->page[i].stamp <= LAPSE;

		if (t - th->page[i].stamp > EPOCH) {
			th->page[i].throttles = 0;
			th->hot &= ~(1u << i);
		}
		if (!(th->hot & 1u << i))
			th->page[i].events = (uint8_t)(counts ? th->page[i].events + 1 : 0);
		th->page[i].stamp = t;
		if (th->page[i].events == EVENTS && !(th->hot & 1u << i)) {
			th->hot |= 1u << i;
			um_sim_log_block(sim, t, "thrashing", b, i);
		}
	}
}

static void forget(struct um_sim *sim, struct um_sim_thrash *th)
{
	struct um_sim_thrash **at = &sim->pinned;

	while (*at && *at != th)
		at = &(*at)->next;
	if (*at)
		*at = th->next;
	th->block->thrash = NULL;
	free(th);
}

void um_sim_thrash_reset(struct um_sim *sim, struct um_sim_block *b)
{
	if (b->thrash)
		forget(sim, b->thrash);
	b->moved_by = 0;
}

/* Pins the pages to the host, mapped remotely, until the release. */
static void pin(struct um_sim *sim, struct um_sim_thrash *th, unsigned i, uint64_t t)
{
	if (!th->pinned) {
		th->next = sim->pinned;
		sim->pinned = th;
	}
	th->pinned |= 1u << i;
	th->release = t + PIN;
	um_sim_log_block(sim, t, "pin", th->block, i);
}

uint64_t um_sim_thrash_throttle(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int by, uint64_t t)
{
	struct um_sim_thrash *th = b->thrash;
	uint64_t until = 0;

	if (!th)
		return 0;
	for (pages &= th->hot & ~th->pinned; pages; pages &= pages - 1) {
		unsigned i = (unsigned)__builtin_ctz(pages);

		if (th->page[i].throttled == by) {
			if (t < th->page[i].throttled_until)
				until = um_sim_later(until, th->page[i].throttled_until);
			else
				th->page[i].throttled = 0; /* the delay is over: it is served */
		} else if (th->page[i].throttles == THROTTLES) {
			pin(sim, th, i, t);
		} else {
			th->page[i].throttles++;
			th->page[i].throttled = (uint8_t)by;
			th->page[i].throttled_until = t + LAPSE;
			until = um_sim_later(until, t + LAPSE);
			um_sim_log_block(sim, t, "throttle", b, i);
		}
	}
	return until;
}

uint32_t um_sim_thrash_pinned(const struct um_sim_block *b)
{
	return b->thrash ? b->thrash->pinned : 0;
}

uint32_t um_sim_thrash_pages(const struct um_sim_block *b)
{
	return b->thrash ? b->thrash->hot : 0;
}

/* Called before pages are examined, so that it needs no event of its own. */
void um_sim_thrash_expire(struct um_sim *sim, uint64_t t)
{
	struct um_sim_thrash *th = sim->pinned, *next;

	for (; th; th = next) {
		struct um_sim_block *b = th->block;

		next = th->next;
		if (th->release > t)
			continue;
		um_sim_log_block(sim, th->release, "unpin", b, um_sim_count(th->pinned));
		b->remote &= ~th->pinned | b->accessed_by | b->pref_cpu;
		um_sim_block_changed(b);
		um_sim_thrash_reset(sim, b);
	}
}
