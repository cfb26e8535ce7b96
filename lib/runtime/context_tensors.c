/* SPDX-License-Identifier: Apache-2.0
 *
 * context_tensors.c - allocates, adopts and frees tensors and reports them
 */
#include "runtime/context.h"

#include "base/clock.h"
#include "gpu/device.h"
#include "runtime/mistakes.h"
#include "runtime/owners.h"

#include <errno.h>

#define CLAIMS 8 /* of memory with such a discard */
#define AWAIT_NS 2000000000u /* for which a birth waits for its place at most: the program's ops may be long */
#define AWAIT_STEP_NS 20000
#define AWAIT_AGAIN 16 /* iterations without waits after one that took so long */
#define MOST_VACANT 256 /* ranges */

/* Tensors allocated before the first op, and parameters and optimizer state, are probably long-lived. Placed among
 * short-lived tensors, they would leave parts of blocks that no other tensor can use. */
static int is_long_lived(const struct umadv *adv, enum um_role role)
{
	return role == UM_ROLE_PARAM || role == UM_ROLE_OPTIM || !adv->op.n;
}

struct birth {
	uint64_t bytes;
	const char *name;
	enum um_role role;
	unsigned flags; /* enum um_tensor_flag */
	uint32_t slot; /* of a workspace in the schedule that is followed; UM_NO_SLOT: none */
};

/* As um_cursor_place. */
static uint64_t planned_place(const struct umadv *adv, const struct birth *b, int choice)
{
	const struct um_cursor *c = &adv->replan.cursor;

	if (adv->replan.hold.holds)
		return UINT64_MAX;
	if (!(b->flags & UM_TENSOR_WORKSPACE))
		return um_cursor_place(c, b->bytes, choice);
	return choice || b->slot == UM_NO_SLOT ? UINT64_MAX : c->sched->slots.at[b->slot].place;
}

/* The planned place stays vacant: no op writes it, and hints follow the tensor. Ranges beyond the bound are lost. */
static void add_vacant(struct um_replan *r, uint64_t addr, uint64_t bytes)
{
	uint64_t lo = um_block_of(addr), hi = um_block_of(addr + bytes + UM_BLOCK_BYTES - 1);

	for (size_t i = 0; i < r->vacant.n;) {
		const struct um_heap_region v = r->vacant.at[i];

		if (v.addr > hi || v.addr + v.bytes < lo) {
			i++;
			continue;
		}
		lo = v.addr < lo ? v.addr : lo;
		hi = v.addr + v.bytes > hi ? v.addr + v.bytes : hi;
		r->vacant.at[i] = r->vacant.at[--r->vacant.n];
	}
	if (r->vacant.n < MOST_VACANT)
		(void)um_vec_push(&r->vacant, ((struct um_heap_region){lo, hi - lo}));
}

/* The range is vacant no more. 1: some of it was. */
static int take_vacant(struct um_replan *r, uint64_t lo, uint64_t hi)
{
	int found = 0;

	for (size_t i = r->vacant.n; i--;) {
		const struct um_heap_region v = r->vacant.at[i];
		uint64_t end = v.addr + v.bytes;

		if (v.addr >= hi || end <= lo)
			continue;
		found = 1;
		r->vacant.at[i] = r->vacant.at[--r->vacant.n];
		if (v.addr < lo)
			(void)um_vec_push(&r->vacant, ((struct um_heap_region){v.addr, lo - v.addr}));
		if (end > hi && r->vacant.n < MOST_VACANT)
			(void)um_vec_push(&r->vacant, ((struct um_heap_region){hi, end - hi}));
	}
	return found;
}

/* Is the tensor born where the planned place of another one stayed vacant? */
static int fills_vacant(struct um_replan *r, const struct um_tensor *t)
{
	return r->vacant.n && take_vacant(r, t->addr, t->addr + t->bytes);
}

