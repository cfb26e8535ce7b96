/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.h - the position in the schedule, and whether the program still follows it
 *
 * in    births, ops (with live tensors) of the current iteration, in program order
 * out   followed, or departed
 * owns  the tensor of each slot in this iteration
 *
 * Births are compared by size and order, ops by name, stream and uses: every use must be of the tensor that its slot is
 * bound to. The birth of a workspace belongs to its op and is not compared. A slot used for the first time may have
 * another tensor of the same size (buffers that swap, a replaced tensor): it is rebound, which is counted but is no
 * divergence; the tensor that it had is kept for the caller. Several tensors with many bytes that are new to the
 * schedule are a divergence: the program chooses them in each iteration (expert weights, samples). So are several with
 * many bytes that another slot has, too: an op of a row of equal ones was dropped, or inserted. Frees are not compared.
 * Op path: O(uses), where a slot is rebound O(slots); no allocation. Not thread-safe: the caller holds the context's
 * lock.
 */
#ifndef UM_REPLAY_CURSOR_H
#define UM_REPLAY_CURSOR_H

#include "model/schedule.h"
#include "model/tensor.h"

#define UM_CURSOR_OTHER 8 /* at most this share of a schedule's bytes may be of tensors that it does not know, */
#define UM_CURSOR_SHARED 64 /* and this share of tensors that another slot has: their hints come for another op */

struct um_cursor_slot {
	struct um_tensor_id id; /* 0: unbound */
	uint64_t addr; /* UINT64_MAX: unknown */
	uint64_t off; /* from its place in the schedule to `addr` */
	uint32_t bound; /* serial of the iteration in which a birth, or an op, bound it */
};

struct um_cursor {
	const struct um_schedule *sched; /* NULL: no schedule */
	struct um_cursor_slot *slots; /* this iteration's */
	struct um_cursor_slot
		*next; /* the previous iteration's, as it ended, once there was one; then the next one's */
	struct um_cursor_slot *was; /* by slot: the tensor that another one replaced in the iteration `bound` */
	uint32_t *first; /* by slot: its first use in the schedule; UINT32_MAX: none */
	uint32_t *from; /* by slot: another slot that its tensor had before (carry backwards), or UM_NO_SLOT */
	uint32_t op; /* the next op */
	uint32_t birth; /* the next birth */
	uint32_t serial; /* of the iteration */
	uint32_t n_moved; /* slots whose tensor is not at its planned place, or not born */
	uint32_t n_rebound; /* slots that had another tensor than expected when an op of this iteration used them */
	uint32_t n_supplied; /* those of them that are to have another one in each iteration */
	uint32_t n_replaced; /* slots of the latest op that got a tensor which may not be resident */
	uint64_t other_bytes; /* of this iteration's tensors that no used slot was bound to */
	uint32_t n_others; /* the number of these tensors */
	uint64_t shared_bytes; /* of this iteration's tensors that another slot has, and has not exchanged */
	uint32_t n_shared; /* the number of these tensors */
	uint64_t bytes; /* of all used slots */
	int on; /* following: there is a schedule */
	uint64_t changes; /* grows whenever a slot is bound to another tensor */
};

void um_cursor_init(struct um_cursor *c);
void um_cursor_fini(struct um_cursor *c);

/* Follows `sched` (borrowed) from the next iteration's beginning, slots bound as it says. 0 or -ENOMEM. */
int um_cursor_follow(struct um_cursor *c, const struct um_schedule *sched);

/* Stops following. */
void um_cursor_drop(struct um_cursor *c);

/* An iteration begins; slots that carry over are bound to the carried tensors. Returns 1 if the previous iteration was
 * followed to its end (or no schedule was set), 0 if it stopped short. */
int um_cursor_begin(struct um_cursor *c);

/* The planned address of the next birth, of `bytes`: `choice` 0. If lifetimes overlap, a slot alternates between two
 * places: `choice` 1 is the other one. UINT64_MAX if the birth is not in the schedule or there is no such place. */
uint64_t um_cursor_place(const struct um_cursor *c, uint64_t bytes, int choice);

/* A tensor is born. 0: as in the schedule; 1: departed now or before. */
int um_cursor_alloc(struct um_cursor *c, const struct um_tensor *t);

/* The workspace of an op of the schedule is allocated: `slot` is its slot. */
void um_cursor_workspace(struct um_cursor *c, uint32_t slot, const struct um_tensor *t);

/* An op is announced. 0: as in the schedule (c->op is then the op after it); 1: departed. */
int um_cursor_op(struct um_cursor *c, const struct um_op *op);

/* The op at hand uses a tensor that may not be resident: the one that had the slot of this use before. No address:
 * another slot has it now. NULL: it is not so. */
static inline const struct um_cursor_slot *um_cursor_replaced(const struct um_cursor *c, size_t use)
{
	uint32_t slot = c->sched->uses.at[use].slot;

	return c->first[slot] == use && c->was[slot].bound == c->serial ? &c->was[slot] : NULL;
}

/* The next op of the schedule, NULL if none is followed. */
static inline const struct um_sched_op *um_cursor_next(const struct um_cursor *c)
{
	return c->on && c->op < c->sched->ops.n ? &c->sched->ops.at[c->op] : NULL;
}

/* Advances past the next op, whose uses were all found to match the schedule. */
static inline void um_cursor_advance(struct um_cursor *c)
{
	c->op++;
}

/* Does a use that matched here before, of a tensor that may be dead by now, match again? 0: perhaps, look it up. */
static inline int um_cursor_holds(const struct um_cursor *c, const struct um_sched_use *su, const struct um_use *use)
{
	const struct um_cursor_slot *s = &c->slots[su->slot];
	const struct um_tensor *t = use->tensor;

	/* the used range may be one of its parts */
	return s->id.v == use->id.v && t->id.v == use->id.v && !t->n_children;
}

#endif
