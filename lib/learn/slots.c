/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c - builds slots from the tensors of an iteration
 *
 * Two passes: lifetimes first, in the order of the tensors' numbers, then carry, which may point at a later slot.
 */
#include "learn/slots.h"

#include "model/tensor.h"

#include <assert.h>

struct build {
	const struct um_iteration *it;
	const struct um_successors *roles;
	const struct um_nesting *nesting;
	struct um_schedule *out;
	uint32_t *slot_of;
	int32_t end; /* position after the last op */
};

static unsigned slot_flags(const struct build *b, uint32_t number)
{
	const struct um_iter_tensor *t = &b->it->tensors.at[number];
	unsigned flags = 0;

	if (t->flags & UM_TENSOR_TRANSIENT)
		flags |= UM_SLOT_TRANSIENT;
	if ((t->flags & UM_TENSOR_UNMANAGED) || b->nesting->host[number] != number || b->nesting->parts_only[number])
		flags |= UM_SLOT_UNMANAGED;
	return flags;
}

/* Appends a slot with the properties of tensor `number`, alive from birth to death. Its index, or -ENOMEM. */
static int64_t add_slot(struct build *b, uint32_t number, int32_t birth, int32_t death)
{
	const struct um_iter_tensor *t = &b->it->tensors.at[number];
	struct um_slot s = {
		.bytes = t->bytes,
		.birth = birth,
		.death = death,
		.carry = UM_NO_SLOT,
		.flags = slot_flags(b, number),
		.role = t->role,
		.place = UINT64_MAX,
		.last_addr = t->addr,
	};

	if (um_vec_reserve(&b->out->slots, 1))
		return -ENOMEM;
	if (t->name) {
		s.name = strdup(t->name);
		if (!s.name)
			return -ENOMEM;
	}
	b->out->slots.at[b->out->slots.n++] = s;
	return (int64_t)b->out->slots.n - 1;
}

static void settle(struct um_slot *s, uint64_t place)
{
	s->flags |= UM_SLOT_FIXED;
	s->place = place;
}

/* Binds the slot to this tensor, which is alive now, for the begin of the next iteration. */
static void bind(struct um_slot *s, const struct um_iter_tensor *t)
{
	s->bound = t->id;
	s->last_addr = t->addr;
	settle(s, t->addr);
}

/* Is `older` certainly freed before `born` is born? Then both are one slot. */
static int is_freed_before(const struct um_iter_tensor *older, const struct um_iter_tensor *born)
{
	return older->death != UM_NOWHERE && older->death <= born->birth;
}

/* Makes `slot`, born at p, also the slot of the tensor that was born in the previous iteration and dies at q <= p in
 * this one. */
static void wrap(struct build *b, uint32_t slot, uint32_t born, int32_t q)
{
	struct um_slot *s = &b->out->slots.at[slot];

	s->death = q;
	s->carry = slot;
	bind(s, &b->it->tensors.at[born]);
}

static int add_older(struct build *b, uint32_t a)
{
	const struct um_iter_tensor *t = &b->it->tensors.at[a];
	uint32_t next = b->roles->next[a];
	int64_t slot;

	if (next != UM_NO_NUMBER && b->it->tensors.at[next].birth != UM_NOWHERE &&
	    is_freed_before(t, &b->it->tensors.at[next])) {
		unsigned both = slot_flags(b, next) & UM_SLOT_TRANSIENT; /* valid only if promised for both */

		slot = add_slot(b, a, b->it->tensors.at[next].birth, t->death);
		if (slot < 0)
			return (int)slot;
		b->out->slots.at[slot].flags &= both | ~(unsigned)UM_SLOT_TRANSIENT;
		b->out->slots.at[slot].flags |= slot_flags(b, next) & UM_SLOT_UNMANAGED;
		wrap(b, (uint32_t)slot, next, t->death);
		assert(b->slot_of[next] == UM_NO_SLOT); /* its last use precedes the birth of its successor */
		b->slot_of[next] = (uint32_t)slot;
	} else {
		slot = add_slot(b, a, UM_NOWHERE, t->death);
		if (slot < 0)
			return (int)slot;
	}
	b->slot_of[a] = (uint32_t)slot;
	return 0;
}

/* Born and freed in this iteration. A life between two ops has no uses, but needs its index among the births. */
static int add_passing(struct build *b, uint32_t i)
{
	const struct um_iter_tensor *t = &b->it->tensors.at[i];
	int32_t birth = t->birth, death = t->death;
	int64_t slot;

	if (birth == death && birth == b->end)
		birth--;
	else if (birth == death)
		death++;
	slot = add_slot(b, i, birth, death);
	if (slot < 0)
		return (int)slot;
	if (t->birth == t->death)
		b->out->slots.at[slot].flags |= UM_SLOT_UNMANAGED;
	b->slot_of[i] = (uint32_t)slot;
	return 0;
}