static uint64_t missing_blocks(void *user, uint64_t addr, uint64_t bytes)
{
	const struct umadv *adv = user;

	return um_horizon_missing(&adv->horizon, addr, bytes);
}

/* While no plan is followed, tensors without a planned address stay in the main heap. A program whose shapes always
 * change never follows a plan, and its tensors in two heaps would evict each other. But what an odd iteration leaves
 * would take the places of the plan that waits. Where all tensors have fitted on the device so far, dead memory is
 * resident: other memory would add to it until it does not fit. */
static enum um_arena_pool_heap heap_of(const struct umadv *adv, const struct birth *b)
{
	const struct um_replan *r = &adv->replan;

	if (um_replan_hints(r) && !um_tensors_fit_tightly(&adv->tensors, adv->device.budget))
		return UM_ARENA_POOL_UNPLANNED;
	if (is_long_lived(adv, b->role))
		return UM_ARENA_POOL_LONG_LIVED;
	if (r->executor && !r->cursor.on && um_follow_is_confirmed(r->state) &&
	    um_tensors_will_stay(&adv->tensors, b->bytes, b->role))
		return UM_ARENA_POOL_UNPLANNED;
	return UM_ARENA_POOL_MAIN;
}

/* --- planned places ----------------------------------------------------------------------------------------------- */

/* The device still uses what was freed there. May a birth wait for that? Elsewhere it would exceed the memory for which
 * the plan was made. While the program captures, it waits for nothing. */
static int may_await(const struct umadv *adv)
{
	return um_replan_hints(&adv->replan) && !um_tensors_have_fitted(&adv->tensors, adv->device.budget) &&
	       !adv->tensors.pool.captured && adv->iterations.n >= adv->births_wait_from;
}

/* Where nothing can happen any more, this is called twice at most. */
static int is_third_call(void *arg)
{
	return ++*(int *)arg > 2;
}

/* Lets a moment pass. 0; or -EAGAIN: nothing can happen any more. */
static int let_pass(struct um_gpu *gpu)
{
	int calls = 0;

	if (gpu->api->worker_wait)
		return gpu->api->worker_wait(gpu, is_third_call, &calls) ? -EAGAIN : 0;
	nanosleep(&(struct timespec){.tv_nsec = AWAIT_STEP_NS}, NULL);
	return 0;
}

static uint64_t now(const struct umadv *adv)
{
	struct um_gpu *gpu = adv->device.gpu;

	return gpu->caps.virtual_time ? gpu->api->now(gpu) : um_clock_ns(CLOCK_MONOTONIC);
}

/* Waits until the device does not use the place any more, if no live tensor is there. A stream that does not end must
 * not stop the program: after a wait that took too long, births wait again only some iterations later. 1: the place may
 * be free. */
static int await_place(struct umadv *adv, uint64_t place, uint64_t bytes)
{
	uint64_t until = now(adv) + AWAIT_NS, lo = place, live = bytes;

	um_registry_clip(&adv->tensors.registry, &lo, &live);
	if (live)
		return 0;
	while (um_arena_pool_ends_by_events(&adv->tensors.pool, place, bytes))
		if (now(adv) >= until || let_pass(adv->device.gpu)) {
			adv->births_wait_from = adv->iterations.n + AWAIT_AGAIN;
			return 0;
		}
	return 1;
}

/* Allocates at a planned address that is free; if there is none, at one that is soon. 0 or -EBUSY. */
static int take_planned(struct umadv *adv, const struct birth *b, uint64_t *addr)
{
	for (int k = 0; k < 4; k++) {
		uint64_t place = planned_place(adv, b, k & 1);
		int awaits = k >= 2;

		if (place == UINT64_MAX || (awaits && !(may_await(adv) && await_place(adv, place, b->bytes))))
			continue;
		if (um_arena_pool_alloc_at(&adv->tensors.pool, place, b->bytes))
			continue;
		*addr = place;
		adv->replan.n_placed++;
		return 0;
	}
	return -EBUSY;
}

