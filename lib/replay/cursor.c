/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.c - compares each op with the schedule
 */
#include "replay/cursor.h"

#include <stdlib.h>
#include <string.h>

void um_cursor_init(struct um_cursor *c)
{
	memset(c, 0, sizeof *c);
}

void um_cursor_fini(struct um_cursor *c)
{
	uint64_t changes = c->changes + 1;

	free(c->slots);
	free(c->next);
	free(c->from);
	free(c->first);
	free(c->was);
	memset(c, 0, sizeof *c);
	c->changes = changes;
}

void um_cursor_drop(struct um_cursor *c)
{
	um_cursor_fini(c);
}

/* Binds slot number `i` of `slots` to this tensor; it was not bound before. */
static struct um_cursor_slot *bind(struct um_cursor *c, struct um_cursor_slot *slots, size_t i, struct um_tensor_id id,
				   uint64_t addr)
{
	slots[i].id = id;
	slots[i].addr = addr;
	slots[i].off = addr - c->sched->slots.at[i].place;
	c->n_moved += slots[i].off != 0;
	return &slots[i];
}

/* Binds slot number `i` of this iteration to another tensor, which an op or a birth uses now. */
static void rebind(struct um_cursor *c, size_t i, struct um_tensor_id id, uint64_t addr)
{
	c->n_moved -= c->slots[i].off != 0;
	c->changes++;
	bind(c, c->slots, i, id, addr)->bound = c->serial;
}

int um_cursor_follow(struct um_cursor *c, const struct um_schedule *sched)
{
	size_t n = sched->slots.n ? sched->slots.n : 1;
	struct um_cursor_slot *slots = calloc(n, sizeof *slots);
	struct um_cursor_slot *next = calloc(n, sizeof *next);
	struct um_cursor_slot *was = calloc(n, sizeof *was);
	uint32_t *from = malloc(n * sizeof *from);
	uint32_t *first = malloc(n * sizeof *first);

	if (!slots || !next || !was || !from || !first) {
		free(first);
		free(was);
		free(slots);
		free(next);
		free(from);
		return -ENOMEM;
	}
	um_cursor_fini(c);
	c->sched = sched;
	c->slots = slots;
	c->next = next;
	c->was = was;
	c->from = from;
	c->first = first;
	for (size_t i = 0; i < n; i++)
		first[i] = UINT32_MAX;
	for (size_t i = sched->uses.n; i--;)
		first[sched->uses.at[i].slot] = (uint32_t)i;
	for (size_t i = 0; i < sched->slots.n; i++)
		c->bytes += first[i] != UINT32_MAX ? sched->slots.at[i].bytes : 0;
	for (size_t i = 0; i < n; i++)
		from[i] = UM_NO_SLOT;
	for (size_t i = 0; i < sched->slots.n; i++)
		if (sched->slots.at[i].carry < sched->slots.n && sched->slots.at[i].carry != i)
			from[sched->slots.at[i].carry] = (uint32_t)i;
	for (size_t i = 0; i < sched->slots.n; i++) {
		const struct um_slot *s = &sched->slots.at[i];

		bind(c, slots, i, s->bound, s->bound.v ? s->bound_addr : UINT64_MAX);
	}
	c->serial = 1;
	c->on = 1;
	return 0;
}

int um_cursor_begin(struct um_cursor *c)
{
	const struct um_schedule *sched = c->sched;
	int whole;

	if (!sched)
		return 1;
	whole = c->op == 0 || (c->on && c->op == sched->ops.n);
	if (c->op || c->birth) {
		c->n_moved = 0;
		for (size_t i = 0; i < sched->slots.n; i++) {
			uint32_t from = sched->slots.at[i].carry;
			struct um_cursor_slot was = {.addr = UINT64_MAX};

			if (from != UM_NO_SLOT)
				was = c->slots[from];
			bind(c, c->next, i, was.id, was.addr)->bound = was.bound;
			c->changes += was.id.v != c->slots[i].id.v;
		}
		struct um_cursor_slot *was = c->slots;

		c->slots = c->next;
		c->next = was;
	}
	c->serial++;
	c->other_bytes = c->n_others = c->n_rebound = c->n_supplied = 0;
	c->shared_bytes = c->n_shared = 0;
	c->op = 0;
	c->birth = 0;
	c->on = 1;
	return whole;
}

/* The slot of the program's next birth, UM_NO_SLOT: there is none. `*birth`: its number. */
static uint32_t next_birth(const struct um_cursor *c, uint32_t *birth)
{
	const struct um_schedule *s = c->sched;

	for (*birth = c->birth; *birth < s->births.n; ++*birth)
		if (!(s->slots.at[s->births.at[*birth]].flags & UM_SLOT_WORKSPACE))
			return s->births.at[*birth];
	return UM_NO_SLOT;
}

uint64_t um_cursor_place(const struct um_cursor *c, uint64_t bytes, int choice)
{
	uint32_t birth, slot = c->on && c->sched ? next_birth(c, &birth) : UM_NO_SLOT;

	if (slot == UM_NO_SLOT)
		return UINT64_MAX;

	if (c->sched->slots.at[slot].bytes != bytes)
		return UINT64_MAX;
	if (choice)
		slot = c->from[slot];
	return slot == UM_NO_SLOT || c->sched->slots.at[slot].bytes < bytes ? UINT64_MAX
									    : c->sched->slots.at[slot].place;
}

