/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes_need.h - the requests that an op, or an access of the CPU, has to come after
 */
#ifndef UM_REPLAY_LANES_NEED_H
#define UM_REPLAY_LANES_NEED_H

#include <stdint.h>

struct um_lanes_need {
	uint32_t in, drop; /* numbers after the last ones, */
	unsigned ins : 1, drops : 1; /* if there are such */
	unsigned cpu : 1; /* the access is of the CPU: drops must be complete */
	unsigned evicts : 2; /* of the CPU, by enum um_evict_lane, a bit each: evictions of what it uses are pending, */
	uint32_t evicted[2]; /* and these are the numbers after the last ones */
};

#endif
