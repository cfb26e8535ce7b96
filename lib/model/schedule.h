/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.h - the ops of every iteration, with slots in place of tensors
 *
 * A slot identifies a tensor across iterations. birth and death are umplan's: op indices, -1 alive when the iteration
 * begins / not freed; birth >= 0 with death <= birth is born in one iteration and freed in the next. A value: it owns
 * its memory and holds no pointer to a live tensor.
 */
#ifndef UM_MODEL_SCHEDULE_H
#define UM_MODEL_SCHEDULE_H

#include "base/vec.h"
#include "model/event.h"

#define UM_NO_SLOT UINT32_MAX

enum um_slot_flag {
	UM_SLOT_FIXED = 1, /* its address is fixed (older tensor, adopted memory, or alive now): `place` is given */
	UM_SLOT_TRANSIENT = 2, /* declared transient: content dead between iterations */
	UM_SLOT_GUESSED = 4, /* its free was not observed yet */
	UM_SLOT_UNMANAGED = 8, /* no hints, not counted in the budget */
	UM_SLOT_WORKSPACE = 16, /* of a plan: the workspace that it chose for an op */
	UM_SLOT_SCRATCH = 32, /* of a plan: memory for relaunches only, which holds content of slot `of` */
	UM_SLOT_BEFORE_BURST = 64, /* of a rewritten schedule: born before relaunches */
	/* An older tensor, in each iteration another one that the previous one did not use. It is known from its first
	 * use on (an input buffer out of several, a batch of a data set). */
	UM_SLOT_SUPPLIED = 128
};

struct um_slot {
	uint64_t bytes;
	int32_t birth, death;
	uint32_t carry; /* the slot whose tensor of this iteration becomes this slot's tensor in the next one; itself
			   for tensors that stay; UM_NO_SLOT for slots that are not alive when an iteration begins */
	uint32_t born_ord; /* for slots with a birth: its index among the births */
	uint32_t of; /* of scratch slots: an equally large slot that is none */
	unsigned flags; /* enum um_slot_flag */
	enum um_role role;
	char *name; /* owned; may be NULL */
	uint64_t place; /* current or planned address (or arena offset, in a file); UINT64_MAX unknown. Slots that are
			   alive at the same time never overlap; slots may share 2 MiB blocks */
	struct um_tensor_id bound; /* its tensor when the next iteration begins; 0 if that is not born yet */
	uint64_t bound_addr; /* address of that tensor */
	uint64_t last_addr; /* where its latest tensor was; 0: unknown */
};

struct um_sched_use {
	uint32_t slot;
	uint32_t access; /* enum um_access */
	uint64_t off, bytes, touched;
	int dead_after; /* declared dead after this use */
};

struct um_sched_op {
	char *name; /* owned */
	uint64_t hash; /* without addresses: see iteration.h */
	uint32_t first_use, n_uses;
	uint64_t ns; /* measured or estimated; filled before planning */
	struct um_cost cost;
	int32_t stream;
	char phase;
	uint8_t relaunchable;
	uint8_t collective; /* its measured time includes waits for other processes */
	uint8_t paged; /* of a plan: uses more than the budget, so that the driver pages it */
	uint32_t again; /* of an unfolded plan (plan_unfold.h): a relaunch of op `again` - 1; 0: the program's op */
	uint32_t first_relaunch, n_relaunch;
	uint32_t first_ws, n_ws; /* algorithms to choose from */
	uint32_t choice; /* of a plan: the chosen one, from 0; `ns` is its time */
};

struct um_schedule {
	uint64_t signature;
	UM_VEC(struct um_slot) slots;
	UM_VEC(struct um_sched_op) ops;
	UM_VEC(struct um_sched_use) uses;
	UM_VEC(uint32_t) relaunch; /* slots */
	UM_VEC(uint32_t) births; /* slots in birth order */
	UM_VEC(struct um_workspace) ws;
};

void um_schedule_init(struct um_schedule *s);
void um_schedule_fini(struct um_schedule *s);
int um_schedule_copy(struct um_schedule *to, const struct um_schedule *from); /* `to` initialised; 0 or -ENOMEM */

/* Lists the births of a schedule whose slots are complete: those of `program`, n slots in the order of birth, of which
 * UM_NO_SLOT counts for nothing, and each of the slots from `first` on before those that are born later. 0 or -ENOMEM.
 * Linear. */
int um_schedule_merge_births(struct um_schedule *s, const uint32_t *program, size_t n, uint32_t first);

double um_sched_touched(const struct um_schedule *s, const struct um_sched_op *op); /* as um_uses_touched */

int um_schedule_uses_cpu(const struct um_schedule *s); /* does the CPU access anything? */

/* By slot: the slot of its tensor in the next iteration (the inverse of carry), UM_NO_SLOT if the tensor is freed. To
 * be freed; NULL: out of memory. */
uint32_t *um_schedule_successors(const struct um_schedule *s);

/* Is a tensor of this slot alive when an iteration begins? When an iteration of `n_ops` ops ends? */
int um_slot_alive_first(const struct um_slot *slot);
int um_slot_alive_last(const struct um_slot *slot, int32_t n_ops);

/* Does it have supplied tensors that pass on to another slot in the next iteration, as frames of a window do? */
static inline int um_slot_is_first_step(const struct um_slot *slot)
{
	return slot->flags & UM_SLOT_SUPPLIED && slot->carry == UM_NO_SLOT;
}

/* Is one alive when the host is at op `at`? */
static inline int um_slot_alive_at(const struct um_slot *slot, int32_t at)
{
	if (slot->birth < 0)
		return slot->death < 0 || at < slot->death;
	if (slot->birth < slot->death)
		return at >= slot->birth && at < slot->death;
	return at >= slot->birth || at < slot->death;
}

#endif
