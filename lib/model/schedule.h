/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.h - what every iteration does, over slots
 *
 * A slot is the name that a tensor has in every iteration. birth and death are umplan's: op indices, -1 alive when the
 * iteration begins / not freed; birth >= 0 with death <= birth is born in one iteration and freed in the next.
 * A value: it owns its memory, holds no pointer to a live tensor.
 */
#ifndef UM_MODEL_SCHEDULE_H
#define UM_MODEL_SCHEDULE_H

#include "base/vec.h"
#include "model/event.h"

#define UM_NO_SLOT UINT32_MAX

enum um_slot_flag {
	UM_SLOT_FIXED = 1, /* its address is settled (older tensor, adopted memory, or alive now): `place` is given */
	UM_SLOT_TRANSIENT = 2, /* content dead between iterations, by declaration */
	UM_SLOT_GUESSED = 4, /* whether and when it is freed was not seen yet */
	UM_SLOT_UNMANAGED = 8 /* no hints, takes no budget */
};

struct um_slot {
	uint64_t bytes;
	int32_t birth, death;
	uint32_t carry; /* the slot whose tensor of this iteration is this slot's tensor when the next one begins;
			   itself for what stays; UM_NO_SLOT for slots that are not alive when an iteration begins */
	uint32_t born_ord; /* for slots with a birth: its number among the births */
	unsigned flags; /* enum um_slot_flag */
	enum um_role role;
	char *name; /* owned; may be NULL */
	uint64_t place; /* address (or arena offset, in a file) where it lies or shall lie; UINT64_MAX unknown. Two
			   slots that are alive at the same time never overlap; slots share 2 MiB blocks */
	struct um_tensor_id bound; /* who it is when the next iteration begins; 0 where that is to be born */
	uint64_t bound_addr; /* where that tensor lies */
};

struct um_sched_use {
	uint32_t slot;
	uint32_t access; /* enum um_access */
	uint64_t off, bytes, touched;
	int dead_after; /* declared dead after this use */
};

struct um_sched_op {
	char *name; /* owned */
	uint64_t hash; /* address-free: see iteration.h */
	uint32_t first_use, n_uses;
	uint64_t ns; /* measured or estimated; filled before planning */
	struct um_cost cost;
	int32_t stream;
	char phase;
	uint8_t relaunchable;
	uint32_t first_relaunch, n_relaunch;
};

struct um_schedule {
	uint64_t signature;
	UM_VEC(struct um_slot) slots;
	UM_VEC(struct um_sched_op) ops;
	UM_VEC(struct um_sched_use) uses;
	UM_VEC(uint32_t) relaunch; /* slots */
	UM_VEC(uint32_t) births; /* slots in birth order */
};

void um_schedule_init(struct um_schedule *s);
void um_schedule_fini(struct um_schedule *s);
int um_schedule_copy(struct um_schedule *to, const struct um_schedule *from); /* `to` initialised; 0 or -ENOMEM */

double um_sched_touched(const struct um_schedule *s, const struct um_sched_op *op); /* as um_uses_touched */

/* By slot: the slot that its tensor is in the next iteration (the inverse of carry), UM_NO_SLOT if it is not heard of
 * again. To be freed; NULL if there is no memory. */
uint32_t *um_schedule_successors(const struct um_schedule *s);

/* Is a tensor of this name alive when an iteration begins? When one of `n_ops` ends? */
int um_slot_alive_first(const struct um_slot *slot);
int um_slot_alive_last(const struct um_slot *slot, int32_t n_ops);

#endif
