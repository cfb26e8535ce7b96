/* SPDX-License-Identifier: Apache-2.0
 *
 * mistakes.h - logs invalid announcements of the program, once per cause, with the names of op and tensor
 *
 * Outside the op path: called only for invalid announcements. The caller holds the context's lock.
 */
#ifndef UM_RUNTIME_MISTAKES_H
#define UM_RUNTIME_MISTAKES_H

#include "record/registry.h"
#include "runtime/chosen_device.h"
#include "runtime/notices.h"

#define UM_OPS_OUTSIDE 100000 /* ops without an iteration, marked or found, after which a warning is logged */

/* The op uses an address outside every live tensor. */
void um_mistake_pointer(struct um_notices *n, const char *op, const struct um_registry *r, const void *ptr);

/* The op uses memory of another context; a call names it. */
void um_mistake_other(struct um_notices *n, const char *op, const void *ptr, int device);
void um_mistake_other_call(struct um_notices *n, const char *call, const void *ptr, int device);

/* The op uses bytes beyond the tensor's end. */
void um_mistake_range(struct um_notices *n, const char *op, const struct um_tensor *t, uint64_t off, uint64_t bytes);

/* A use neither reads nor writes. */
void um_mistake_access(struct um_notices *n, const char *op, const struct um_tensor *t, unsigned access);

/* A reserved member of a use is not zero. */
void um_mistake_reserved(struct um_notices *n, const char *op);

/* The device refuses the op's stream. */
void um_mistake_stream(struct um_notices *n, const char *op, const struct um_chosen_device *d, um_stream stream,
		       int code);

/* UM_OPS_OUTSIDE ops, umadv_iter was never called, and they do not repeat. */
void um_mistake_no_iteration(struct um_notices *n);

/* The parameters of the op's kernel are not known: CUDA error `code`. */
void um_mistake_kernel(struct um_notices *n, const char *op, int code);

#endif
