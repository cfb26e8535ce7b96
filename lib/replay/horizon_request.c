/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_request.c - victims, and the requests of the horizon to the executor
 */
#include "replay/horizon_state.h"

#define CLEAN_RUN 16 /* blocks that leave without a copy in one request, at most */
#define LEAD_ITERATIONS 8 /* before which no eviction is judged */
#define LEAD_RIGHT 2 /* where both orders are as good, the one by latest uses wins: it needs no predictions */
#define LEAD_WRONG 3
#define LEAD_MOST 8 /* budgets: one iteration with wrong predictions does not end a long lead */
#define SOON_COPIES 2 /* pending ones: the last of them ends about as soon as what is dropped is gone */
#define CLEAN_PAYS 4 /* blocks for which advice has to pay: runs have 9 to 11 on average, but not in all programs */

/* A prefetch of the block waits for its room, so that it does not come before the block's own eviction. */
static struct um_horizon_gone *gone_of(const struct um_horizon *h, uint64_t addr)
{
	return &h->gone[(addr / UM_BLOCK_BYTES * 0x9e3779b97f4a7c15ull >> 32) & (h->n_gone - 1)];
}

int um_horizon_on_host(const struct um_horizon *h, uint64_t addr)
{
	const struct um_horizon_gone *g = gone_of(h, addr);

	return g->addr == addr && g->copied;
}

int um_horizon_has_host(const struct um_horizon *h, uint64_t addr)
{
	const struct um_horizon_gone *g = gone_of(h, addr);

	return g->addr == addr && g->has_host;
}

/* Numbers wrap around: one that is not behind `room` and up to `now`, the latest, is from long ago. */
static void wait_for(struct um_executor_room *room, const struct um_executor_room *now,
		     const struct um_executor_room *too)
{
	if (too->outs - room->outs <= now->outs - room->outs)
		room->outs = too->outs;
	if (too->drops - room->drops <= now->drops - room->drops)
		room->drops = too->drops;
}

/* The streams that may use the block and have no mark after that: they are marked now. */
static unsigned unmarked(struct um_horizon *h, const struct um_horizon_block *b)
{
	uint64_t current = um_horizon_current(h);
	unsigned which = 0;

	for (unsigned i = 0; i < UM_EXECUTOR_STREAMS; i++) {
		if (!(b->streams >> i & 1) || (b->last < h->marked[i] && (!h->shared || h->marked[i] == current)))
			continue;
		which |= 1u << i;
		h->marked[i] = current;
	}
	return which;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Do evictions take so much longer than prefetches that advice, which stops both for a moment, pays? */
static int evictions_limit(const struct um_horizon *h)
{
	return (h->host.evict_ns - h->host.in_ns) * CLEAN_PAYS > h->host.advice_ns;
}

static int leaves_with(const struct um_horizon *h, const struct um_horizon_block *b,
		       const struct um_horizon_block *first)
{
	return um_horizon_block_resident(b) && um_horizon_block_live(b) && b->only_read && !b->dies &&
	       b->next == first->next && b->last == first->last &&
	       um_executor_is_read_mostly(h->host.executor, b->addr);
}

/* Blocks from run[0] on that leave together, without a copy. Advice stops prefetches in progress once for all of them.
 * Returns their number. */
static uint32_t collect_run(const struct um_horizon *h, struct um_horizon_block **run)
{
	uint32_t n = 0;

	while (n < CLEAN_RUN && leaves_with(h, run[n], run[0])) {
		struct um_horizon_block *next = um_horizon_blocks_find(&h->blocks, run[n]->addr + UM_BLOCK_BYTES);

		if (++n < CLEAN_RUN)
			run[n] = next;
	}
	return n ? n : 1;
}

static int has_host(void *user, uint64_t addr)
{
	return um_block_lru_find(user, addr) != NULL;
}

struct um_horizon_block *um_horizon_victim(const struct um_horizon *h)
{
	struct um_horizon_block *first = um_horizon_foretells(h) ? um_horizon_blocks_victim(&h->blocks)
								 : um_horizon_blocks_oldest(&h->blocks),
				*other;
	struct um_block_lru *on_host = h->host.on_host;

	if (!first || !on_host || on_host->by_addr.n < on_host->most || has_host(on_host, first->addr))
		return first;
	other = um_horizon_blocks_victim_of(&h->blocks, um_horizon_current(h), has_host, on_host);
	return other ? other : first;
}

/* Has an op used the block since this one? */
static int is_used_since(const struct um_horizon *h, uint64_t addr, uint64_t op)
{
	const struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, addr);
	const struct um_horizon_gone *g = gone_of(h, addr);

	if (um_horizon_block_resident(b))
		return b->last > op;
	return g->addr == addr && g->last > op;
}

