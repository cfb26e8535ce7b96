/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h - maps addresses to live tensors
 *
 * in    tensors that appear and disappear, addresses that operations use
 * out   live tensors
 * owns  struct um_tensor from birth to death; not the tensors' memory
 *
 * Live tensors nest (a sub-range of an adopted allocation is a tensor of its own) but never overlap in part. An id is
 * never reused, so an id in an old event stays valid. The record of a dead tensor is reused for a later one, and so is
 * the memory of its name: with a pointer and an id one can check whether it is still the same tensor. Op path: O(log
 * n), allocates nothing once warm. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RECORD_REGISTRY_H
#define UM_RECORD_REGISTRY_H

#include "model/tensor.h"

#define UM_REGISTRY_FREED 64
#define UM_REGISTRY_NAME 64 /* longer names are allocated anew for each tensor */

/* A dead tensor. */
struct um_registry_freed {
	uint64_t addr, bytes; /* bytes 0: none */
	char *name; /* owned; may be NULL */
};

struct um_registry {
	struct um_tree live; /* by addr; of nested tensors that start together the inner one comes later in the key */
	struct um_tensor *spare; /* records of dead tensors, linked by `parent` */
	void *spare_names; /* memory of UM_REGISTRY_NAME bytes, linked by the first ones */
	struct um_registry_freed freed[UM_REGISTRY_FREED]; /* the last ones; a ring that continues at `next_freed` */
	unsigned next_freed;
	uint64_t next_id;
	uint64_t changes; /* births and deaths so far */
	size_t n;
};

void um_registry_init(struct um_registry *r);
void um_registry_fini(struct um_registry *r); /* frees live tensors, too */

/* A tensor is born. Outputs `*out` (owned by the registry). 0, -ENOMEM, -EINVAL (no bytes, or wraps around), -EEXIST
 * (overlaps a live tensor in part, or equals one). */
int um_registry_add(struct um_registry *r, uint64_t addr, uint64_t bytes, const char *name, enum um_role role,
		    unsigned flags, struct um_tensor **out);

/* The innermost live tensor that contains addr; NULL if none. */
struct um_tensor *um_registry_find(const struct um_registry *r, uint64_t addr);

/* The last to die, of the last UM_REGISTRY_FREED, that contained addr; NULL if none. */
const struct um_registry_freed *um_registry_find_freed(const struct um_registry *r, uint64_t addr);

/* Shrinks a range to its first and last byte that belong to a live tensor; 0 bytes if there are none. */
void um_registry_clip(const struct um_registry *r, uint64_t *addr, uint64_t *bytes);

/* A tensor dies: its id becomes 0. Its sub-ranges must be dead (n_children == 0), otherwise -EBUSY. */
int um_registry_remove(struct um_registry *r, struct um_tensor *t);

#endif
