/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h - where slots lie
 *
 * in    slots with sizes and lifetimes, some of them settled; rooms to put the others in
 * out   a place for each, such that no two slots that are alive at the same time overlap
 *
 * What is to be small is the number of 2 MiB blocks that hold something alive, at the fullest moment. Neighbours share
 * blocks; places are multiples of UM_PLACE_GRANULE. Slots that hand their tensor on to another slot at the iteration's
 * end (wanderers: double buffers, batches that overlap) keep whole blocks to themselves, for ever: their tensors lie at
 * one of their places in one iteration and at another in the next.
 */
#ifndef UM_PLAN_PLACE_H
#define UM_PLAN_PLACE_H

#include "plan/planner.h"

#define UM_PLACE_GRANULE 512ull

/* By slot: 1 if it is a wanderer. An array to be freed, NULL if there is no memory. */
uint8_t *um_place_wanderers(const struct um_schedule *s);

/* Sets `place` where a slot has none; `*grow_bytes` (a multiple of 2 MiB) is how much lies behind r->grow_at. 0,
 * -ENOMEM, -EINVAL (rooms out of order, or out of addresses). Plan path. */
int um_place_build(const struct um_plan_request *r, struct um_schedule *s, uint64_t *grow_bytes);

#endif
