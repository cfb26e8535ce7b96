/* SPDX-License-Identifier: Apache-2.0
 *
 * place_list.h - which addresses are occupied during which ops
 *
 * in    address ranges with the part of the iteration in which they are occupied
 * out   holes: addresses that are free during an arc
 * owns  the entries
 *
 * Entries are in address order, stored in runs of some entries: a search reads them front to back and compares several
 * arcs at once, an insertion or removal moves one run. Permanent entries are merged with their neighbours. Find: linear
 * in the entries.
 */
#ifndef UM_PLAN_PLACE_LIST_H
#define UM_PLAN_PLACE_LIST_H

#include "base/vec.h"

#define UM_PLACE_RUN 256

/* [from, to) in ops, and [0, wrap) where it continues in the next iteration. */
struct um_place_arc {
	int32_t from, to, wrap;
};

static const struct um_place_arc um_place_for_ever = {0, INT32_MAX, 0};
/* Not a slot: the end of a room. Intersects every arc. */
static const struct um_place_arc um_place_wall = {-1, INT32_MAX, 0};

struct um_place_run {
	uint32_t n, next; /* next: 0 for none, since run 0 comes first */
	int32_t from[UM_PLACE_RUN], to[UM_PLACE_RUN], wrap[UM_PLACE_RUN]; /* arcs */
	uint64_t addr[UM_PLACE_RUN], end[UM_PLACE_RUN];
	uint64_t top[UM_PLACE_RUN]; /* the highest end so far in this run */
};

struct um_place_list {
	UM_VEC(struct um_place_run) runs;
	uint32_t spare; /* the first run without entries, linked by `next`; 0: none */
	uint64_t work; /* runs that were searched */
};

enum um_place_fit {
	UM_PLACE_BEST, /* the smallest hole below the end of the room's contents, otherwise the first place above it */
	UM_PLACE_LOWEST /* the first hole */
};

static inline int um_place_is_for_ever(struct um_place_arc a)
{
	return a.to == INT32_MAX;
}

int um_place_list_init(struct um_place_list *l); /* 0 or -ENOMEM; also to clear a list */
void um_place_list_fini(struct um_place_list *l);

/* Adds an entry. 0 or -ENOMEM. */
int um_place_list_add(struct um_place_list *l, uint64_t addr, uint64_t end, struct um_place_arc arc);

/* Removes an entry that is there and not permanent. */
void um_place_list_remove(struct um_place_list *l, uint64_t addr, uint64_t end, struct um_place_arc arc);

/* Does no entry of these addresses intersect `arc`? */
int um_place_list_is_free(struct um_place_list *l, uint64_t addr, uint64_t end, struct um_place_arc arc);

/* A place for `bytes` during `arc`, a multiple of `align` (a power of two); UINT64_MAX if none. */
uint64_t um_place_list_find(struct um_place_list *l, uint64_t bytes, uint64_t align, struct um_place_arc arc,
			    enum um_place_fit fit);

#endif