/* Allocates at the planned address if possible. Else, while no plan is followed, where dead blocks are resident:
 * another place would need a prefetch, and one of those blocks a discard before it. */
static int find_place(struct umadv *adv, const struct birth *b, uint64_t *addr)
{
	const struct um_arena_pool_missing missing = {missing_blocks, adv};
	struct um_replan *r = &adv->replan;
	struct um_arena_pool *pool = &adv->tensors.pool;
	uint64_t bytes = b->bytes;
	uint64_t planned = planned_place(adv, b, 0);

	if (!take_planned(adv, b, addr))
		return 0;
	if (um_replan_hints(r) || (r->executor && r->cursor.on && um_follow_waits(r->state) && !r->hold.holds)) {
		r->misplaced++;
		r->misplaced_bytes += bytes;
		r->n_misplaced++;
		if (planned != UINT64_MAX)
			add_vacant(r, planned, bytes);
	}
	return um_arena_pool_alloc(pool, bytes, heap_of(adv, b), um_horizon_knows(&adv->horizon) ? &missing : NULL,
				   addr);
}

/* Memory with a discard in progress that does not end is not used again: other memory is taken. */
static int take_place(struct umadv *adv, const struct birth *b, uint64_t *addr)
{
	int err = find_place(adv, b, addr);

	for (int i = 0; !err && adv->replan.executor && um_executor_claim(adv->replan.executor, *addr, b->bytes); i++) {
		if (i == CLAIMS)
			return -ENOMEM;
		err = um_arena_pool_alloc(&adv->tensors.pool, b->bytes, UM_ARENA_POOL_MAIN, NULL, addr);
	}
	return err;
}

/* A tensor of the program is recorded. */
static void report_birth(struct umadv *adv, struct um_tensor *t)
{
	struct um_event e = {.kind = UM_EV_ALLOC};

	adv->iterations.finder.born += t->bytes;
	e.alloc.id = t->id;
	e.alloc.tensor = t;
	e.alloc.bytes = t->bytes;
	e.alloc.name = t->name;
	e.alloc.role = t->role;
	um_context_feed(adv, &e, NULL);
}

/* Compares a birth with the schedule. */
static void compare_birth(struct umadv *adv, const struct birth *b, const struct um_tensor *t)
{
	struct um_cursor *c = &adv->replan.cursor;

	if (b->slot != UM_NO_SLOT)
		um_cursor_workspace(c, b->slot, t);
	else if (!(b->flags & UM_TENSOR_WORKSPACE) && c->on && c->sched && um_cursor_alloc(c, t))
		um_context_leave(adv);
}

static int add_tensor(struct umadv *adv, uint64_t addr, const struct birth *b, struct um_tensor **out)
{
	struct um_tensor *t;
	int err = um_tensors_add(&adv->tensors, addr, b->bytes, b->name, b->role, b->flags, &t);

	if (err)
		return err;
	t->born_iter = adv->iterations.n;
	t->born_op = adv->iterations.op_serial;
	if (!(b->flags & UM_TENSOR_WORKSPACE))
		report_birth(adv, t);
	if (adv->device.cuda && t->name)
		um_device_standin_name(adv->device.gpu, (void *)(uintptr_t)addr, t->name);
	if (um_activity_source_on(&adv->sinks.activities))
		um_activity_source_tensor(&adv->sinks.activities, t);
	compare_birth(adv, b, t);
	*out = t;
	return 0;
}

/* The op that uses it first has it prefetched: it needs more than the plan's hints. */
static void become_absent(struct umadv *adv, struct um_tensor *t)
{
	t->absent = 1;
	adv->replan.absent++;
	adv->op.plain = 0;
}

