/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.h - builds slots, with lifetimes and places, from the tensors of an iteration
 *
 * in    an iteration, its successors and nesting
 * out   the slots and births of a schedule
 *
 * The slot of each tensor (p birth, q death, e after the last op):
 *
 *     older, stays or unknown          -1, -1    carried by itself, or by its successor
 *     older, freed at q                -1, q     carried by the birth that succeeds it, if there is one
 *     older, freed at q, not used      -1, q     carried by the tensor that was used before
 *     born, freed at q                 p, q
 *     born, succeeds one freed q <= p  p, q      one slot for both, carried by itself
 *     born, succeeds one freed q > p   p, e      both lives overlap; the older one has a slot of its own (-1, q)
 *     born, succeeds one that stays    p, e
 *     born, successor unknown          p, e      guessed
 *
 * umplan reads death <= birth as "freed in the next iteration". A life that spans no op is therefore stretched over
 * one, and a tensor that is born after the last op, kept, and without a known successor is treated as always alive.
 */
#ifndef UM_LEARN_SLOTS_H
#define UM_LEARN_SLOTS_H

#include "learn/nesting.h"
#include "learn/successors.h"
#include "model/schedule.h"

/* `slot_of` by tensor: its slot. `out` is empty; slots and births are added; on -ENOMEM the caller discards it. */
int um_slots_build(const struct um_iteration *it, const struct um_successors *roles, const struct um_nesting *nesting,
		   struct um_schedule *out, uint32_t *slot_of);

#endif
