/* SPDX-License-Identifier: Apache-2.0
 *
 * context_tensors.c - allocates, adopts and frees tensors and reports them
 */
#include "runtime/context.h"

#include "gpu/device.h"

#include <errno.h>

#define CLAIMS 8 /* of memory with such a discard */

/* Tensors allocated before the first op, and parameters and optimizer state, are probably long-lived. Placed among
 * short-lived tensors, they would leave parts of blocks that no other tensor can use. */
static int is_long_lived(const struct umadv *adv, enum um_role role)
{
	return role == UM_ROLE_PARAM || role == UM_ROLE_OPTIM || !adv->op.n;
}

/* Allocates at the planned address if there is one and it is free, else at any free address. */
static int find_place(struct umadv *adv, uint64_t bytes, enum um_role role, uint64_t *addr)
{
	struct um_replan *r = &adv->replan;
	struct um_arena_pool *pool = &adv->tensors.pool;
	int hinting = um_replan_hints(r);

	for (int choice = 0; choice < 2; choice++) {
		uint64_t place = um_cursor_place(&r->cursor, bytes, choice);

		if (place != UINT64_MAX && um_arena_pool_alloc_at(pool, place, bytes) == 0) {
			*addr = place;
			r->n_placed++;
			return 0;
		}
	}
	if (hinting || (r->executor && r->cursor.on && um_follow_waits(r->state))) {
		r->misplaced++;
		r->n_misplaced++;
	}
	/* While no plan is followed, tensors without a planned address stay in the main heap. A program whose shapes
	 * always change never follows a plan, and its tensors in two heaps would evict each other. */
	return um_arena_pool_alloc(pool, bytes,
				   hinting		      ? UM_ARENA_POOL_UNPLANNED
				   : is_long_lived(adv, role) ? UM_ARENA_POOL_LONG_LIVED
							      : UM_ARENA_POOL_MAIN,
				   addr);
}

/* Memory with a discard in progress that does not end is not used again: other memory is taken. */
static int take_place(struct umadv *adv, uint64_t bytes, enum um_role role, uint64_t *addr)
{
	int err = find_place(adv, bytes, role, addr);

	for (int i = 0; !err && adv->replan.executor && um_executor_claim(adv->replan.executor, *addr, bytes); i++) {
		if (i == CLAIMS)
			return -ENOMEM;
		err = um_arena_pool_alloc(&adv->tensors.pool, bytes, UM_ARENA_POOL_MAIN, addr);
	}
	return err;
}

static int add_tensor(struct umadv *adv, uint64_t addr, uint64_t bytes, const char *name, enum um_role role,
		      unsigned flags)
{
	struct um_event e = {.kind = UM_EV_ALLOC};
	struct um_tensor *t;
	int err = um_tensors_add(&adv->tensors, addr, bytes, name, role, flags, &t);

	if (err)
		return err;
	t->born_iter = adv->iterations.n;
	t->born_op = adv->iterations.op_serial;
	adv->iterations.finder.born += bytes;
	e.alloc.id = t->id;
	e.alloc.tensor = t;
	e.alloc.bytes = bytes;
	e.alloc.name = t->name;
	e.alloc.role = role;
	um_context_feed(adv, &e, NULL);
	if (adv->device.cuda && t->name)
		um_device_standin_name(adv->device.gpu, (void *)(uintptr_t)addr, t->name);
	if (um_activity_source_on(&adv->sinks.activities))
		um_activity_source_tensor(&adv->sinks.activities, t);
	if (adv->replan.cursor.on && adv->replan.cursor.sched && um_cursor_alloc(&adv->replan.cursor, t))
		um_context_leave(adv);
	return 0;
}

int um_context_alloc(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, void **ptr)
{
	int unmanaged = role == UM_ROLE_COMM;
	uint64_t addr;
	void *p = NULL;
	int err;

	if (unmanaged) {
		if (!adv->device.gpu->api->cudaMalloc || adv->device.gpu->api->cudaMalloc(adv->device.gpu, &p, bytes))
			return -ENOMEM;
		addr = (uint64_t)(uintptr_t)p;
	} else {
		err = take_place(adv, bytes, role, &addr);
		if (err)
			return err;
	}
	err = add_tensor(adv, addr, bytes, name, role, unmanaged ? UM_TENSOR_UNMANAGED : 0);
	if (err) {
		if (unmanaged)
			adv->device.gpu->api->cudaFree(adv->device.gpu, p);
		else
			um_arena_pool_free(&adv->tensors.pool, addr, bytes, 0);
		return err;
	}
	*ptr = (void *)(uintptr_t)addr;
	return 0;
}