/* Born in this iteration and alive at its end. */
static int add_kept(struct build *b, uint32_t i)
{
	const struct um_iter_tensor *t = &b->it->tensors.at[i];
	int32_t late = b->roles->late[t->born_ord], birth = t->birth;
	int follows = b->roles->predecessor[i] != UM_NO_NUMBER;
	int64_t slot, before;

	if (follows && birth == b->end)
		birth--;
	slot = add_slot(b, i, birth, b->end);
	if (slot < 0)
		return (int)slot;
	b->slot_of[i] = (uint32_t)slot;
	if (follows)
		return 0; /* the older tensor has its slot and is carried by this one */
	if (late == UM_NOWHERE) {
		b->out->slots.at[slot].flags |= UM_SLOT_GUESSED;
		if (birth == b->end)
			wrap(b, (uint32_t)slot, i, b->end);
		return 0;
	}
	if (late <= birth) {
		wrap(b, (uint32_t)slot, i, late);
		return 0;
	}
	/* its slot in the next iteration while its own successor is alive, too */
	before = add_slot(b, i, UM_NOWHERE, late);
	if (before < 0)
		return (int)before;
	b->out->slots.at[before].carry = (uint32_t)slot;
	b->out->slots.at[before].flags &= ~(unsigned)UM_SLOT_TRANSIENT;
	bind(&b->out->slots.at[before], t);
	return 0;
}

static int add_lives(struct build *b)
{
	for (uint32_t i = 0; i < b->it->tensors.n; i++) {
		const struct um_iter_tensor *t = &b->it->tensors.at[i];
		int rc;

		if (b->slot_of[i] != UM_NO_SLOT)
			continue;
		if (t->birth == UM_NOWHERE)
			rc = add_older(b, i);
		else if (t->death != UM_NOWHERE)
			rc = add_passing(b, i);
		else
			rc = add_kept(b, i);
		if (rc)
			return rc;
	}
	return 0;
}

/* For slots that are alive when the iteration begins and do not wrap. */
static void carry_older(struct build *b)
{
	for (uint32_t a = 0; a < b->it->tensors.n; a++) {
		const struct um_iter_tensor *t = &b->it->tensors.at[a];
		struct um_slot *s = &b->out->slots.at[b->slot_of[a]];
		uint32_t next = b->roles->next[a];

		if (t->birth != UM_NOWHERE || s->birth != UM_NOWHERE)
			continue;
		if (b->roles->supplied[a] && t->bytes >= UM_BLOCK_BYTES)
			s->flags |= UM_SLOT_SUPPLIED;
		if (next == UM_NO_NUMBER) {
			s->flags |= s->flags & UM_SLOT_SUPPLIED ? 0 : UM_SLOT_GUESSED;
			s->flags &= ~(unsigned)UM_SLOT_TRANSIENT;
			continue;
		}
		s->carry = b->slot_of[next];
		if (next != a)
			s->flags &= ~(unsigned)UM_SLOT_TRANSIENT; /* a promise about a tensor does not cover its part */
		bind(s, &b->it->tensors.at[next]);
	}
}

/* The memory of a tensor that is held without a use: a slot like those of the others, which no op uses. */
static int add_idle(struct build *b)
{
	for (uint32_t i = 0; i < b->it->tensors.n; i++) {
		int32_t idle = b->roles->idle[i];
		int64_t slot;

		if (idle == UM_NOWHERE || slot_flags(b, i) & UM_SLOT_UNMANAGED)
			continue;
		slot = add_slot(b, i, UM_NOWHERE, idle ? idle : 1);
		if (slot < 0)
			return (int)slot;
		b->out->slots.at[slot].carry = b->slot_of[i];
		b->out->slots.at[slot].flags &= ~(unsigned)UM_SLOT_TRANSIENT;
		bind(&b->out->slots.at[slot], &b->it->tensors.at[i]);
	}
	return 0;
}

static int list_births(struct build *b)
{
	if (um_vec_reserve(&b->out->births, b->it->births.n))
		return -ENOMEM;
	for (uint32_t ord = 0; ord < b->it->births.n; ord++) {
		uint32_t number = b->it->births.at[ord], slot = b->slot_of[number];
		struct um_slot *s = &b->out->slots.at[slot];

		s->born_ord = ord;
		if (b->it->tensors.at[number].flags & UM_TENSOR_ADOPTED)
			settle(s, b->it->tensors.at[number].addr);
		b->out->births.at[b->out->births.n++] = slot;
	}
	return 0;
}

/* A part may lack a promise: the promise about the whole holds only if it holds for each part. */
static void join_transient(struct build *b)
{
	for (uint32_t i = 0; i < b->it->tensors.n; i++) {
		uint32_t host = b->nesting->host[i];

		if (host != i && !(b->it->tensors.at[i].flags & UM_TENSOR_TRANSIENT))
			b->out->slots.at[b->slot_of[host]].flags &= ~(unsigned)UM_SLOT_TRANSIENT;
	}
}

int um_slots_build(const struct um_iteration *it, const struct um_successors *roles, const struct um_nesting *nesting,
		   struct um_schedule *out, uint32_t *slot_of)
{
	struct build b = {it, roles, nesting, out, slot_of, (int32_t)it->ops.n};
	int rc;

	for (size_t i = 0; i < it->tensors.n; i++)
		slot_of[i] = UM_NO_SLOT;
	rc = add_lives(&b);
	if (rc)
		return rc;
	carry_older(&b);
	rc = add_idle(&b);
	if (rc)
		return rc;
	join_transient(&b);
	return list_births(&b);
}
