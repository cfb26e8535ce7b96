/* SPDX-License-Identifier: Apache-2.0
 *
 * unroll.h - buffers that take turns: as many iterations as it takes until everybody is who he was
 *
 * in    a schedule of one iteration
 * out   the same over several, in which every tensor that stays is one slot that stays
 *
 * Slots that hand their tensor on (double buffers that swap) lie at one of their places in one iteration and at another
 * in the next. Where the planner may choose the places they are alike, and one plan fits both. Where the program chose
 * them, and they are cut into 2 MiB blocks in different ways, no plan of one iteration does.
 */
#ifndef UM_LEARN_UNROLL_H
#define UM_LEARN_UNROLL_H

#include "model/schedule.h"

#define UM_UNROLL_MOST 4

/* How many iterations that takes: 1 where one plan does, or where there is no telling. */
uint32_t um_unroll_iterations(const struct um_schedule *s);

/* `laps` iterations as one, into `out` (initialised, empty). 0 or -ENOMEM. Iteration path: linear. */
int um_unroll_build(const struct um_schedule *s, uint32_t laps, struct um_schedule *out);

#endif