/* An order is right if the other one's victim was used before its own. */
void um_horizon_judge(struct um_horizon *h, uint64_t addr)
{
	const int64_t most = (int64_t)h->host.capacity * LEAD_MOST, least = -(int64_t)h->host.capacity / 2;
	struct um_horizon_gone *g = gone_of(h, addr);
	int64_t lead;

	if (g->addr != addr || !g->rival || g->op <= h->begun)
		return;
	lead = h->lead + (is_used_since(h, g->rival, g->op) == g->foretold ? LEAD_RIGHT : -LEAD_WRONG);
	h->lead = lead > most ? most : lead < least ? least : lead;
	g->rival = 0;
}

/* The block that leaves in place of this one by the other order. 0: there is none, or what the choice says of
 * predictions does not count: many are wrong in the first iterations, and of a block of unknown use there is none. */
static uint64_t find_rival(struct um_horizon *h, const struct um_horizon_block *b)
{
	const struct um_horizon_block *r = NULL;

	if (h->host.predictor->iteration < LEAD_ITERATIONS || !um_horizon_block_live(b) || b->dies)
		return 0;
	if (!um_horizon_foretells(h))
		r = um_horizon_blocks_victim(&h->blocks);
	else if (b->state == UM_BLOCK_KNOWN)
		r = um_horizon_blocks_take(&h->blocks);
	return r && r != b && r->last != um_horizon_current(h) ? r->addr : 0;
}

static void leave_room(const struct um_horizon *h, struct um_horizon_rooms *rooms, const struct um_executor_room *room,
		       int64_t ns)
{
	rooms->at[rooms->n++ % h->host.capacity] = (struct um_horizon_freed){*room, ns};
}

static const struct um_horizon_freed *first_room(const struct um_horizon *h, const struct um_horizon_rooms *rooms)
{
	return rooms->taken < rooms->n ? &rooms->at[rooms->taken % h->host.capacity] : NULL;
}

/* The room of the eviction that probably ends first, for one more prefetch; NULL: there is none. What is dropped is
 * gone when the ops before the one at hand have ended. Where the program is held back, the device has come as far, and
 * the copies are later than was estimated. */
static const struct um_horizon_freed *take_room(struct um_horizon *h, const struct um_executor_room *done, int ahead)
{
	const struct um_horizon_freed *copied = first_room(h, &h->copied), *dropped = first_room(h, &h->dropped);
	int drop = dropped && (!copied || dropped->ns < copied->ns);

	if (dropped && copied && h->held && !ahead)
		drop = (int32_t)(copied->room.outs - done->outs) > SOON_COPIES;
	h->dropped.taken += drop;
	h->copied.taken += copied && !drop;
	return drop ? dropped : copied;
}

/* What a prefetch of this block waits for, or of the one with the same hash whose eviction is forgotten now. */
static struct um_executor_room merge_rooms(const struct um_horizon *h, const struct um_executor_room *room,
					   const struct um_horizon_gone *gone, uint64_t addr)
{
	struct um_executor_room both = *room, now = um_executor_room_now(h->host.executor);

	if (gone->addr != addr)
		wait_for(&both, &now, &gone->room);
	return both;
}

