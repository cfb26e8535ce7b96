/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.h - tensors of an iteration -> slots, with lives and places
 *
 * in    an iteration, its roles and nesting
 * out   the slots and births of a schedule
 *
 * What each tensor becomes (p birth, q death, e after the last op):
 *
 *     older, stays or unknown          -1, -1    carried by itself, or by who plays its part next
 *     older, freed at q                -1, q     carried by the birth that follows it, if there is one
 *     born, freed at q                 p, q
 *     born, follows one freed q <= p   p, q      one slot for both, carried by itself
 *     born, follows one freed q > p    p, e      both lives overlap; the older one has a slot of its own (-1, q)
 *     born, follows one that stays     p, e
 *     born, nobody knows               p, e      guessed
 *
 * umplan reads death <= birth as "freed in the next iteration". A life that spans no op is therefore stretched over
 * one, and what is born after the last op and kept, its follower unknown, is taken to be there all the time.
 */
#ifndef UM_LEARN_SLOTS_H
#define UM_LEARN_SLOTS_H

#include "learn/nesting.h"
#include "learn/successors.h"
#include "model/schedule.h"

/* `slot_of` by tensor: the slot that it is. `out` empty but for slots and births that are added; on -ENOMEM the caller
 * throws it away. */
int um_slots_build(const struct um_iteration *it, const struct um_successors *roles, const struct um_nesting *nesting,
		   struct um_schedule *out, uint32_t *slot_of);

#endif
