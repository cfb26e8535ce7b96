/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/warm_start.h"

#define BOUND UINT64_MAX /* used_op of a tensor that has a slot: equal names bind one after the other */

static void bind(struct um_slot *slot, struct um_registry *registry)
{
	slot->flags &= ~(unsigned)UM_SLOT_FIXED;
	slot->bound.v = 0;
	slot->place = UINT64_MAX;
	if (slot->birth >= 0 || !slot->name)
		return;
	for (struct um_tree_node *n = um_tree_first(&registry->live); n; n = um_tree_next(n)) {
		struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->bytes != slot->bytes || !t->name || strcmp(t->name, slot->name) != 0 || t->used_op == BOUND)
			continue;
		slot->bound = t->id;
		slot->place = t->addr;
		slot->flags |= UM_SLOT_FIXED;
		t->used_op = BOUND;
		return;
	}
}

void um_warm_start_bind(struct um_schedule *s, struct um_registry *registry)
{
	for (size_t i = 0; i < s->slots.n; i++)
		bind(&s->slots.at[i], registry);
	for (struct um_tree_node *n = um_tree_first(&registry->live); n; n = um_tree_next(n)) {
		struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->used_op == BOUND)
			t->used_op = 0;
	}
}
