/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run_state.h - functions shared by the parts of a run, private to plan_run*.c
 */
#ifndef UM_MODEL_PLAN_RUN_STATE_H
#define UM_MODEL_PLAN_RUN_STATE_H

#include "model/plan_content.h"
#include "model/plan_run.h"

/* Records a violation by the op at hand, unless there was one: the text follows its number and name. */
void um_plan_run_note(struct um_plan_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- plan_run_op.c --- */

int um_plan_run_op(struct um_plan_run *r); /* starts op r->pos if it can start: 1 */
void um_plan_run_forget_resident(
	struct um_plan_run *r); /* a paged op has ended: the driver may have evicted any byte */

/* --- both --- */

static inline const struct um_slot *um_plan_run_slot(const struct um_plan_run *r, uint32_t s)
{
	return &r->plan->sched.slots.at[s];
}

/* Nanoseconds at `rate` bytes/s, to the nearest. */
static inline uint64_t um_plan_run_copy_ns(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((double)bytes * 1e9 / (double)rate + 0.5);
}

static inline void um_plan_run_take(struct um_plan_run *r, uint64_t bytes)
{
	r->used += bytes;
	if (r->used > r->tally.peak_bytes)
		r->tally.peak_bytes = r->used;
}

/* The atom is not on the device any more. */
static inline void um_plan_run_drop(struct um_plan_run *r, uint32_t atom)
{
	if (r->state[atom] & (UM_ATOM_RESIDENT | UM_ATOM_COMING))
		r->used -= r->atoms.bytes[atom];
	r->state[atom] &= (uint8_t) ~(UM_ATOM_RESIDENT | UM_ATOM_COMING);
}

static inline void um_plan_run_report(const struct um_plan_run *r, uint32_t hint, uint32_t slot, struct um_atom_range a)
{
	if (r->watch && r->watch->hint)
		r->watch->hint(r->watch->user, r, hint, slot, a);
}

/* Does the op at hand use some of the atoms? */
static inline int um_plan_run_op_uses(const struct um_plan_run *r, struct um_atom_range a)
{
	const struct um_sched_op *op = &r->plan->sched.ops.at[r->pos];

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		if (r->atoms.use[u].lo < a.hi && a.lo < r->atoms.use[u].hi)
			return 1;
	return 0;
}

#endif
