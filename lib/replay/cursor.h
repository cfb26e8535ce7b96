/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.h - where in the schedule are we, or have we left it
 *
 * in    births, ops (with live tensors) of the current iteration, in program order
 * out   one fact: followed, or left
 * owns  who each slot is in this iteration
 *
 * Births are compared by size and order, ops by name, stream and uses: every use must hit the tensor that its slot is
 * bound to. A slot used for the first time may turn out to be another tensor of the same size (buffers that swap, a
 * tensor that was replaced): it is bound anew, which is counted but is no divergence. Frees are not compared. Op path:
 * O(uses), no allocation. Not thread-safe: the front desk holds the lock.
 */
#ifndef UM_REPLAY_CURSOR_H
#define UM_REPLAY_CURSOR_H

#include "model/schedule.h"
#include "model/tensor.h"

struct um_cursor_slot {
	struct um_tensor_id id; /* 0: nobody yet */
	uint64_t addr; /* UINT64_MAX: nowhere yet */
	uint64_t off; /* from its place in the schedule to `addr` */
	uint32_t used; /* serial of the iteration in which an op first used it */
};

struct um_cursor {
	const struct um_schedule *sched; /* NULL: nothing to follow */
	struct um_cursor_slot *slots; /* this iteration's */
	struct um_cursor_slot *next; /* room to compute the next one's */
	uint32_t *from; /* by slot: another slot that its tensor was before (carry backwards), or UM_NO_SLOT */
	uint32_t op; /* the next op to come */
	uint32_t birth; /* the next birth to come */
	uint32_t serial; /* of the iteration */
	uint64_t rebound; /* slots that turned out to be somebody else */
	int on; /* following */
};

void um_cursor_init(struct um_cursor *c);
void um_cursor_fini(struct um_cursor *c);

/* Follows `sched` (borrowed) from the next iteration's beginning, slots bound as it says. 0 or -ENOMEM. */
int um_cursor_follow(struct um_cursor *c, const struct um_schedule *sched);

/* Follows nothing. */
void um_cursor_drop(struct um_cursor *c);

/* An iteration begins; slots that carry over are bound to who they carry. Returns 1 if the iteration before was
 * followed to its end (or nothing was expected of it), 0 if it stopped short. */
int um_cursor_begin(struct um_cursor *c);

/* Where the next birth, of `bytes`, is planned to lie: `choice` 0. Where its life overlaps that of the one before, the
 * two take turns in two places: `choice` 1 is the other one. UINT64_MAX if it is not on the schedule or there is no
 * such. */
uint64_t um_cursor_place(const struct um_cursor *c, uint64_t bytes, int choice);

/* A tensor is born. 0 on the schedule, 1 left it just now (or before). */
int um_cursor_alloc(struct um_cursor *c, const struct um_tensor *t);

/* An op comes. 0 on the schedule (c->op is then the op after it), 1 left it. */
int um_cursor_op(struct um_cursor *c, const struct um_op *op);

/* The op that is next on the schedule, NULL if nothing is followed. */
static inline const struct um_sched_op *um_cursor_next(const struct um_cursor *c)
{
	return c->on && c->sched && c->op < c->sched->ops.n ? &c->sched->ops.at[c->op] : NULL;
}

/* The op that comes is the next one, each of its uses was found to be what the schedule has there. */
static inline void um_cursor_pass(struct um_cursor *c)
{
	c->op++;
}

/* Is a use that the schedule had here once, of a tensor that may be dead by now, what it has here now? 0: perhaps,
 * whose memory that is must be looked up. */
static inline int um_cursor_holds(struct um_cursor *c, const struct um_sched_use *su, const struct um_use *use)
{
	struct um_cursor_slot *s = &c->slots[su->slot];
	const struct um_tensor *t = use->tensor;

	/* With parts it may be one of those that is used. */
	if (s->id.v != use->id.v || t->id.v != use->id.v || t->n_children)
		return 0;
	s->used = c->serial;
	return 1;
}

#endif
