/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensors.h"

#include "base/debug.h"
#include "base/hash.h"
#include "umadvise.h"

#include <errno.h>
#include <stdlib.h>

void um_tensors_init(struct um_tensors *t, struct um_gpu *gpu)
{
	memset(t, 0, sizeof *t);
	um_registry_init(&t->registry);
	um_arena_pool_init(&t->pool, gpu);
}

void um_tensors_fini(struct um_tensors *t)
{
	um_arena_pool_fini(&t->pool);
	um_registry_fini(&t->registry);
	um_vec_fini(&t->places);
	um_vec_fini(&t->ranges);
	um_vec_fini(&t->planned);
}

int um_tensors_add(struct um_tensors *t, uint64_t addr, uint64_t bytes, const char *name, enum um_role role,
		   unsigned flags, struct um_tensor **out)
{
	int err = um_registry_add(&t->registry, addr, bytes, name, role, flags, out);

	if (err)
		return err;
	t->live++;
	if (!(*out)->parent) {
		t->bytes_live += bytes;
		if (t->bytes_live > t->bytes_live_peak)
			t->bytes_live_peak = t->bytes_live;
	}
	return 0;
}

void um_tensors_remove(struct um_tensors *t, struct um_tensor *tensor)
{
	um_assert(t->live && !tensor->n_children);
	t->live--;
	if (!tensor->parent)
		t->bytes_live -= tensor->bytes;
	else if (!(tensor->flags & UM_TENSOR_DEAD))
		tensor->parent->flags &= ~(unsigned)UM_TENSOR_DEAD;
	um_registry_remove(&t->registry, tensor);
}

static uint64_t kind_of(uint64_t bytes, enum um_role role)
{
	return um_hash_u64(bytes, role);
}

void um_tensors_note_life(struct um_tensors *t, const struct um_tensor *tensor, int stayed)
{
	uint64_t kind = kind_of(tensor->bytes, tensor->role), *known = &t->staying[kind % UM_STAYING_KINDS];

	if (stayed)
		*known = kind;
	else if (*known == kind)
		*known = 0;
}

static int compare_kinds(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int um_tensors_will_stay(const struct um_tensors *t, uint64_t bytes, enum um_role role)
{
	uint64_t kind = kind_of(bytes, role);

	return t->staying[kind % UM_STAYING_KINDS] == kind &&
	       !(t->planned.n && bsearch(&kind, t->planned.at, t->planned.n, sizeof kind, compare_kinds));
}

struct um_tensor *um_tensors_find_start(struct um_tensors *t, const void *ptr, uint64_t bytes)
{
	struct um_tensor *at = um_registry_find(&t->registry, (uint64_t)(uintptr_t)ptr);

	while (at && bytes && at->bytes != bytes)
		at = at->parent;
	return at && at->addr == (uint64_t)(uintptr_t)ptr ? at : NULL;
}

void um_tensors_clip(const struct um_tensors *t, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole)
{
	const struct um_arena_pool_region *r = um_arena_pool_region_at(&t->pool, *addr, *bytes);

	if (!r)
		um_registry_clip(&t->registry, addr, bytes);
	else if (whole)
		*whole = (struct um_executor_range){r->addr, r->bytes};
}

int um_tensors_adopted(const struct um_tensors *t, uint64_t addr, struct um_executor_range *out)
{
	const struct um_tensor *at = um_registry_find(&t->registry, addr);

	while (at && at->parent)
		at = at->parent;
	if (!at || !(at->flags & UM_TENSOR_ADOPTED) || at->flags & UM_TENSOR_UNMANAGED)
		return 0;
	*out = (struct um_executor_range){at->addr, at->bytes};
	return 1;
}

static uint64_t used_blocks(const struct um_arena_pool_region *r)
{
	return (r->used_hi - r->addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
}

uint64_t um_tensors_count_used(const struct um_tensors *t)
{
	uint64_t all = 0;

	for (size_t i = 0; i < t->pool.regions.n; i++)
		all += used_blocks(&t->pool.regions.at[i]);
	return all;
}

size_t um_tensors_used(const struct um_tensors *t, uint64_t capacity, struct um_executor_range **out)
{
	const struct um_arena_pool *a = &t->pool;
	struct um_executor_range *used = malloc((a->regions.n + 1) * sizeof *used);
	uint64_t all = um_tensors_count_used(t);
	size_t n = 0;

	for (size_t i = 0; i < a->regions.n && used; i++) {
		const struct um_arena_pool_region *r = &a->regions.at[i];

		if (r->heap != UM_ARENA_POOL_UNPLANNED || all > capacity)
			used[n++] = (struct um_executor_range){r->addr, used_blocks(r) * UM_BLOCK_BYTES};
	}
	*out = used;
	return n;
}

/* Adds the place of a slot in the main heap. */
static int add_place(struct um_tensors *t, const struct um_slot *slot)
{
	const struct um_arena_pool_region *r = um_arena_pool_region_at(&t->pool, slot->place, slot->bytes);

	if (!r || r->heap != UM_ARENA_POOL_MAIN || slot->flags & UM_SLOT_UNMANAGED)
		return 0;
	if (slot->birth >= 0 && um_vec_push(&t->planned, kind_of(slot->bytes, slot->role)))
		return -ENOMEM;
	return um_vec_push(&t->places, ((struct um_heap_region){slot->place, slot->bytes}));
}

int um_tensors_claim(struct um_tensors *t, const struct um_schedule *s)
{
	int err = 0;

	um_vec_clear(&t->places);
	um_vec_clear(&t->ranges);
	um_vec_clear(&t->planned);
	for (size_t i = 0; i < s->slots.n && !err; i++) {
		const struct um_slot *slot = &s->slots.at[i];

		/* a tensor takes turns at its slot's place and at that of the slot which it becomes */
		if (slot->birth >= 0 || (slot->carry < s->slots.n && slot->carry != i))
			err = add_place(t, slot);
	}
	if (t->planned.n)
		qsort(t->planned.at, t->planned.n, sizeof *t->planned.at, compare_kinds);
	for (struct um_tree_node *n = um_tree_first(&t->registry.live); n && !err; n = um_tree_next(n)) {
		const struct um_tensor *x = um_tree_entry(n, struct um_tensor, node);

		if (!(x->flags & (UM_TENSOR_ADOPTED | UM_TENSOR_UNMANAGED)))
			err = um_vec_push(&t->ranges, ((struct um_heap_region){x->addr, x->bytes}));
	}
	return err ? err : um_arena_pool_claim(&t->pool, t->places.at, t->places.n, t->ranges.at, t->ranges.n);
}

void um_tensors_stats(const struct um_tensors *t, struct umadv_stats *out)
{
	out->tensors_live = t->live;
	out->bytes_live = t->bytes_live;
	out->bytes_live_peak = t->bytes_live_peak;
}
