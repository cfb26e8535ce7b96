/* SPDX-License-Identifier: Apache-2.0
 *
 * arena_pool.h - managed memory from the device, given out in pieces
 *
 * in    sizes wanted, places planned
 * out   addresses
 * owns  the managed allocations (arenas) and the heaps over them
 *
 * There are three heaps. Plans place tensors in the main one; what comes in between and was not planned is taken from
 * the one aside, so that no stranger sits where a planned tensor is to be born; what has come to stay has one of its
 * own.
 *
 * A piece that is given back may still be in use by ops queued on a stream. While ops came on one stream only, the
 * piece may be taken again at once: the stream is the order. An event is recorded on that stream after each such piece,
 * and every stream that appears later waits for it on the device. With several streams a piece waits until events
 * recorded on all of them are complete. Where an event cannot be recorded the piece waits, or is never used again. Not
 * thread-safe: the caller holds the lock.
 */
#ifndef UM_RUNTIME_ARENA_POOL_H
#define UM_RUNTIME_ARENA_POOL_H

#include "base/vec.h"
#include "gpu/app_stream.h"
#include "record/heap.h"

#define UM_ARENA_POOL_FIRST (256ull << 20)

enum um_arena_pool_heap { UM_ARENA_POOL_MAIN, UM_ARENA_POOL_UNPLANNED, UM_ARENA_POOL_LONG_LIVED, UM_ARENA_POOL_HEAPS };

struct um_arena_pool_region {
	void *given; /* by the device: what is to be freed */
	uint64_t addr, bytes; /* whole blocks of it */
	uint64_t used_hi; /* first address never given out */
	enum um_arena_pool_heap heap;
};

struct um_arena_pool_waiting {
	uint64_t addr, bytes;
	um_event_handle events[UM_APP_STREAMS];
	unsigned missing; /* bit i: stream i took no event (it captures, or a call failed): to be tried again */
};

struct um_arena_pool {
	struct um_gpu *gpu;
	struct um_heap heap[UM_ARENA_POOL_HEAPS];
	UM_VEC(struct um_arena_pool_region) regions; /* by address */
	UM_VEC(struct um_arena_pool_waiting) waiting;
	struct um_app_streams streams; /* crowded: what is given back is not used again */
	um_event_handle reused; /* after the pieces given back while there was one; NULL: none, or complete */
	uint64_t total[UM_ARENA_POOL_HEAPS]; /* bytes of each heap's regions */
};

void um_arena_pool_init(struct um_arena_pool *a, struct um_gpu *gpu);
void um_arena_pool_fini(struct um_arena_pool *a); /* frees the regions */

/* Takes a piece: of a heap, or, of the main one, exactly at `place`. 0; -ENOMEM; um_arena_pool_alloc_at also -EBUSY. */
int um_arena_pool_alloc(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap, uint64_t *addr);
int um_arena_pool_alloc_at(struct um_arena_pool *a, uint64_t place, uint64_t bytes);
void um_arena_pool_free(struct um_arena_pool *a, uint64_t addr, uint64_t bytes);

/* At least `bytes` more in one region of a heap. 0 or -ENOMEM. */
int um_arena_pool_grow(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap);

/* The region that holds all of [addr, addr + bytes), or NULL. */
const struct um_arena_pool_region *um_arena_pool_region_at(const struct um_arena_pool *a, uint64_t addr,
							   uint64_t bytes);

/* An op is about to be launched on a stream that has no number: gives it one, and orders it after the earlier use of
 * all memory that was taken again. 0, or -EIO: the device refused every call that would. */
int um_arena_pool_add_stream(struct um_arena_pool *a, um_stream stream);

#endif
