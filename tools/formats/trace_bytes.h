/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_bytes.h - the bytes of a trace that operations touch: of one op, and of all tensors alive at once
 *
 * in    tensors and ops, in the order of the trace
 * out   bytes that an op touches; by tensor, the bytes that all ops of its life touch
 * owns  the ranges of each tensor
 *
 * Ranges of one tensor count once where they overlap. A look-up (`touched` below the range) counts the 2 MiB blocks
 * that its 4 KiB pages lie in, as they become resident, at most the range; the look-ups of a tensor are taken to be in
 * the same blocks. So the slabs that one op uses count as slabs, a table as what is looked up in it. Cost: O(uses log
 * uses) of an op, and as much for its tensors unless all of them are used as a whole.
 */
#ifndef UM_FORMATS_TRACE_BYTES_H
#define UM_FORMATS_TRACE_BYTES_H

#include "base/vec.h"
#include "io/id_map.h"
#include "model/event.h"

struct um_trace_range {
	uint64_t off, end;
};

/* A tensor of the trace, alive or not. */
struct um_trace_tensor {
	uint64_t bytes;
	UM_VEC(struct um_trace_range) used; /* ascending, apart */
	uint64_t looked_up; /* by the op with the most look-ups in it */
};

struct um_trace_bytes {
	struct um_id_map index; /* id -> number of the tensor */
	UM_VEC(struct um_trace_tensor) tensors;
	UM_VEC(struct um_use) uses; /* scratch: of one op */
};

/* All zero is a valid start. */
void um_trace_bytes_fini(struct um_trace_bytes *b);

int um_trace_bytes_add(struct um_trace_bytes *b, uint64_t id, uint64_t bytes); /* a tensor; 0 or -ENOMEM */

/* `*bytes`: what the op touches. 0 or -ENOMEM. */
int um_trace_bytes_op(struct um_trace_bytes *b, const struct um_op *op, uint64_t *bytes);

/* Of a tensor, what the ops seen so far touch. */
uint64_t um_trace_bytes_of(const struct um_trace_bytes *b, uint64_t id);

#endif
