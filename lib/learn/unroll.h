/* SPDX-License-Identifier: Apache-2.0
 *
 * unroll.h - joins iterations of rotating buffers until each buffer returns to its initial role
 *
 * in    a schedule of one iteration
 * out   a schedule of several iterations, in which every long-lived tensor has one slot
 *
 * Slots that pass their tensor on (double buffers that swap) have one address in one iteration and another one in the
 * next. If the planner chooses the addresses, they are equivalent, and one plan fits both. If the program chose them,
 * and they are cut into 2 MiB blocks in different ways, a plan of one iteration does not fit.
 */
#ifndef UM_LEARN_UNROLL_H
#define UM_LEARN_UNROLL_H

#include "model/schedule.h"

#define UM_UNROLL_MOST 4

/* Number of iterations to join: 1 if one plan fits all, or if the rotation is unknown. */
uint32_t um_unroll_iterations(const struct um_schedule *s);

/* Joins `n_iterations` iterations into `out` (initialised, empty). 0 or -ENOMEM. Iteration path: linear. */
int um_unroll_build(const struct um_schedule *s, uint32_t n_iterations, struct um_schedule *out);

#endif