int um_context_adopt(struct umadv *adv, void *ptr, uint64_t bytes, const char *name, enum um_role role)
{
	return add_tensor(adv, (uint64_t)(uintptr_t)ptr, bytes, name, role, UM_TENSOR_ADOPTED);
}

static int remove_tensor(struct umadv *adv, struct um_tensor *t)
{
	struct um_event e = {.kind = UM_EV_FREE};

	if (t->n_children)
		return -EINVAL;
	if (t->parent && t->parent->used_op < t->used_op) /* the part's content now belongs to the parent */
		t->parent->used_op = t->used_op;
	if (t->parent)
		t->parent->streams |= t->streams;
	e.free.id = t->id;
	e.free.tensor = t;
	um_context_feed(adv, &e, NULL);
	if (um_activity_source_on(&adv->sinks.activities))
		um_activity_source_tensor_end(&adv->sinks.activities, t);
	um_tensors_remove(&adv->tensors, t);
	return 0;
}

int um_context_free(struct umadv *adv, void *ptr)
{
	struct um_tensor *t = um_tensors_find_start(&adv->tensors, ptr, 0);

	while (t && t->flags & UM_TENSOR_ADOPTED)
		t = t->parent;
	if (!t || t->addr != (uint64_t)(uintptr_t)ptr)
		return -EINVAL;
	uint64_t addr = t->addr, bytes = t->bytes;
	int unmanaged = t->flags & UM_TENSOR_UNMANAGED;
	unsigned users = t->streams;
	int err;

	if (adv->horizon.host.capacity)
		um_predictor_free(&adv->predictor, t);
	err = remove_tensor(adv, t);
	if (err)
		return err;
	if (unmanaged)
		adv->device.gpu->api->cudaFree(adv->device.gpu, ptr);
	else
		um_arena_pool_free(&adv->tensors.pool, addr, bytes, users);
	if (adv->horizon.host.capacity && !unmanaged)
		um_horizon_free(&adv->horizon, addr, bytes);
	return 0;
}

/* Forgets the residency of the blocks that contain no other tensor. */
static void forget(struct umadv *adv, uint64_t addr, uint64_t bytes)
{
	for (uint64_t a = addr & ~(UM_BLOCK_BYTES - 1); a < addr + bytes; a += UM_BLOCK_BYTES) {
		uint64_t lo = a, left = UM_BLOCK_BYTES;

		um_tensors_clip(&adv->tensors, &lo, &left, NULL);
		if (left)
			continue;
		um_executor_forget(adv->replan.executor, a, UM_BLOCK_BYTES);
		if (adv->horizon.host.capacity)
			um_horizon_gone(&adv->horizon, a);
	}
}

int um_context_disown(struct umadv *adv, void *ptr, uint64_t bytes)
{
	struct um_tensor *t = um_tensors_find_start(&adv->tensors, ptr, bytes);
	uint64_t addr;
	int err;

	if (!t || !(t->flags & UM_TENSOR_ADOPTED))
		return -EINVAL;
	if (adv->replan.executor)
		um_executor_release(adv->replan.executor, t->addr, t->bytes);
	addr = t->addr;
	bytes = t->bytes;
	err = remove_tensor(adv, t);
	if (!err && adv->replan.executor && (adv->device.larger || adv->horizon.host.capacity))
		forget(adv, addr, bytes);
	return err;
}

int um_context_transient(struct umadv *adv, void *ptr)
{
	struct um_tensor *t = um_tensors_find_start(&adv->tensors, ptr, 0);

	if (!t)
		return -EINVAL;
	um_recorder_flush(&adv->iterations.recorder);
	t->flags |= UM_TENSOR_TRANSIENT;
	return 0;
}

int um_context_dead(struct umadv *adv, void *ptr)
{
	struct um_event e = {.kind = UM_EV_DEAD};
	struct um_tensor *t = um_tensors_find_start(&adv->tensors, ptr, 0);

	if (!t)
		return -EINVAL;
	t->flags |= UM_TENSOR_DEAD;
	e.free.id = t->id;
	e.free.tensor = t;
	um_context_feed(adv, &e, NULL);
	return 0;
}
