/* SPDX-License-Identifier: Apache-2.0
 *
 * arena_pool.h - suballocates tensors in managed memory
 *
 * in    sizes, planned addresses
 * out   addresses
 * owns  the managed allocations (arenas) and the heaps over them
 *
 * There are three heaps. Plans place tensors in the main one; while a plan is followed, its places are claimed: they
 * are given out without a search. Tensors that a plan does not contain come from the second one, so that they never
 * occupy a planned place. Long-lived tensors have the third one.
 *
 * Ops queued on a stream may still use a piece that is freed. While all ops were on one stream, the piece is free for
 * reuse at once, since that stream orders both uses. After each such free an event is recorded on that stream, and
 * every stream that appears later waits for it on the device. With several streams a piece is free for reuse when
 * events recorded on all of them are complete, or on the one that its free names. If an event cannot be recorded, the
 * piece waits, or is never used again.
 * A stream that was forgotten has no work any more.
 *
 * CUDA may crash when it is passed the handle of a destroyed stream. Unless the ends of streams are known, events are
 * recorded on a stream that the program created only in a call that names it, or that may name any stream: that of a
 * free is recorded before the stream's next op, or when a birth waits for its planned place. While one is missing and
 * memory is short, or a further stream appears, the pool waits for the whole device. After that a stream counts as idle
 * until it is named again. Pieces that it did not use do not wait for an idle stream, or for one that was not named in
 * their lifetime. Not thread-safe: the caller holds the lock.
 */
#ifndef UM_RUNTIME_ARENA_POOL_H
#define UM_RUNTIME_ARENA_POOL_H

#include "base/vec.h"
#include "gpu/app_stream.h"
#include "record/planned_places.h"

#define UM_ARENA_POOL_FIRST (256ull << 20)

enum um_arena_pool_heap { UM_ARENA_POOL_MAIN, UM_ARENA_POOL_UNPLANNED, UM_ARENA_POOL_LONG_LIVED, UM_ARENA_POOL_HEAPS };

struct um_arena_pool_region {
	void *base; /* by the device, for cudaFree */
	uint64_t addr, bytes; /* whole blocks of it */
	uint64_t used_hi; /* first address that was never allocated */
	uint64_t shown_hi; /* um_arena_pool_new_memory returned what is below */
	enum um_arena_pool_heap heap;
};

struct um_arena_pool_waiting {
	uint64_t addr, bytes;
	um_event_handle events[UM_APP_STREAMS];
	unsigned users; /* a bit for each stream whose ops used it */
	unsigned last; /* likewise, of the streams that it waits for */
	unsigned missing; /* bit i: no event on stream i yet: it was not named since, it captures, or a call failed */
};

struct um_arena_pool {
	struct um_gpu *gpu;
	struct um_heap heap[UM_ARENA_POOL_HEAPS];
	struct um_planned_places planned; /* of the main heap */
	UM_VEC(struct um_heap_region) used; /* scratch: ranges in use when places are claimed */
	UM_VEC(struct um_arena_pool_region) regions; /* by address */
	UM_VEC(struct um_arena_pool_waiting) waiting;
	struct um_app_streams streams; /* overflow: freed pieces are not used again */
	um_event_handle reused; /* after the pieces freed while there was one stream; NULL: none, or complete */
	struct um_app_stream reused_on; /* that stream */
	int reused_later; /* `reused` does not come after all of them: it is recorded when the stream is named */
	int captured; /* the program has captured work: waiting for the device may invalidate a capture */
	uint64_t total[UM_ARENA_POOL_HEAPS]; /* bytes of each heap's regions */
};

void um_arena_pool_init(struct um_arena_pool *a, struct um_gpu *gpu);
void um_arena_pool_fini(struct um_arena_pool *a); /* frees the regions */

struct um_arena_pool_missing {
	uint64_t (*blocks)(void *user, uint64_t addr, uint64_t bytes); /* of the range that are not resident */
	void *user;
};

