/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_distance.h - the distance at which equal ops use the same tensors again
 *
 * in    a recording that ends with two periods, whose length follows from reuse distances
 * out   a length at which not only the ops repeat, but also their tensors
 * owns  nothing
 *
 * Where equal ops walk around a ring of n tensors, two in each op, each tensor is used again after at most n - 1 ops,
 * but the same op comes again after n. Iterations of n - 1 ops would rotate all tensors. Buffers that do rotate, two
 * that are exchanged after each step, are the same again after a multiple of the period: that is no other length.
 * O(length of the recording * uses of an op), and again for each distance at which a part of the ops repeats.
 */
#ifndef UM_LEARN_TENSOR_DISTANCE_H
#define UM_LEARN_TENSOR_DISTANCE_H

#include "model/iteration.h"

/* `length` ops are a multiple of `unit`, after which equal ops come again. Returns the least multiple of `unit` above
 * `length` at which the latest ops used the same tensors, or `length` if the tensors repeat after it, after a multiple
 * of it, or not at all. */
uint32_t um_tensor_distance(const struct um_iteration *all, uint32_t length, uint32_t unit);

#endif