/* A tensor in managed memory. */
static int allocate(struct umadv *adv, const struct birth *b, struct um_tensor **out)
{
	uint64_t addr, misplaced = adv->replan.misplaced;
	int err = take_place(adv, b, &addr);

	if (err)
		return err;
	err = add_tensor(adv, addr, b, out);
	if (err)
		um_arena_pool_free(&adv->tensors.pool, addr, b->bytes,
				   &(struct um_arena_pool_use){adv->iterations.op_serial, 0, UM_ARENA_POOL_ANY});
	else if (fills_vacant(&adv->replan, *out) || adv->replan.misplaced != misplaced)
		become_absent(adv, *out);
	if (!err)
		um_horizon_born(&adv->horizon, addr, b->bytes);
	return err;
}

static int allocate_unmanaged(struct umadv *adv, const struct birth *b, struct um_tensor **out)
{
	struct um_gpu *gpu = adv->device.gpu;
	void *p = NULL;
	int err;

	if (!gpu->api->cudaMalloc || gpu->api->cudaMalloc(gpu, &p, b->bytes))
		return -ENOMEM;
	err = add_tensor(adv, (uint64_t)(uintptr_t)p, b, out);
	if (err) {
		gpu->api->cudaFree(gpu, p);
		return err;
	}
	um_owners_add((uint64_t)(uintptr_t)p, b->bytes, gpu, gpu->caps.device);
	um_chosen_device_take(&adv->device, (int64_t)b->bytes);
	return 0;
}

static int allocate_as(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, struct um_tensor **out)
{
	int unmanaged = role == UM_ROLE_COMM;
	const struct birth b = {bytes, name, role, unmanaged ? UM_TENSOR_UNMANAGED : 0, UM_NO_SLOT};

	return unmanaged ? allocate_unmanaged(adv, &b, out) : allocate(adv, &b, out);
}

int um_context_alloc(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, void **ptr)
{
	struct um_tensor *t;
	int err = allocate_as(adv, bytes, name, role, &t);

	if (!err)
		*ptr = (void *)(uintptr_t)t->addr;
	return err;
}

int um_context_alloc_workspace(struct umadv *adv, uint64_t bytes, uint32_t slot, struct um_tensor **out)
{
	const struct birth b = {bytes, "workspace", UM_ROLE_WORKSPACE, UM_TENSOR_WORKSPACE, slot};

	return allocate(adv, &b, out);
}

int um_context_adopt(struct umadv *adv, void *ptr, uint64_t bytes, const char *name, enum um_role role)
{
	const struct birth b = {bytes, name, role, UM_TENSOR_ADOPTED, UM_NO_SLOT};
	struct um_tensor *t;
	int err = add_tensor(adv, (uint64_t)(uintptr_t)ptr, &b, &t);

	if (!err && t->parent)
		t->flags |= t->parent->flags & (UM_TENSOR_JOINT | UM_TENSOR_UNMANAGED);
	return err;
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
	if (!(t->flags & UM_TENSOR_WORKSPACE))
		um_context_feed(adv, &e, NULL);
	um_context_part(adv, t);
	if (um_activity_source_on(&adv->sinks.activities))
		um_activity_source_tensor_end(&adv->sinks.activities, t);
	um_tensors_remove(&adv->tensors, t);
	return 0;
}

/* `last`: as in struct um_arena_pool_use. */
static int free_tensor(struct umadv *adv, struct um_tensor *t, unsigned last)
{
	uint64_t addr = t->addr, bytes = t->bytes;
	int unmanaged = t->flags & UM_TENSOR_UNMANAGED;
	const struct um_arena_pool_use use = {t->born_op, t->streams, last};
	int err;

	um_tensors_note_life(&adv->tensors, t, t->born_op < adv->iterations.before);
	if (adv->horizon.host.capacity)
		um_predictor_free(&adv->predictor, t);
	err = remove_tensor(adv, t);
	if (err)
		return err;
	if (unmanaged) {
		um_owners_remove(addr, adv->device.gpu);
		adv->device.gpu->api->cudaFree(adv->device.gpu, (void *)(uintptr_t)addr);
		um_chosen_device_take(&adv->device, -(int64_t)bytes);
	} else {
		um_arena_pool_free(&adv->tensors.pool, addr, bytes, &use);
	}
	if (adv->horizon.host.capacity && !unmanaged)
		um_horizon_free(&adv->horizon, addr, bytes);
	return 0;
}

