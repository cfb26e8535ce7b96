/* SPDX-License-Identifier: Apache-2.0
 *
 * place_stream.h - places given out in the order of birth, as an allocator would
 *
 * in    holes, and slots in any order
 * out   a place for each: the smallest hole that fits when it is born, its end for what lives long
 *
 * For schedules too long to search through (place.c): O(n log n). Knows nothing of what comes later, so it packs a
 * little worse. Slots that live through an iteration's end do not belong here.
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
