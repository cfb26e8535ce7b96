/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_lru.c - simulates the driver's list of blocks over steady iterations
 *
 * The iteration is repeated with the driver's list. At first blocks are refreshed where necessary; then these places
 * are recorded, and used from then on, with more where they are not enough. It ends when an iteration needs no further
 * refresh and leaves the list unchanged.
 */
#include "replay/driver_lru.h"

#include "replay/lanes.h"

#include <errno.h>
#include <limits.h>

#define MARGIN                                                                                                         \
	(UM_LANES_IN * UM_RUN_IN) /* number of blocks in flight at once: it is unknown which worker takes the
					    next one first */
#define NEAR 64 /* a block is refreshed together with a neighbour in memory if it is this near in the list */
#define WARM 2 /* iterations before places are recorded */
#define ITERATIONS_MOST 16

enum state { GONE, LEFT, STAYS };
enum due { DUE_NONE, DUE_OUT, DUE_DROP };

struct block {
	uint32_t next, prev; /* in the driver's list */
	int32_t pending; /* number of the out or drop that is queued, and not certainly complete */
	uint64_t serial; /* when it moved to the tail */
	uint8_t state, due; /* enum */
};

struct walk {
	const struct um_compiled_plan *p;
	const struct um_compiled_iteration *iteration;
	struct um_driver_lru *to;
	uint32_t n; /* blocks; number n is the list's anchor */
	struct block *blocks, *were; /* [n + 1]; before renaming */
	uint32_t *block_of; /* by action: its first block */
	uint32_t *outs, *drops; /* actions by number */
	uint64_t unused; /* blocks of unused memory */
	uint64_t serial;
	uint32_t left; /* blocks in the list that are LEFT */
	int32_t outs_done; /* of this iteration; below zero: of the previous one */
	uint32_t drops_done;
	uint32_t *order; /* the list at the beginning of the iteration */
	uint64_t n_order, unused_order;
	int recording, more; /* places of refreshes are recorded; new ones were recorded in this iteration */
	int err;
};

/* --- the driver's list -------------------------------------------------------------------------------------------- */

static void unlink_block(struct walk *w, uint32_t k)
{
	struct block *b = w->blocks;

	b[b[k].prev].next = b[k].next;
	b[b[k].next].prev = b[k].prev;
}

static void to_tail(struct walk *w, uint32_t k)
{
	struct block *b = w->blocks;

	b[k].prev = b[w->n].prev;
	b[k].next = w->n;
	b[b[k].prev].next = k;
	b[w->n].prev = k;
	b[k].serial = ++w->serial;
}

static void take(struct walk *w, uint32_t k)
{
	struct block *b = &w->blocks[k];

	if (b->state == GONE)
		return;
	w->left -= b->state == LEFT;
	b->state = GONE;
	unlink_block(w, k);
}

/* --- evictions ---------------------------------------------------------------------------------------------------- */

static void leave(struct walk *w, uint32_t number, int before)
{
	uint32_t action = w->outs[number], first = w->block_of[action];

	for (uint32_t i = first; i < first + um_driver_lru_blocks(&w->iteration->actions.at[action]); i++) {
		uint32_t k = before ? w->to->successor[i] : i;
		struct block *b = &w->blocks[k];

		b->due = DUE_NONE;
		if (b->state != STAYS)
			continue;
		b->state = LEFT;
		w->left++;
	}
}

static void outs_until(struct walk *w, int32_t count)
{
	for (; w->outs_done < count; w->outs_done++)
		if (w->outs_done < 0)
			leave(w, (uint32_t)(w->outs_done + (int32_t)w->iteration->n_out), 1);
		else
			leave(w, (uint32_t)w->outs_done, 0);
}

static void drops_until(struct walk *w, uint32_t count)
{
	for (; w->drops_done < count; w->drops_done++) {
		uint32_t action = w->drops[w->drops_done], first = w->block_of[action];

		for (uint32_t k = first; k < first + um_driver_lru_blocks(&w->iteration->actions.at[action]); k++) {
			w->blocks[k].due = DUE_NONE;
			if (w->blocks[k].state != GONE)
				w->unused++;
			take(w, k);
		}
	}
}

/* Queues an evicting action. */
static void put(struct walk *w, uint32_t action, int32_t number, enum due due)
{
	uint32_t first = w->block_of[action];

	for (uint32_t k = first; k < first + um_driver_lru_blocks(&w->iteration->actions.at[action]); k++) {
		w->blocks[k].pending = number;
		w->blocks[k].due = (uint8_t)due;
	}
}

/* --- refreshes ---------------------------------------------------------------------------------------------------- */

/* A block is evicted by an action that was queued before this in: the in waits for that action, too. */
static void wait_for(struct walk *w, struct um_driver_lru_in *in, const struct block *b)
{
	if (b->due == DUE_DROP) {
		in->drops = (uint32_t)b->pending + 1;
		drops_until(w, in->drops);
	} else {
		in->room = b->pending + 1;
		outs_until(w, in->room);
	}
	w->more |= w->recording;
}

