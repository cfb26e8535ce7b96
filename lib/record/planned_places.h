/* SPDX-License-Identifier: Apache-2.0
 *
 * planned_places.h - gives out the addresses of a plan, beside a heap
 *
 * in    the places of a plan, which overlap where tensors live one after the other; ranges that are in use
 * out   whether a place is free
 * owns  the edges of the places; while claimed, the heap does not give out what they cover
 *
 * The places cut the addresses into cells, and a cell is in use or free as a whole. So a place is a range of cells: to
 * take it or to give it back changes some bits, and no tree of the heap. A range that was in use before belongs to the
 * places when it is given back. Op path: take and give, O(cells of the place / 64) once warm, no allocation. Iteration
 * path: claim, O(n log n), and release. Not thread-safe.
 */
#ifndef UM_RECORD_PLANNED_PLACES_H
#define UM_RECORD_PLANNED_PLACES_H

#include "record/heap.h"

struct um_place_cells {
	uint32_t from, to; /* to 0: none */
};

struct um_planned_places {
	UM_VEC(uint64_t) edges; /* ascending: cell i is [edges[i], edges[i + 1]); none: nothing is claimed */
	UM_VEC(struct um_place_cells) cells; /* of each place, at the hash of its range or after it; a power of two */
	UM_VEC(uint64_t) ours; /* a bit per cell: part of a place */
	UM_VEC(uint64_t) busy; /* likewise: in use, or not ours */
	UM_VEC(struct um_heap_region) free; /* the heap's free ranges when the places were claimed */
};

void um_planned_places_init(struct um_planned_places *p);
void um_planned_places_fini(struct um_planned_places *p);

static inline int um_planned_places_claimed(const struct um_planned_places *p)
{
	return p->edges.n != 0;
}

/* Claims what the places (of one heap, bytes > 0) cover; nothing is claimed yet. `used`: ranges of the heap that are in
 * use; they may lie anywhere. 0; -ENOMEM: nothing is claimed. */
int um_planned_places_claim(struct um_planned_places *p, struct um_heap *h, const struct um_heap_region *place,
			    size_t n_places, const struct um_heap_region *used, size_t n_used);

/* Returns what is free to the heap; what is in use is the heap's again, as if it had given it out. */
void um_planned_places_release(struct um_planned_places *p, struct um_heap *h);

/* Takes exactly [addr, addr + bytes), bytes rounded up to granules. 0; -EBUSY: part of it is in use; -ENOENT: not a
 * place; -ENOMEM. */
int um_planned_places_take(struct um_planned_places *p, struct um_heap *h, uint64_t addr, uint64_t bytes);

/* Gives a range back that was taken here or from the heap. */
void um_planned_places_give(struct um_planned_places *p, struct um_heap *h, uint64_t addr, uint64_t bytes);

#endif
