/* SPDX-License-Identifier: Apache-2.0
 *
 * address_map.h - the tensor at an address of a recorded run, or else the allocation
 *
 * in    ranges of tensors and allocations that begin and end
 * out   the number of the innermost range at an address
 * owns  the ranges
 *
 * Tensors may lie within tensors: the innermost counts. They nest: a new one ends those that it overlaps in part or
 * equals, because their end was not recorded. The same holds for allocations. An allocation that ends also ends the
 * tensors in it. Each call is O(log n), and O(k) where k ranges nest or end.
 */
#ifndef UM_REPORT_ADDRESS_MAP_H
#define UM_REPORT_ADDRESS_MAP_H

#include "base/tree.h"

enum um_place_kind { UM_PLACE_TENSOR, UM_PLACE_ALLOCATION, UM_PLACE_KINDS };

#define UM_PLACE_NONE UINT32_MAX
#define UM_ADDRESS_MAP_MAX 1048576u /* ranges of a kind at a time; more are left out */

#define UM_ADDRESS_MAP_FOUND 8 /* a power of two */

struct um_address_map {
	struct um_tree ranges[UM_PLACE_KINDS];
	uint64_t begun; /* ranges so far */
	struct um_place_found {
		uint64_t from, until; /* until 0: empty */
		uint32_t row;
	} found[UM_ADDRESS_MAP_FOUND]; /* recent look-ups, because migrations are often adjacent */
};

void um_address_map_fini(struct um_address_map *p); /* zeroed: empty */

/* From now on, [address, address + bytes) is `row`, which is not UM_PLACE_NONE. 0 or -ENOMEM. */
int um_address_map_add(struct um_address_map *p, enum um_place_kind kind, uint64_t address, uint64_t bytes,
		       uint32_t row);

/* Ends the range that begins there: of several the one of `bytes`, else the last one added. */
void um_address_map_remove(struct um_address_map *p, enum um_place_kind kind, uint64_t address, uint64_t bytes);

/* The row at an address, or UM_PLACE_NONE. It is the same up to `*until`, which is above the address. */
uint32_t um_address_map_find(struct um_address_map *p, uint64_t address, uint64_t *until);

#endif
