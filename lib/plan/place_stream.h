/* SPDX-License-Identifier: Apache-2.0
 *
 * place_stream.h - assigns addresses in the order of birth, as an allocator would
 *
 * in    holes, and slots in any order
 * out   a place for each: the smallest hole that fits at its birth; its end for long-lived slots
 *
 * For schedules too long for a search (place.c): O(n log n). It does not look ahead, so it packs slightly worse. Slots
 * that live through an iteration's end are excluded.
 */
#ifndef UM_PLAN_PLACE_STREAM_H
#define UM_PLAN_PLACE_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct um_place_hole {
	uint64_t addr, end; /* ascending, not overlapping */
};

struct um_place_life {
	uint32_t slot;
	int32_t birth, death; /* birth < death */
	uint64_t bytes; /* a multiple of the granule */
	uint64_t place; /* set here */
};

/* `life` is sorted by birth. 0, -ENOMEM, -EINVAL (a slot fits nowhere). */
int um_place_stream(const struct um_place_hole *hole, size_t n_holes, struct um_place_life *life, size_t n,
		    int32_t n_ops);

#endif