/* Allocates a piece from a heap, or from the main one exactly at `place`. The main heap's pieces are placed where the
 * fewest blocks are missing or were never used: those will need memory of the host. `missing` NULL: where they fit
 * best. 0; -ENOMEM; um_arena_pool_alloc_at also -EBUSY. */
int um_arena_pool_alloc(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap,
			const struct um_arena_pool_missing *missing, uint64_t *addr);
int um_arena_pool_alloc_at(struct um_arena_pool *a, uint64_t place, uint64_t bytes);
/* The use of a piece that is freed. */
struct um_arena_pool_use {
	uint64_t born; /* serial of the first op after its allocation */
	unsigned users; /* a bit for each stream whose ops used it */
	unsigned last; /* likewise, of those whose work comes last, named in this call; UM_ARENA_POOL_ANY */
};
#define UM_ARENA_POOL_ANY (~0u)
void um_arena_pool_free(struct um_arena_pool *a, uint64_t addr, uint64_t bytes, const struct um_arena_pool_use *use);

/* Claims the planned places of the main heap. `used`: tensors that are alive; they may be elsewhere. 0 or -ENOMEM: then
 * um_arena_pool_alloc_at searches. Iteration path: O(n log n). */
int um_arena_pool_claim(struct um_arena_pool *a, const struct um_heap_region *place, size_t n_places,
			const struct um_heap_region *used, size_t n_used);
void um_arena_pool_unclaim(struct um_arena_pool *a); /* if they are claimed */

/* The streams whose ops may still use freed pieces of the range: a bit each. A piece that was freed while there was one
 * stream counts as one in each range. Cost: O(pieces that are not free for reuse yet). */
unsigned um_arena_pool_users(struct um_arena_pool *a, uint64_t addr, uint64_t bytes);

/* Frees the pieces of the range that no stream uses any more, and records the events that they miss on all streams,
 * which the caller may use. 1: the use of the next one ends with events that were recorded; 0: there is none, or an
 * event is missing. Cost: as above. */
int um_arena_pool_ends_by_events(struct um_arena_pool *a, uint64_t addr, uint64_t bytes);

/* Adds a region of at least `bytes` to a heap; it begins at `*addr`. 0 or -ENOMEM. */
int um_arena_pool_grow(struct um_arena_pool *a, uint64_t bytes, enum um_arena_pool_heap heap, uint64_t *addr);

/* The region that contains [addr, addr + bytes), or NULL. */
static inline const struct um_arena_pool_region *um_arena_pool_region_at(const struct um_arena_pool *a, uint64_t addr,
									 uint64_t bytes)
{
	for (const struct um_arena_pool_region *r = a->regions.at, *end = r + a->regions.n; r < end; r++)
		if (addr >= r->addr && addr + bytes <= r->addr + r->bytes)
			return r;
	return NULL;
}

/* The memory of `addr`'s region that was allocated, by now or earlier, and that no call has returned so far. Its bytes;
 * 0: none. */
uint64_t um_arena_pool_new_memory(struct um_arena_pool *a, uint64_t addr, uint64_t *from);

/* An op is about to be launched on a new stream: numbers it, and orders it after earlier uses of all reused memory. 0,
 * or -EIO: the device refused every such call. `*number`: UM_APP_STREAMS where no number was left. */
int um_arena_pool_add_stream(struct um_arena_pool *a, um_stream stream, unsigned *number);

/* A second host thread passes handle 0: orders its ops after earlier uses of all reused memory. 0 or -EIO. */
int um_arena_pool_share_null(struct um_arena_pool *a);

/* The program names a stream that has a number, which is in streams.due: records the events that freed pieces miss,
 * before the stream's next work. As above. */
int um_arena_pool_name_stream(struct um_arena_pool *a, unsigned i);

/* The work of the stream of this number is complete, and no more follows under the number. */
void um_arena_pool_forget_stream(struct um_arena_pool *a, unsigned i);

/* Forgets streams without pending work that have had no op since this serial. Returns their numbers, a bit each. Cost:
 * an event on each of them, or a wait for the device. */
unsigned um_arena_pool_retire_streams(struct um_arena_pool *a, uint64_t since);

#endif
