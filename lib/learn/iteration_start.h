/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_start.h - chooses the op of a period at which its iterations begin
 *
 * in    a recording that ends with two periods
 * out   a position in the period
 * owns  nothing
 *
 * The position with the least live content: bytes of tensors that are read before they are overwritten. In training
 * that is between the optimizer and the next batch; in a solver, between two steps. O(uses).
 */
#ifndef UM_LEARN_ITERATION_START_H
#define UM_LEARN_ITERATION_START_H

#include "model/iteration.h"

/* The last 2 * length ops of `all` are two periods. *out: number of ops before an iteration begins, less than `length`;
 * of equal positions, the first one from `first` on. 0 or -ENOMEM. */
int um_iteration_start(const struct um_iteration *all, uint32_t length, uint32_t first, uint32_t *out);

#endif
