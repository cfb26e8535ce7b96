/* SPDX-License-Identifier: Apache-2.0
 *
 * place_order.h - places items one after the other; searches for an order that packs them more densely
 *
 * in    items with sizes and arcs; a list of what has a place; rooms
 * out   a place for each item
 *
 * The height of a packing is the room below the end of its highest item. The search is bounded in work, keeps the best
 * packing so far, and is deterministic. Plan path: O(items * entries) for one order.
 */
#ifndef UM_PLAN_PLACE_ORDER_H
#define UM_PLAN_PLACE_ORDER_H

#include "plan/place_list.h"
#include "plan/planner.h"

struct um_place_item {
	uint32_t slot; /* the caller's */
	uint64_t bytes, align; /* align: a power of two */
	struct um_place_arc arc;
	uint64_t place; /* set here */
};

/* Places the items in this order, each into the smallest hole, and adds them to the list. 0, -ENOMEM, -EINVAL (an item
 * fits nowhere). */
int um_place_in_order(struct um_place_list *l, struct um_place_item *item, size_t n);

/* Looks for a lower packing of items that are in the list, and not permanent; ends at the height `enough`. The list's
 * entries for the items are then undefined. 0 or -ENOMEM. */
int um_place_search(struct um_place_list *l, const struct um_plan_request *r, struct um_place_item *item, size_t n,
		    uint64_t enough);

/* Bytes of the rooms, and from r->grow_at on, below an address in them. */
uint64_t um_place_height(const struct um_plan_request *r, uint64_t end);

#endif