static void note(struct walk *w, struct um_driver_lru_in *in, uint32_t k)
{
	if (!w->recording)
		return;
	if (um_vec_push(&w->to->refreshes, ((struct um_driver_lru_refresh){k, UM_DRIVER_LRU_NONE, 0}))) {
		w->err = -ENOMEM;
		return;
	}
	*(in->first == UM_DRIVER_LRU_NONE ? &in->first : &w->to->refreshes.at[in->last].next) =
		(uint32_t)w->to->refreshes.n - 1;
	in->last = (uint32_t)w->to->refreshes.n - 1;
	w->more = 1;
}

/* Is the block resident, without a queued eviction? */
static int stays(const struct block *b)
{
	return b->state == STAYS && b->due == DUE_NONE;
}

/* Refreshes a block, and its neighbours with it. */
static void refresh(struct walk *w, struct um_driver_lru_in *in, uint32_t first)
{
	uint64_t near = w->blocks[first].serial + NEAR, next = w->p->blocks.at[first];

	for (uint32_t k = first; k < first + UM_RUN_REFRESH && k < w->n; k++, next += UM_BLOCK_BYTES) {
		const struct block *b = &w->blocks[k];

		if (w->p->blocks.at[k] != next || !stays(b) || b->serial > near)
			break;
		unlink_block(w, k);
		to_tail(w, k);
		note(w, in, k);
	}
}

/* Refreshes blocks that stay among the first `n` blocks of the list that may be evicted. */
static void refresh_first(struct walk *w, struct um_driver_lru_in *in, uint64_t n)
{
	uint32_t before = w->n; /* the last block so far that may be evicted */

	for (uint64_t seen = 0; w->left && seen < n && seen < w->left;) {
		uint32_t k = w->blocks[before].next;

		if (w->blocks[k].state == LEFT) {
			before = k;
			seen++;
			continue;
		}
		if (w->blocks[k].due != DUE_NONE) {
			uint64_t unused = w->unused;

			wait_for(w, in, &w->blocks[k]);
			n -= w->unused - unused < n ? w->unused - unused : n;
			before = w->n; /* it may be gone */
			seen = 0;
			continue;
		}
		refresh(w, in, k);
	}
}

/* Finds memory for a block: the driver's next victim. */
static void find_memory(struct walk *w, struct um_driver_lru_in *in)
{
	uint32_t head;

	if (!w->unused && w->blocks[w->blocks[w->n].next].state != LEFT)
		refresh_first(w, in, 1);
	head = w->blocks[w->n].next;
	if (w->unused) {
		w->unused--;
	} else if (head != w->n && w->blocks[head].state == LEFT) {
		take(w, head);
		in->evicts++;
	} else if (!w->err) {
		w->err = -ENOTSUP;
	}
}

static void arrive(struct walk *w, struct um_driver_lru_in *in)
{
	uint32_t first = w->block_of[in->action],
		 end = first + um_driver_lru_blocks(&w->iteration->actions.at[in->action]);
	uint64_t wanted = MARGIN;

	if (in->room != INT32_MIN)
		outs_until(w, in->room);
	drops_until(w, in->drops);
	for (uint32_t i = in->first; i != UM_DRIVER_LRU_NONE; i = w->to->refreshes.at[i].next) {
		uint32_t k = w->to->refreshes.at[i].block;

		w->to->refreshes.at[i].idle = !stays(&w->blocks[k]);
		if (w->to->refreshes.at[i].idle)
			continue;
		unlink_block(w, k);
		to_tail(w, k);
	}
	in->evicts = in->resident = 0;
	for (uint32_t k = first; k < end; k++)
		wanted += w->blocks[k].state == GONE;
	if (wanted > MARGIN && wanted > w->unused)
		refresh_first(w, in, wanted - w->unused);
	for (uint32_t k = first; k < end; k++) {
		if (w->blocks[k].state == GONE)
			find_memory(w, in);
		else
			in->resident++;
		take(w, k);
		to_tail(w, k);
		w->blocks[k].state = STAYS;
		w->blocks[k].due = DUE_NONE;
	}
}

/* --- iterations --------------------------------------------------------------------------------------------------- */

/* Renames blocks for the next iteration. */
static void rename_blocks(struct walk *w)
{
	struct block *was = w->blocks;

	w->blocks = w->were;
	w->were = was;
	for (uint32_t k = 0; k <= w->n; k++) {
		struct block *b = &w->blocks[w->to->successor[k]];

		*b = was[k];
		b->next = w->to->successor[was[k].next];
		b->prev = w->to->successor[was[k].prev];
	}
}

/* Renumbers this iteration's actions as those of the previous one. Its unfinished work is complete, except for its last
 * outs. */
static void begin(struct walk *w)
{
	int32_t n_out = (int32_t)w->iteration->n_out;

	outs_until(w, 0);
	drops_until(w, w->iteration->n_drop);
	rename_blocks(w);
	w->drops_done = 0;
	w->outs_done -= n_out;
	for (int32_t i = w->outs_done; i < 0; i++) {
		uint32_t action = w->outs[i + n_out], first = w->block_of[action];

		for (uint32_t k = first; k < first + um_driver_lru_blocks(&w->iteration->actions.at[action]); k++)
			if (w->blocks[w->to->successor[k]].due == DUE_OUT)
				w->blocks[w->to->successor[k]].pending = i;
	}
}

