/* SPDX-License-Identifier: Apache-2.0
 *
 * mistakes.h - what a program announces wrongly, in the log: once per cause, with the names of the op and the tensor
 *
 * Beside the op path: called only where something is wrong. Under the context's lock.
 */
#ifndef UM_RUNTIME_MISTAKES_H
#define UM_RUNTIME_MISTAKES_H

#include "record/registry.h"
#include "runtime/chosen_device.h"
#include "runtime/notices.h"

#define UM_OPS_OUTSIDE 10000 /* ops without an iteration after which the program is told */

/* The op at hand uses an address in no live tensor. */
void um_mistake_pointer(struct um_notices *n, const char *op, const struct um_registry *r, const void *ptr);

/* It uses `bytes` from `off` of a tensor that is shorter. */
void um_mistake_range(struct um_notices *n, const char *op, const struct um_tensor *t, uint64_t off, uint64_t bytes);

/* A use of it neither reads nor writes. */
void um_mistake_access(struct um_notices *n, const char *op, const struct um_tensor *t, unsigned access);

/* A reserved member of one of its uses is not zero. */
void um_mistake_reserved(struct um_notices *n, const char *op);

/* The device below refuses its stream. */
void um_mistake_stream(struct um_notices *n, const char *op, const struct um_chosen_device *d, um_stream stream,
		       int code);

/* UM_OPS_OUTSIDE ops, and umadv_iter was never called. */
void um_mistake_no_iteration(struct um_notices *n);

#endif
