/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer_rotation.c - moves block states between slots with rotating buffers at the end of an iteration
 *
 * Slots whose tensors rotate through several places take over the state of those places.
 */
#include "replay/compiled_map.h"

#include <errno.h>

/* Of rotating slots: the slot whose tensor is at the planned place of `slot` when the next iteration begins. That is
 * the slot that it is carried from; a slot that is born takes the place of the oldest one. */
static uint32_t turn_of(const struct um_compiled_plan_walk *b, uint32_t slot)
{
	const struct um_schedule *s = &b->plan->sched;

	if (s->slots.at[slot].carry < s->slots.n)
		return s->slots.at[slot].carry;
	for (size_t hops = 0; b->successor[slot] != UM_NO_SLOT && hops < s->slots.n; hops++)
		slot = b->successor[slot];
	return slot;
}

/* The slot whose memory this slot has in the next iteration; its own number: it keeps its memory. */
static uint32_t taken_from(const struct um_compiled_plan_walk *b, uint32_t slot)
{
	const struct um_schedule *s = &b->plan->sched;
	uint32_t from = b->moves[slot] && !um_slot_is_first_step(&s->slots.at[slot]) ? turn_of(b, slot) : slot;
	uint32_t n = b->slot_part[slot + 1] - b->slot_part[slot];

	if (b->slot_part[from + 1] - b->slot_part[from] != n ||
	    (s->slots.at[slot].place - s->slots.at[from].place) % UM_BLOCK_BYTES)
		return slot;
	return from;
}

/* Does the first op that uses the slot overwrite its content? */
static int is_overwritten(const struct um_schedule *s, uint32_t slot)
{
	for (size_t i = 0; i < s->uses.n; i++)
		if (s->uses.at[i].slot == slot)
			return !(s->uses.at[i].access & UM_READ) && s->uses.at[i].bytes == s->slots.at[slot].bytes;
	return 0;
}

/* A tensor that will be supplied is on the host. */
static void begin_supplied(struct um_compiled_plan_walk *b, uint32_t slot)
{
	int waste = is_overwritten(&b->plan->sched, slot);

	for (uint32_t k = b->slot_part[slot]; k < b->slot_part[slot + 1]; k++) {
		struct um_compiled_plan_part *p = &b->parts[k];
		struct um_compiled_plan_block *bl = &b->blocks[p->block];

		um_compiled_plan_dead_remove(b, bl);
		p->wanted = 0;
		p->away = 1;
		p->waste = (uint8_t)waste;
		bl->wanted = 0;
		bl->away = 1;
		bl->resident = bl->unsure = 0;
		bl->last_in = bl->last_out = INT32_MIN;
	}
}

static uint64_t count_resident(const struct um_compiled_plan_walk *b)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < b->n_blocks; k++)
		n += b->blocks[k].resident != 0;
	return n;
}

/* State of a slot's parts and of their blocks, which belong to it alone. */
struct turn {
	struct um_compiled_plan_part part;
	struct um_compiled_plan_block block;
};

int um_compiled_plan_turn(struct um_compiled_plan_walk *b)
{
	const struct um_schedule *s = &b->plan->sched;
	struct turn *was = malloc((b->slot_part[s->slots.n] + 1ull) * sizeof *was); /* of the rotating ones */

	if (!was)
		return -ENOMEM;
	um_compiled_plan_keep_left(b);
	for (uint32_t i = 0; i < s->slots.n; i++)
		for (uint32_t k = b->slot_part[i]; b->moves[i] && k < b->slot_part[i + 1]; k++)
			was[k] = (struct turn){b->parts[k], b->blocks[b->parts[k].block]};
	for (uint32_t i = 0; i < s->slots.n; i++) {
		uint32_t from = taken_from(b, i), n = b->slot_part[i + 1] - b->slot_part[i];

		if (um_slot_is_first_step(&s->slots.at[i]))
			begin_supplied(b, i);
		if (from == i)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			struct um_compiled_plan_part *p = &b->parts[b->slot_part[i] + k];
			struct um_compiled_plan_block *bl = &b->blocks[p->block];
			const struct turn *t = &was[b->slot_part[from] + k];

			um_compiled_plan_dead_remove(b, bl);
			p->wanted = t->part.wanted;
			p->away = t->part.away;
			p->waste = t->part.waste;
			bl->wanted = t->block.wanted;
			bl->away = t->block.away;
			bl->resident = t->block.resident;
			bl->unsure = t->block.unsure;
			bl->dead_on_host = t->block.dead_on_host;
			bl->last_in = t->block.last_in;
			bl->last_out = t->block.last_out;
			if (bl->resident && !bl->wanted && !bl->away)
				um_compiled_plan_dead_add(b, bl, i, 0);
		}
	}
	b->resident = count_resident(b);
	free(was);
	return 0;
}

/* By block: the block whose memory it has in the next iteration, and the slot by which to find it. Blocks with several
 * successors have no entry. */
static int map_turns(struct um_compiled_plan_walk *b)
{
	struct um_compiled_plan *out = b->out;
	uint8_t *taken = calloc(b->n_blocks + 1ull, 1);

	out->from = malloc((b->n_blocks + 1ull) * sizeof *out->from);
	out->rotating = malloc((b->n_blocks + 1ull) * sizeof *out->rotating);
	if (!taken || !out->from || !out->rotating) {
		free(taken);
		return -ENOMEM;
	}
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		out->from[k] = k;
		out->rotating[k] = UM_NO_SLOT;
	}
	for (uint32_t i = 0; i < b->n_slots; i++) {
		uint32_t j = b->slot_part[taken_from(b, i)];

		out->ambiguous |= um_slot_is_first_step(&b->plan->sched.slots.at[i]);
		for (uint32_t k = b->slot_part[i]; k < b->slot_part[i + 1] && b->moves[i]; k++, j++) {
			out->from[b->parts[k].block] = b->parts[j].block;
			out->rotating[b->parts[k].block] = i;
		}
	}
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		out->ambiguous |= taken[out->from[k]];
		taken[out->from[k]] = 1;
	}
	free(taken);
	return 0;
}

int um_compiled_plan_end(struct um_compiled_plan_walk *b)
{
	struct um_compiled_plan *out = b->out;
	int err = map_turns(b);

	out->resident = calloc(b->n_blocks + 1ull, 1);
	if (!out->resident || err)
		return -ENOMEM;
	for (uint32_t k = 0; k < b->n_blocks; k++)
		out->resident[k] = (uint8_t)b->blocks[k].resident;
	return 0;
}