static void go_round(struct walk *w)
{
	const struct um_compiled_iteration *iteration = w->iteration;
	int32_t in = 0, out = 0, drop = 0;

	begin(w);
	for (uint32_t i = 0; i < iteration->actions.n && !w->err; i++) {
		if (iteration->actions.at[i].kind == UM_ACTION_PREFETCH)
			arrive(w, &w->to->ins[in++]);
		else if (iteration->actions.at[i].kind == UM_ACTION_EVICT)
			put(w, i, out++, DUE_OUT);
		else
			put(w, i, drop++, DUE_DROP);
	}
}

/* Is the list as it was at the previous call? */
static int is_settled(struct walk *w)
{
	int same = w->unused == w->unused_order;
	uint64_t n = 0;

	for (uint32_t k = w->blocks[w->n].next; k != w->n; k = w->blocks[k].next, n++) {
		same = same && n < w->n_order && w->order[n] == k;
		w->order[n] = k;
	}
	same = same && n == w->n_order;
	w->n_order = n;
	w->unused_order = w->unused;
	return same;
}

/* Reaches the list's order in all iterations. */
static int settle(struct walk *w)
{
	for (int iteration = 0; iteration < ITERATIONS_MOST; iteration++) {
		w->recording = iteration >= WARM;
		w->more = 0;
		go_round(w);
		if (w->err)
			return w->err;
		if (is_settled(w) && w->recording && !w->more)
			return 0;
	}
	return -ENOTSUP;
}

/* --- interface ---------------------------------------------------------------------------------------------------- */

static void number_actions(struct walk *w)
{
	uint32_t in = 0, out = 0, drop = 0;

	for (uint32_t i = 0; i < w->iteration->actions.n; i++) {
		const struct um_action *a = &w->iteration->actions.at[i];

		w->block_of[i] = (uint32_t)um_compiled_plan_find(w->p, a->addr);
		if (a->kind == UM_ACTION_PREFETCH)
			w->to->ins[in++] = (struct um_driver_lru_in){.action = i,
								     .first = UM_DRIVER_LRU_NONE,
								     .last = UM_DRIVER_LRU_NONE,
								     .room = a->room,
								     .drops = a->drops};
		else if (a->kind == UM_ACTION_EVICT)
			w->outs[out++] = i;
		else
			w->drops[drop++] = i;
	}
}

/* The resident blocks at the end of an iteration, by address. */
static int fill(struct walk *w, uint64_t capacity_blocks)
{
	uint64_t n = 0;

	w->blocks[w->n].next = w->blocks[w->n].prev = w->to->successor[w->n] = w->n;
	for (uint32_t k = 0; k < w->n; k++) {
		w->to->successor[w->p->from[k]] = k;
		if (!w->p->resident[k])
			continue;
		w->blocks[k].state = STAYS;
		to_tail(w, k);
		n++;
	}
	if (n > capacity_blocks)
		return -ENOTSUP;
	w->unused = capacity_blocks - n;
	w->outs_done = (int32_t)w->iteration->n_out;
	w->drops_done = w->iteration->n_drop;
	return 0;
}

int um_driver_lru_find(const struct um_compiled_plan *p, uint64_t capacity_blocks, struct um_driver_lru *out)
{
	const struct um_compiled_iteration *iteration = &p->iterations[UM_COMPILED_PLAN_STEADY];
	struct walk w = {.p = p, .iteration = iteration, .to = out, .n = (uint32_t)p->blocks.n};
	int err = -ENOMEM;

	memset(out, 0, sizeof *out);
	if (!p->resident || p->ambiguous || p->over)
		return -ENOTSUP;
	out->ins = calloc(iteration->n_in + 1ull, sizeof *out->ins);
	out->successor = calloc(w.n + 1ull, sizeof *out->successor);
	w.blocks = calloc(w.n + 1ull, sizeof *w.blocks);
	w.were = calloc(w.n + 1ull, sizeof *w.were);
	w.order = calloc(w.n + 1ull, sizeof *w.order);
	w.block_of = calloc(iteration->actions.n + 1, sizeof *w.block_of);
	w.outs = calloc(iteration->n_out + 1ull, sizeof *w.outs);
	w.drops = calloc(iteration->n_drop + 1ull, sizeof *w.drops);
	if (out->ins && out->successor && w.blocks && w.were && w.order && w.block_of && w.outs && w.drops) {
		number_actions(&w);
		err = fill(&w, capacity_blocks);
	}
	if (!err)
		err = settle(&w);
	free(w.blocks);
	free(w.were);
	free(w.order);
	free(w.block_of);
	free(w.outs);
	free(w.drops);
	return err;
}

void um_driver_lru_fini(struct um_driver_lru *o)
{
	um_vec_fini(&o->refreshes);
	free(o->ins);
	free(o->successor);
	memset(o, 0, sizeof *o);
}
