/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/discard_guard.h"

/* Does the current op write all of the tensor's part in [addr, end), and read none of it? */
static int is_overwritten(const struct um_discard_guard *g, const struct um_tensor *t, uint64_t addr, uint64_t end)
{
	uint64_t lo = addr > t->addr ? addr : t->addr, hi = end < t->addr + t->bytes ? end : t->addr + t->bytes;
	int whole = 0;

	for (uint32_t i = 0; i < g->n_uses; i++) {
		const struct um_use *u = &g->uses[i];
		uint64_t from = u->tensor->addr + u->off;

		if (from >= hi || from + u->bytes <= lo)
			continue;
		if (u->access & UM_READ)
			return 0;
		whole |= u->access & UM_WRITE && from <= lo && from + u->bytes >= hi;
	}
	return whole;
}

/* Does a tensor that overlaps [addr, end) need its content there? */
static int is_needed(const struct um_discard_guard *g, const struct um_tensor *t, uint64_t addr, uint64_t end,
		     enum um_executor_waits waits)
{
	if (waits == UM_NO_OP_WAITS)
		return 1;
	if (t->flags & (UM_TENSOR_DEAD | UM_TENSOR_AGAIN) || (waits == UM_OP_WAITS && is_overwritten(g, t, addr, end)))
		return 0;
	return !(t->flags & UM_TENSOR_TRANSIENT) || t->used_op > g->before_iteration;
}

unsigned um_discard_users(const struct um_discard_guard *g, uint64_t addr, uint64_t bytes)
{
	struct um_tree_node *n = um_tree_floor(&g->registry->live, addr, UINT64_MAX);
	const struct um_tensor *t = n ? um_tree_entry(n, struct um_tensor, node) : NULL;
	unsigned users = um_arena_pool_users(g->pool, addr, bytes);

	for (; t; t = t->parent)
		users |= t->addr + t->bytes > addr ? t->streams : 0;
	for (n = um_tree_ceil(&g->registry->live, addr + 1, 0); n && n->a < addr + bytes; n = um_tree_next(n))
		users |= um_tree_entry(n, struct um_tensor, node)->streams;
	return users;
}

int um_discard_search(const struct um_discard_guard *g, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	struct um_tree_node *n = um_tree_floor(&g->registry->live, addr, UINT64_MAX);
	uint64_t end = addr + bytes;
	int allowed = 1;

	if (n) /* tensors that contain this one begin earlier and may end later */
		for (const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node); t; t = t->parent) {
			if (t->addr + t->bytes <= addr)
				continue;
			if (is_needed(g, t, addr, end, waits))
				return 0;
			allowed = 2;
		}
	for (n = n ? um_tree_next(n) : um_tree_first(&g->registry->live); n; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->addr >= end)
			break;
		if (is_needed(g, t, addr, end, waits))
			return 0;
		allowed = 2;
	}
	return allowed;
}
