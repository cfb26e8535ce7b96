/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_host.c - the host memory of a compiled plan, and what the CPU uses
 */
#include "replay/compiled_map.h"

void um_compiled_plan_mark_leaving(struct um_compiled_plan_walk *b)
{
	for (size_t i = 0; i < b->plan->hints.n; i++) {
		const struct um_hint *h = &b->plan->hints.at[i];
		uint32_t from, to;

		if (h->kind != UM_HINT_EVICT)
			continue;
		um_compiled_plan_parts(b, h->slot, h->off, h->bytes, &from, &to);
		for (; from < to; from++)
			b->blocks[b->parts[from].block].left = 1;
	}
}

void um_compiled_plan_keep_left(struct um_compiled_plan_walk *b)
{
	for (uint32_t k = 0; k < b->n_blocks; k++)
		b->blocks[k].left = b->blocks[k].left ? 1 : 0;
}

int um_compiled_plan_for_cpu(const struct um_compiled_plan_walk *b, const struct um_compiled_plan_block *bl,
			     uint32_t at, uint32_t slot)
{
	const struct um_schedule *s = &b->plan->sched;
	uint32_t next = um_compiled_plan_next_touch(b, bl, at);

	if (slot < s->slots.n && s->slots.at[slot].flags & UM_SLOT_SUPPLIED)
		return 0;
	for (; at < s->ops.n && s->ops.at[at].stream == UM_STREAM_CPU; at++, next--)
		if (!next)
			return 1;
	return 0;
}
