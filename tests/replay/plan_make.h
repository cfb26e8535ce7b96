/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_make.h - plans by hand, for tests of replay
 */
#ifndef UM_TESTS_PLAN_MAKE_H
#define UM_TESTS_PLAN_MAKE_H

#include "model/plan.h"
#include "tap.h"

#define MIB2 UM_BLOCK_BYTES

static inline void make_slot(struct um_plan *p, uint64_t place, uint64_t bytes, int birth, int death)
{
	struct um_slot s = {.bytes = bytes, .birth = birth, .death = death, .place = place, .carry = UM_NO_SLOT};

	if (birth < 0 || death <= birth)
		s.carry = (uint32_t)p->sched.slots.n;
	if (um_vec_push(&p->sched.slots, s) ||
	    (birth >= 0 && um_vec_push(&p->sched.births, (uint32_t)p->sched.slots.n - 1)))
		tap_bail("no memory");
}

/* An op that uses the whole of each slot of a list that ends with -1. */
static inline void make_op(struct um_plan *p, const char *name, const int *slots, uint32_t access)
{
	struct um_sched_op op = {.name = strdup(name), .first_use = (uint32_t)p->sched.uses.n, .ns = 1000};

	for (; *slots >= 0; slots++, op.n_uses++) {
		uint64_t bytes = p->sched.slots.at[*slots].bytes;

		if (um_vec_push(&p->sched.uses, ((struct um_sched_use){(uint32_t)*slots, access, 0, bytes, bytes, 0})))
			tap_bail("no memory");
	}
	if (um_vec_push(&p->sched.ops, op))
		tap_bail("no memory");
}

static inline void make_hint(struct um_plan *p, enum um_hint_kind kind, int at, int slot, uint64_t off, uint64_t bytes)
{
	struct um_hint h = {
		.kind = kind, .at = at, .after = at - 1, .slot = (uint32_t)slot, .off = off, .bytes = bytes, .copy = 1};

	if (um_vec_push(&p->hints, h))
		tap_bail("no memory");
}

#endif
