/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_advice.c - advice of a plan for whole blocks
 *
 * The plan advises ranges of slots, the driver accepts whole blocks: a boundary inside a block would split it
 * permanently. So a block is read mostly if each part in it is, whichever slot it belongs to.
 */
#include "replay/compiled_map.h"

#include "model/host_resident.h"

#include <errno.h>

/* Counts, by block, the parts that a hint covers. */
static void count_advised(const struct um_compiled_plan_walk *b, const struct um_hint *h, uint32_t *advised)
{
	const struct um_slot *s = &b->plan->sched.slots.at[h->slot];
	uint32_t from, to;

	um_compiled_plan_parts(b, h->slot, h->off, h->bytes, &from, &to);
	for (uint32_t k = from; k < to; k++) {
		uint64_t addr = b->blocks[b->parts[k].block].addr;
		uint64_t lo = addr > s->place ? addr - s->place : 0, hi = addr + UM_BLOCK_BYTES - s->place;

		if (h->off <= lo && h->off + h->bytes >= (hi < s->bytes ? hi : s->bytes))
			advised[b->parts[k].block]++;
	}
}

static int find_mostly(struct um_compiled_plan_walk *b)
{
	const struct um_plan *p = b->plan;
	uint32_t *parts = calloc(2ull * b->n_blocks + 1, sizeof *parts), *advised = parts + b->n_blocks;

	if (!parts)
		return -ENOMEM;
	for (uint32_t k = 0; k < b->slot_part[p->sched.slots.n]; k++)
		parts[b->parts[k].block]++;
	for (size_t i = 0; i < p->hints.n; i++)
		if (p->hints.at[i].kind == UM_HINT_ADVISE && p->hints.at[i].advice == UM_ADVICE_READ_MOSTLY)
			count_advised(b, &p->hints.at[i], advised);
	for (uint32_t k = 0; k < b->n_blocks; k++)
		b->blocks[k].read_mostly = advised[k] && advised[k] == parts[k];
	free(parts);
	return 0;
}

static int find_host_resident(struct um_compiled_plan_walk *b)
{
	struct um_host_resident *ranges;
	int err = um_host_resident_find(b->plan, &ranges);

	for (uint32_t s = 0; !err && ranges && s < b->n_slots; s++) {
		uint64_t lo = b->plan->sched.slots.at[s].place + ranges[s].off, hi = lo + ranges[s].bytes;
		uint32_t from, to;

		um_compiled_plan_parts(b, s, ranges[s].off, ranges[s].bytes, &from, &to);
		for (uint32_t k = from; k < to; k++) {
			struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

			bl->host_resident = bl->addr >= lo && bl->addr + UM_BLOCK_BYTES <= hi;
		}
	}
	free(ranges);
	return err;
}

#define ADD(runs, bl)                                                                                                  \
	((runs).n && (runs).at[(runs).n - 1].addr + (runs).at[(runs).n - 1].bytes == (bl)->addr                        \
		 ? ((runs).at[(runs).n - 1].bytes += UM_BLOCK_BYTES, 0)                                                \
		 : um_vec_push(&(runs), ((struct um_compiled_plan_run){(bl)->addr, UM_BLOCK_BYTES})))

int um_compiled_plan_advice(struct um_compiled_plan_walk *b)
{
	int err = find_mostly(b);

	um_compiled_plan_mark_leaving(b);
	if (!err)
		err = find_host_resident(b);
	for (uint32_t k = 0; k < b->n_blocks && !err; k++) {
		if (b->blocks[k].read_mostly)
			err = ADD(b->out->read_mostly, &b->blocks[k]);
		else if (b->blocks[k].host_resident)
			err = ADD(b->out->host_resident, &b->blocks[k]);
	}
	return err;
}
