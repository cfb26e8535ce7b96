/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_start.h - where in a period an iteration begins best
 *
 * in    a recorded iteration that ends with two periods
 * out   a place in the period
 * owns  nothing
 *
 * There the least content has to be kept: bytes of tensors that are read before they are overwritten. In training that
 * is between the optimizer and the next batch; in a solver, between two steps. O(uses).
 */
#ifndef UM_LEARN_ITERATION_START_H
#define UM_LEARN_ITERATION_START_H

#include "model/iteration.h"

/* The last 2 * length ops of `all` are two periods. Outputs how many more ops come before an iteration begins, less
 * than `length`; of several such places, the first one after `first` more. 0 or -ENOMEM. */
int um_iteration_start(const struct um_iteration *all, uint32_t length, uint32_t first, uint32_t *out);

#endif
