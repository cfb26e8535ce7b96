/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead blocks in a heap, the one that is needed last on top. Each knows where it is, so that it can be taken out.
 */
#include "replay/compiled_map.h"

static int before(struct um_compiled_plan_dead x, struct um_compiled_plan_dead y)
{
	return x.need != y.need ? x.need > y.need : x.block > y.block;
}

static void put(struct um_compiled_plan_walk *b, uint32_t i, struct um_compiled_plan_dead x)
{
	b->dead[i] = x;
	b->blocks[x.block].dead_at = i + 1;
}

static void rise(struct um_compiled_plan_walk *b, uint32_t i, struct um_compiled_plan_dead x)
{
	for (; i > 0 && before(x, b->dead[(i - 1) / 2]); i = (i - 1) / 2)
		put(b, i, b->dead[(i - 1) / 2]);
	put(b, i, x);
}

static void sink(struct um_compiled_plan_walk *b, uint32_t i, struct um_compiled_plan_dead x)
{
	for (uint32_t k; (k = 2 * i + 1) < b->n_dead; i = k) {
		if (k + 1 < b->n_dead && before(b->dead[k + 1], b->dead[k]))
			k++;
		if (!before(b->dead[k], x))
			break;
		put(b, i, b->dead[k]);
	}
	put(b, i, x);
}

void um_compiled_plan_dead_add(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t slot,
			       uint32_t at)
{
	uint32_t far;

	if (bl->dead_at)
		return;
	far = um_compiled_plan_next_touch(b, bl, at);
	bl->since = at;
	bl->dead_slot = slot;
	rise(b, b->n_dead++,
	     (struct um_compiled_plan_dead){far == UINT32_MAX ? UINT64_MAX : b->lap + at + far,
					    (uint32_t)(bl - b->blocks)});
}

void um_compiled_plan_dead_remove(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl)
{
	uint32_t i = bl->dead_at;
	struct um_compiled_plan_dead last;

	if (!i)
		return;
	bl->dead_at = 0;
	last = b->dead[--b->n_dead];
	if (--i == b->n_dead)
		return;
	if (i > 0 && before(last, b->dead[(i - 1) / 2]))
		rise(b, i, last);
	else
		sink(b, i, last);
}

struct um_compiled_plan_block *um_compiled_plan_dead_last(const struct um_compiled_plan_walk *b)
{
	return b->n_dead ? &b->blocks[b->dead[0].block] : NULL;
}