/* The block has left, or will. */
static void note_eviction(struct um_horizon *h, struct um_horizon_block *b, const struct um_executor_room *room,
			  int copies, uint64_t rival)
{
	int live = um_horizon_block_live(b);
	struct um_horizon_gone *gone = gone_of(h, b->addr);
	uint64_t addr = b->addr, next = live && !b->dies && !b->overwritten ? b->next : 0;

	if (h->host.on_host && !um_block_lru_find(h->host.on_host, addr))
		h->exceeds |= um_block_lru_add(h->host.on_host, addr) != 0;
	um_horizon_distrust(h, b);
	if (copies)
		h->out_free = later(h->out_free, h->clock) + h->host.out_ns;
	leave_room(h, copies ? &h->copied : &h->dropped, room, copies ? h->out_free : h->clock);
	*gone = (struct um_horizon_gone){.room = merge_rooms(h, room, gone, addr),
					 .addr = addr,
					 .copied = live,
					 .has_host = live || (gone->addr == addr && gone->has_host),
					 .last = b->last,
					 .op = um_horizon_current(h),
					 .rival = rival,
					 .foretold = um_horizon_foretells(h)};
	um_horizon_blocks_drop(&h->blocks, b);
	if (next > um_horizon_current(h) && next <= h->scanned)
		um_horizon_blocks_miss(&h->blocks, addr, next);
}

int um_horizon_evict(struct um_horizon *h, struct um_horizon_block *b, int ahead)
{
	struct um_horizon_block *run[CLEAN_RUN] = {b};
	int only_read = b->only_read && !b->dies && evictions_limit(h);
	int copies = um_horizon_block_live(b) && !um_executor_is_read_mostly(h->host.executor, b->addr);
	unsigned what = (ahead ? UM_AWAY_AHEAD : 0u) | (only_read ? UM_AWAY_ONLY_READ : 0u);
	uint32_t n = only_read ? collect_run(h, run) : 1, in = b->in;
	unsigned which = 0, streams = 0;
	struct um_executor_room room;
	uint64_t rival = find_rival(h, b);

	for (uint32_t i = 0; i < n; i++) {
		which |= unmarked(h, run[i]);
		streams |= run[i]->streams;
		in = (int32_t)(run[i]->in - in) > 0 ? run[i]->in : in;
	}
	if (which && um_executor_mark(h->host.executor, which))
		return -EAGAIN;
	if (um_executor_away(h->host.executor, b->addr, n * UM_BLOCK_BYTES, in, streams, what, &room))
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++)
		note_eviction(h, run[i], &room, copies, rival);
	return 0;
}

void um_horizon_gone(struct um_horizon *h, uint64_t addr)
{
	struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, addr);

	if (!b)
		return;
	if (b->state != UM_BLOCK_MISSED)
		leave_room(h, &h->dropped, &h->before, h->clock);
	um_horizon_blocks_drop(&h->blocks, b);
}

/* The next use of a block that was not used when it should have been. If that was a guess, the block stays unused for
 * as long as it has been; otherwise nothing is known of it. */
static uint64_t next_of_overdue(const struct um_horizon *h, const struct um_horizon_block *b)
{
	uint64_t op = um_horizon_current(h);

	return b->guess ? op + (op - b->last) : UM_HORIZON_UNKNOWN;
}

void um_horizon_doubt_overdue(struct um_horizon *h, uint64_t late, int pinned)
{
	struct um_horizon_blocks *t = &h->blocks;
	uint64_t op = um_horizon_current(h);
	uint32_t i = 0;

	while (i < t->n[UM_BLOCK_KNOWN]) {
		struct um_horizon_block *b = t->heap[i].block;

		if (b->next + late > op || (b->next == op && (!pinned || b->last == op))) {
			i++;
			continue;
		}
		um_horizon_blocks_set_next(t, b, next_of_overdue(h, b));
	}
}

/* Blocks whose copies are pending, and for whose room no prefetch waits. */
static uint64_t leaving(const struct um_horizon *h)
{
	struct um_executor_room now = um_executor_room_now(h->host.executor),
				done = um_executor_room_done(h->host.executor);
	uint64_t pending = now.outs - done.outs, free = h->copied.n - h->copied.taken;

	return pending < free ? pending : free;
}

