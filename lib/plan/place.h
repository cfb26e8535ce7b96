/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h - assigns addresses to slots
 *
 * in    slots with sizes and lifetimes, some of them with fixed addresses; rooms for the others
 * out   a place for each, such that no two slots that are alive at the same time overlap
 *
 * The goal is a minimum number of 2 MiB blocks with live content, at the peak: other blocks need no memory. Neighbours
 * share blocks; places are multiples of UM_PLACE_GRANULE. Slots that pass their tensor on to another slot at the
 * iteration's end (rotating slots: double buffers, batches that overlap) have whole blocks of their own in all
 * iterations: their tensors are at one of these places in one iteration and at another one in the next. They also avoid
 * the addresses (bound_addr) that tensors of slots placed anew keep until they are freed; the other slots do where such
 * a tensor stays for more than a 40th of the schedule. If what the ops use fits in the budget where it is, no slot but
 * rotating ones gets another place than its latest tensor had (last_addr).
 */
#ifndef UM_PLAN_PLACE_H
#define UM_PLAN_PLACE_H

#include "plan/planner.h"

#define UM_PLACE_GRANULE 512ull

/* By slot: 1 if it rotates. An array to be freed, NULL: out of memory. */
uint8_t *um_place_rotating(const struct um_schedule *s);

/* Sets `place` for slots without one; `*grow_bytes` (a multiple of 2 MiB) is the size used after r->grow_at. 0,
 * -ENOMEM, -EINVAL (rooms out of order, or out of addresses). Plan path. */
int um_place_build(const struct um_plan_request *r, struct um_schedule *s, uint64_t *grow_bytes);

#endif