/* -EINVAL: `ptr` is not the start of a tensor here. */
static int no_tensor(struct umadv *adv, const char *call, const void *ptr)
{
	int device;

	if (um_owners_other((uint64_t)(uintptr_t)ptr, adv->device.gpu, &device))
		um_mistake_other_call(&adv->notices, call, ptr, device);
	return -EINVAL;
}

/* The tensor of umadv_alloc that starts at `ptr`; or NULL. */
static struct um_tensor *find_own(struct umadv *adv, const void *ptr)
{
	struct um_tensor *t = um_tensors_find_start(&adv->tensors, ptr, 0);

	while (t && t->flags & UM_TENSOR_ADOPTED)
		t = t->parent;
	return t && t->addr == (uint64_t)(uintptr_t)ptr && !(t->flags & UM_TENSOR_WORKSPACE) ? t : NULL;
}

int um_context_free(struct umadv *adv, void *ptr)
{
	struct um_tensor *t = find_own(adv, ptr);

	return t ? free_tensor(adv, t, UM_ARENA_POOL_ANY) : no_tensor(adv, "umadv_free", ptr);
}

/* The tensor is used on that stream. The stream's bit; 0: what it does now is captured. */
static unsigned use_on(struct umadv *adv, struct um_tensor *t, um_stream stream)
{
	unsigned number, bit = um_context_name_stream(adv, stream, &number) ? 0 : 1u << number;

	t->streams |= bit;
	return bit;
}

int um_context_alloc_async(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, um_stream stream,
			   void **ptr)
{
	struct um_tensor *t;
	int err = allocate_as(adv, bytes, name, role, &t);

	if (err)
		return err;
	use_on(adv, t, stream);
	*ptr = (void *)(uintptr_t)t->addr;
	return 0;
}

int um_context_free_async(struct umadv *adv, void *ptr, um_stream stream)
{
	struct um_tensor *t = find_own(adv, ptr);
	unsigned bit = t ? use_on(adv, t, stream) : 0;

	return t ? free_tensor(adv, t, bit ? bit : UM_ARENA_POOL_ANY) : no_tensor(adv, "umadv_free_async", ptr);
}

uint64_t um_context_new_memory(struct umadv *adv, const void *ptr, uint64_t *from)
{
	return um_arena_pool_new_memory(&adv->tensors.pool, (uint64_t)(uintptr_t)ptr, from);
}

void um_context_free_workspace(struct umadv *adv, uint64_t addr, struct um_tensor_id id)
{
	struct um_tensor *t = um_registry_find(&adv->tensors.registry, addr);

	while (t && t->id.v != id.v)
		t = t->parent;
	if (t && free_tensor(adv, t, UM_ARENA_POOL_ANY))
		adv->notices.errors++;
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
		if (adv->device.on_host)
			um_block_lru_remove_range(adv->device.on_host, a, UM_BLOCK_BYTES);
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
		return no_tensor(adv, "umadv_disown", ptr);
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
		return no_tensor(adv, "umadv_transient", ptr);
	um_recorder_flush(&adv->iterations.recorder);
	t->flags |= UM_TENSOR_TRANSIENT;
	return 0;
}

int um_context_dead(struct umadv *adv, void *ptr)
{
	struct um_event e = {.kind = UM_EV_DEAD};
	struct um_tensor *t = um_tensors_find_start(&adv->tensors, ptr, 0);

	if (!t)
		return no_tensor(adv, "umadv_dead", ptr);
	t->flags |= UM_TENSOR_DEAD;
	e.free.id = t->id;
	e.free.tensor = t;
	um_context_feed(adv, &e, NULL);
	return 0;
}
