/* SPDX-License-Identifier: Apache-2.0
 *
 * mistakes.h - what a program announces wrongly, in the log: once per cause, with the names of the op and the tensor
 *
 * Beside the op path: called only where something is wrong. Under the context's lock.
 */
#ifndef UM_RUNTIME_MISTAKES_H
#define UM_RUNTIME_MISTAKES_H

#include "runtime/context.h"

#define UM_OPS_OUTSIDE 10000 /* ops without an iteration after which the program is told */

/* The op at hand uses an address in no live tensor. */
void um_mistake_pointer(struct umadv *adv, const void *ptr);

/* It uses `bytes` from `off` of a tensor that is shorter. */
void um_mistake_range(struct umadv *adv, const struct um_tensor *t, uint64_t off, uint64_t bytes);

/* A use of it neither reads nor writes. */
void um_mistake_access(struct umadv *adv, const struct um_tensor *t, unsigned access);

/* A reserved member of one of its uses is not zero. */
void um_mistake_reserved(struct umadv *adv);

/* The device below refuses its stream. */
void um_mistake_stream(struct umadv *adv, um_stream stream, int code);

/* UM_OPS_OUTSIDE ops, and umadv_iter was never called. */
void um_mistake_no_iteration(struct umadv *adv);

#endif