/* Makes room for one more block, by evicting one that is used after op number `op`. 0, -ENOSPC, -EAGAIN. */
static int make_room(struct um_horizon *h, uint64_t op)
{
	struct um_horizon_blocks *t = &h->blocks;
	int at_hand = op == um_horizon_current(h), err = 0;
	uint64_t used = um_horizon_blocks_resident(t);
	struct um_horizon_block *b;

	if (at_hand)
		used += leaving(h);
	while (!err && used-- >= um_horizon_capacity(h) && (b = um_horizon_blocks_dead(t)))
		err = um_horizon_evict(h, b, !at_hand);
	/* more than one where the reserve has grown */
	while (!err && um_horizon_blocks_live(t) >= um_horizon_capacity(h)) {
		b = um_horizon_victim(h);
		if (um_horizon_is_needed(h, b, op) && at_hand) {
			um_horizon_doubt_overdue(h, 0, 1);
			b = um_horizon_victim(h);
		}
		err = um_horizon_is_needed(h, b, op) ? -ENOSPC : um_horizon_evict(h, b, !at_hand);
	}
	return err;
}

int um_horizon_request(struct um_horizon *h, struct um_horizon_run *r)
{
	struct um_executor_room room, done, now = um_executor_room_now(h->host.executor);
	const struct um_horizon_freed *freed;
	uint64_t most = um_horizon_capacity(h);
	int ahead = r->op > um_horizon_current(h);
	uint32_t number;

	if (!r->n)
		return 0;
	room = done = um_executor_room_done(h->host.executor);
	wait_for(&room, &now, &h->before);
	wait_for(&room, &now, &h->overwritten);
	h->in_free = later(h->in_free, h->clock);
	while (h->n_in > most + h->copied.taken + h->dropped.taken && (freed = take_room(h, &done, ahead))) {
		wait_for(&room, &now, &freed->room);
		/* a copy begins soon after: an estimate that is too late would leave the link idle */
		if (!um_horizon_on_host(h, r->addr))
			h->in_free = later(h->in_free, freed->ns);
	}
	for (uint32_t i = 0; i < r->n; i++)
		wait_for(&room, &now, &gone_of(h, r->addr + i * UM_BLOCK_BYTES)->room);
	if (um_executor_bring(h->host.executor, r->addr, r->n * UM_BLOCK_BYTES, ahead, &room, &number))
		return -EAGAIN;
	for (uint32_t i = 0; i < r->n; i++) {
		h->in_free += um_horizon_on_host(h, r->block[i]->addr) ? h->host.in_ns : h->host.new_ns;
		r->block[i]->in = number;
		r->block[i]->arrives = h->in_free;
	}
	r->n = 0;
	return 0;
}

int um_horizon_bring(struct um_horizon *h, struct um_horizon_run *r, uint64_t addr, uint64_t op)
{
	int err = 0, ahead = op > um_horizon_current(h);
	uint32_t most = ahead ? UM_HORIZON_RUN : 1; /* a copy begins as soon as one block has left for it */

	if (r->n && (r->n >= most || r->addr + r->n * UM_BLOCK_BYTES != addr || r->op != op))
		err = um_horizon_request(h, r);
	if (!err)
		err = make_room(h, ahead ? h->scanned : op);
	if (err)
		return err;
	if (!r->n)
		*r = (struct um_horizon_run){.addr = addr, .op = op};
	r->block[r->n] = um_horizon_blocks_come(&h->blocks, addr, op, um_horizon_has_host(h, addr));
	r->block[r->n]->early = ahead;
	r->block[r->n]->after_fork = ahead && um_horizon_is_after_fork(h, op);
	if (ahead)
		um_horizon_blocks_set_near(&h->blocks, r->block[r->n], 1);
	else
		r->block[r->n]->last = op;
	for (int i = 0; i < 2 && !ahead && h->n_in % UM_HORIZON_TRIES == 0; i++)
		um_horizon_trust(h, i);
	r->n++;
	h->n_in++;
	return 0;
}
