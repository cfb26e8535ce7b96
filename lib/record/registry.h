/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h - which tensor lives at an address
 *
 * in    tensors that appear and disappear, addresses that operations touch
 * out   live tensors
 * owns  struct um_tensor from birth to death; not the memory they stand for
 *
 * Live tensors nest (a sub-range of an adopted allocation is a tensor of its own) but never overlap in part. An id is
 * never used twice, so an id in an old event still means what it meant. The record of a dead tensor is kept for one
 * that is born later: whoever has a pointer and an id can ask whether that is still the tensor. Op path: O(log n),
 * allocates nothing.
 * Not thread-safe: the front desk holds the lock.
 */
#ifndef UM_RECORD_REGISTRY_H
#define UM_RECORD_REGISTRY_H

#include "model/tensor.h"

#define UM_REGISTRY_PAST 64

/* A tensor that is dead. */
struct um_registry_past {
	uint64_t addr, bytes; /* bytes 0: none */
	char *name; /* owned; may be NULL */
};

struct um_registry {
	struct um_tree live; /* by addr; of nested tensors that start together the inner one comes later in the key */
	struct um_tensor *spare; /* records of the dead, by `parent` */
	struct um_registry_past past[UM_REGISTRY_PAST]; /* the last ones to die, in turn from `next_past` on */
	unsigned next_past;
	uint64_t next_id;
	size_t n;
};

void um_registry_init(struct um_registry *r);
void um_registry_fini(struct um_registry *r); /* frees what is still alive */

/* A tensor is born. Outputs `*out` (owned by the registry). 0, -ENOMEM, -EINVAL (no bytes, or wraps around),
 * -EEXIST (overlaps a live tensor in part, or the very same range is alive). */
int um_registry_add(struct um_registry *r, uint64_t addr, uint64_t bytes, const char *name, enum um_role role,
		    unsigned flags, struct um_tensor **out);

/* The innermost live tensor that holds addr; NULL if none. */
struct um_tensor *um_registry_find(const struct um_registry *r, uint64_t addr);

/* The last to die, of the last UM_REGISTRY_PAST, that held addr; NULL if none. */
const struct um_registry_past *um_registry_find_past(const struct um_registry *r, uint64_t addr);

/* Cuts off what lies before the first and behind the last byte of the range that belongs to a live tensor; 0 bytes:
 * none does. */
void um_registry_clip(const struct um_registry *r, uint64_t *addr, uint64_t *bytes);

/* A tensor dies: its id becomes 0. Its sub-ranges must be dead already (n_children == 0), else -EBUSY. */
int um_registry_remove(struct um_registry *r, struct um_tensor *t);

#endif