int um_cursor_alloc(struct um_cursor *c, const struct um_tensor *t)
{
	uint32_t birth, slot;

	if (!c->on)
		return 1;
	slot = next_birth(c, &birth);
	if (slot == UM_NO_SLOT || c->sched->slots.at[slot].bytes != t->bytes) {
		c->on = 0;
		return 1;
	}
	c->birth = birth + 1;
	rebind(c, slot, t->id, t->addr);
	return 0;
}

void um_cursor_workspace(struct um_cursor *c, uint32_t slot, const struct um_tensor *t)
{
	rebind(c, slot, t->id, t->addr);
}

/* Is a used slot bound to this tensor; or was one when the schedule was learned? */
static int is_bound(const struct um_cursor *c, struct um_tensor_id id)
{
	for (size_t i = 0; i < c->sched->slots.n; i++)
		if (c->first[i] != UINT32_MAX && c->slots[i].id.v == id.v)
			return 1;
	return 0;
}

static int was_bound(const struct um_cursor *c, struct um_tensor_id id)
{
	for (size_t i = 0; i < c->sched->slots.n; i++)
		if (c->first[i] != UINT32_MAX && c->sched->slots.at[i].bound.v == id.v)
			return 1;
	return 0;
}

static int are_many(const struct um_cursor *c, uint32_t n, uint64_t bytes, uint64_t share)
{
	return n > 1 && bytes > c->bytes / share;
}

/* A slot gets this tensor in place of the one that was expected. 1: too many of them are new to the schedule. A tensor
 * that no slot has any more ends an exchange. */
static int count_other(struct um_cursor *c, const struct um_tensor *t)
{
	if (is_bound(c, t->id)) {
		c->shared_bytes += t->bytes;
		c->n_shared++;
	} else if (!was_bound(c, t->id)) {
		c->other_bytes += t->bytes;
		c->n_others++;
	} else if (c->n_shared) {
		c->shared_bytes -= t->bytes < c->shared_bytes ? t->bytes : c->shared_bytes;
		c->n_shared--;
	}
	return are_many(c, c->n_others, c->other_bytes, UM_CURSOR_OTHER);
}

/* Is this tensor one that the plan keeps or prefetches, at whatever slot? Supplied ones leave after their uses. */
static int is_kept(const struct um_cursor *c, struct um_tensor_id id)
{
	for (size_t i = 0; i < c->sched->slots.n; i++)
		if (c->first[i] != UINT32_MAX && c->slots[i].id.v == id.v &&
		    !(c->sched->slots.at[i].flags & UM_SLOT_SUPPLIED))
			return 1;
	return 0;
}

/* Is this use the one in the schedule? Binds the slot at its first use. A use of a part of adopted memory may be a
 * range of the whole in the schedule: then addresses decide. */
static int use_fits(struct um_cursor *c, const struct um_use *u, const struct um_sched_use *su)
{
	const struct um_cursor_slot *s = &c->slots[su->slot];
	int replaced = 0;

	if (u->access != su->access || u->bytes != su->bytes)
		return 0;
	if (s->id.v == u->id.v && u->off == su->off)
		return 1;
	if (s->id.v && u->tensor && s->addr + su->off == u->tensor->addr + u->off)
		return 1;
	if (s->bound == c->serial || c->first[su->slot] < su - c->sched->uses.at || u->off != su->off || !u->tensor ||
	    u->tensor->bytes != c->sched->slots.at[su->slot].bytes)
		return 0;
	if (s->id.v && !(c->sched->slots.at[su->slot].flags & UM_SLOT_SUPPLIED)) {
		replaced = !is_kept(c, u->tensor->id);
		if (count_other(c, u->tensor))
			return 0;
	}
	if (replaced)
		c->was[su->slot] = (struct um_cursor_slot){.id = s->id, .addr = s->addr, .bound = c->serial};
	rebind(c, su->slot, u->id, u->tensor->addr);
	if (replaced && is_bound(c, c->was[su->slot].id))
		c->was[su->slot].addr = UINT64_MAX;
	c->n_replaced += (uint32_t)replaced;
	c->n_rebound++;
	c->n_supplied += (c->sched->slots.at[su->slot].flags & UM_SLOT_SUPPLIED) != 0;
	return 1;
}

int um_cursor_op(struct um_cursor *c, const struct um_op *op)
{
	c->n_replaced = 0;
	if (!c->on)
		return 1;
	if (c->op >= c->sched->ops.n)
		goto left;

	const struct um_sched_op *so = &c->sched->ops.at[c->op];

	if (so->n_uses != op->n_uses || so->stream != op->stream ||
	    (so->name != op->name && strcmp(so->name, op->name) != 0))
		goto left;
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (!use_fits(c, &op->uses[i], &c->sched->uses.at[so->first_use + i]))
			goto left;
	if (are_many(c, c->n_shared, c->shared_bytes, UM_CURSOR_SHARED))
		goto left;
	c->op++;
	return 0;
left:
	c->on = 0;
	return 1;
}
