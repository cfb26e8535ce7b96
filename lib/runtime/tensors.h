/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h - the live tensors of a context, and their managed memory
 *
 * in    sizes, addresses of the program
 * out   tensors; ranges of managed memory
 * owns  the registry, the arenas
 *
 * Not thread-safe: the caller holds the context's lock. O(log tensors), um_tensors_used O(regions).
 */
#ifndef UM_RUNTIME_TENSORS_H
#define UM_RUNTIME_TENSORS_H

#include "model/schedule.h"
#include "record/registry.h"
#include "replay/executor.h"
#include "runtime/arena_pool.h"

#define UM_STAYING_KINDS 1024 /* a power of 2 */

struct umadv_stats;

/* A kind of tensors is their size and role. */
struct um_tensors {
	struct um_registry registry;
	struct um_arena_pool pool;
	uint64_t live, bytes_live, bytes_live_peak;
	UM_VEC(struct um_heap_region) places, ranges; /* scratch of um_tensors_claim */
	UM_VEC(uint64_t) planned; /* the kinds of the claimed places, in order */
	uint64_t
		staying[UM_STAYING_KINDS]; /* kinds whose last dead tensor stayed through an iteration, by their hash */
};

void um_tensors_init(struct um_tensors *t, struct um_gpu *gpu);
void um_tensors_fini(struct um_tensors *t); /* the device is still open */

/* Adds a tensor; returns as um_registry_add. */
int um_tensors_add(struct um_tensors *t, uint64_t addr, uint64_t bytes, const char *name, enum um_role role,
		   unsigned flags, struct um_tensor **out);
/* Removes a tensor without parts. If its content was not declared dead, neither is that of its parent any more. */
void um_tensors_remove(struct um_tensors *t, struct um_tensor *tensor);

/* The tensor dies. `stayed`: it lived through an iteration that began after its birth. O(1). */
void um_tensors_note_life(struct um_tensors *t, const struct um_tensor *tensor, int stayed);

/* Will a tensor probably stay beside the claimed places, through a whole further iteration? No if one of its kind is
 * born at such a place. O(log births). */
int um_tensors_will_stay(const struct um_tensors *t, uint64_t bytes, enum um_role role);

/* The live tensor that starts at ptr (of `bytes`, if not 0), or NULL. */
struct um_tensor *um_tensors_find_start(struct um_tensors *t, const void *ptr, uint64_t bytes);

/* Shrinks a range to the part that is known to be managed memory. If it is inside one region of the arenas, that region
 * is stored in `*whole` (unless NULL). */
void um_tensors_clip(const struct um_tensors *t, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole);

/* The adopted managed memory around an address. 1, or 0: there is none. */
int um_tensors_adopted(const struct um_tensors *t, uint64_t addr, struct um_executor_range *out);

/* Have the tensors that were alive at once never exceeded the budget? */
static inline int um_tensors_have_fitted(const struct um_tensors *t, uint64_t budget)
{
	return t->bytes_live_peak <= budget;
}

/* And would as much memory again not fit beside them? */
static inline int um_tensors_fit_tightly(const struct um_tensors *t, uint64_t budget)
{
	return um_tensors_have_fitted(t, budget) && t->bytes_live_peak > budget / 2;
}

/* Blocks of managed memory that was ever allocated. */
uint64_t um_tensors_count_used(const struct um_tensors *t);
/* These: an array to be freed (NULL: out of memory) and its length. If all fit into `capacity` blocks, without those of
 * tensors which plans do not contain: they will be used again, and would fault page by page if they were discarded. */
size_t um_tensors_used(const struct um_tensors *t, uint64_t capacity, struct um_executor_range **out);

/* Claims the places of the schedule's births, so that tensors get them without a search; um_arena_pool_unclaim undoes
 * it. 0 or -ENOMEM: then each birth is a search. Iteration path. */
int um_tensors_claim(struct um_tensors *t, const struct um_schedule *s);

void um_tensors_stats(const struct um_tensors *t, struct umadv_stats *out);

#endif
