/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan gives advice on ranges of slots, the driver takes it for whole blocks: a boundary inside one would cut it
 * for good. So a block is read mostly if each part in it is, whoever it belongs to.
 */
#include "replay/program_map.h"

#include <errno.h>

/* Counts, by block, the parts that a hint covers. */
static void count_advised(const struct um_program_walk *b, const struct um_hint *h, uint32_t *advised)
{
	const struct um_slot *s = &b->plan->sched.slots.at[h->slot];
	uint32_t from, to;

	um_program_parts(b, h->slot, h->off, h->bytes, &from, &to);
	for (uint32_t k = from; k < to; k++) {
		uint64_t addr = b->blocks[b->parts[k].block].addr;
		uint64_t lo = addr > s->place ? addr - s->place : 0, hi = addr + UM_BLOCK_BYTES - s->place;

		if (h->off <= lo && h->off + h->bytes >= (hi < s->bytes ? hi : s->bytes))
			advised[b->parts[k].block]++;
	}
}

int um_program_advice(struct um_program_walk *b)
{
	const struct um_plan *p = b->plan;
	uint32_t *parts = calloc(2ull * b->n_blocks + 1, sizeof *parts), *advised = parts + b->n_blocks;
	int err = parts ? 0 : -ENOMEM;

	for (uint32_t k = 0; !err && k < b->slot_part[p->sched.slots.n]; k++)
		parts[b->parts[k].block]++;
	for (size_t i = 0; !err && i < p->hints.n; i++)
		if (p->hints.at[i].kind == UM_HINT_ADVISE && p->hints.at[i].advice == UM_ADVICE_READ_MOSTLY)
			count_advised(b, &p->hints.at[i], advised);
	for (uint32_t k = 0; !err && k < b->n_blocks; k++) {
		struct um_program_block *bl = &b->blocks[k];
		struct um_program_run *last = b->out->mostly.n ? &b->out->mostly.at[b->out->mostly.n - 1] : NULL;

		if (!advised[k] || advised[k] != parts[k])
			continue;
		bl->mostly = 1;
		if (last && last->addr + last->bytes == bl->addr)
			last->bytes += UM_BLOCK_BYTES;
		else
			err = um_vec_push(&b->out->mostly, ((struct um_program_run){bl->addr, UM_BLOCK_BYTES}));
	}
	free(parts);
	return err;
}
