/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_atoms.h - the pieces of slots with one common history in a plan
 *
 * in    a plan: ranges of uses and of hints
 * out   for each slot its atoms: the ranges between neighbouring boundaries of uses and hints; each use and hint as a
 *       range of atoms
 * owns  the arrays
 *
 * Every byte of an atom has the same history, so a state per atom is exact. Slots that pass their tensor on to each
 * other from iteration to iteration (carry) are cut alike, so that the state of one can be copied to the next; and so
 * are scratch slots, like the slots whose content they hold.
 */
#ifndef UM_MODEL_PLAN_ATOMS_H
#define UM_MODEL_PLAN_ATOMS_H

#include "model/plan.h"

struct um_atom_range {
	uint32_t lo, hi; /* atoms [lo, hi) */
};

struct um_plan_atoms {
	uint32_t *first; /* by slot: its first atom; slots + 1 entries */
	uint64_t *off; /* by atom: its offset in the slot; one more entry, unused */
	uint64_t *bytes; /* by atom */
	struct um_atom_range *use, *hint; /* by index; hints without a slot have an empty range */
	uint32_t n;
};

/* The plan's ranges must lie inside their slots. 0 or -ENOMEM. */
int um_plan_atoms_init(struct um_plan_atoms *a, const struct um_plan *p);
/* The atoms that start in a range of a slot. */
struct um_atom_range um_plan_atoms_range(const struct um_plan_atoms *a, uint32_t slot, uint64_t off, uint64_t bytes);

void um_plan_atoms_fini(struct um_plan_atoms *a);

#endif
