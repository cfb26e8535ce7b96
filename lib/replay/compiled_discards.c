/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_discards.c - finds the dead block that is needed last, to make room
 *
 * A heap with the block needed last on top. Each block knows its position, so that it can be removed.
 */
#include "replay/compiled_map.h"

#include "base/pqueue.h"

#define MOST_OPS (UINT64_MAX / 2 - 1) /* instead of infinite */

static int before(const struct um_compiled_plan_dead *x, const struct um_compiled_plan_dead *y)
{
	return x->need != y->need ? x->need > y->need : x->block > y->block;
}

static void moved(const struct um_compiled_plan_dead *x, size_t i)
{
	x->block->dead_at = (uint32_t)i + 1;
}

UM_PQUEUE_TRACKED(dead, struct um_compiled_plan_dead, before, moved)

void um_compiled_plan_dead_add(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t slot,
			       uint32_t at)
{
	uint32_t distance;

	if (bl->dead_at)
		return;
	distance = um_compiled_plan_next_touch(b, bl, at);
	bl->since = at;
	bl->dead_slot = slot;
	b->dead[b->n_dead] =
		(struct um_compiled_plan_dead){distance == UINT32_MAX ? MOST_OPS : b->ops_before + at + distance, bl};
	if (b->plan->host_budget && bl->left)
		b->dead[b->n_dead].need += MOST_OPS + 1;
	dead_rise(b->dead, b->n_dead++);
}

void um_compiled_plan_dead_remove(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl)
{
	uint32_t i = bl->dead_at;

	if (!i)
		return;
	bl->dead_at = 0;
	if (--i == --b->n_dead)
		return;
	b->dead[i] = b->dead[b->n_dead];
	dead_sink(b->dead, b->n_dead, i);
	dead_rise(b->dead, i);
}

struct um_compiled_plan_block *um_compiled_plan_dead_last(const struct um_compiled_plan_walk *b)
{
	return b->n_dead ? b->dead[0].block : NULL;
}
