/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_evict.h - a steady iteration in which the driver evicts
 *
 * in    a compiled plan's steady iteration, the number of blocks that the device holds
 * out   the same with outs that are left to the driver (LEAVE_TO_DRIVER), and ins of resident blocks (REFRESH)
 *
 * An out costs the driver the block's mapping on the host, and its unmapping when it returns; an eviction neither. The
 * driver evicts the head of its list, and a block moves to the tail when it is migrated to the device, or prefetched
 * while resident. So a block that is to stay and comes near the head is prefetched again (refresh), and a block without
 * further requests after its last op reaches the head some time.
 *
 * The requests are the same in each iteration, in one order (all of them in lane `in`), so the list's order is known
 * after one iteration of requests: that one still evicts by outs. A device with more memory than planned, or with
 * memory freed sooner, evicts later, and only blocks that it would have evicted by then: blocks that stay are refreshed
 * before any later one is evicted. A value. Iteration path: O(blocks + actions x UM_LANES_IN), several times.
 */
#ifndef UM_REPLAY_DRIVER_EVICT_H
#define UM_REPLAY_DRIVER_EVICT_H

#include "replay/compiled_plan.h"

/* 0, -ENOMEM, or -ENOTSUP: the order cannot be predicted. `out` is the caller's (um_compiled_iteration_fini). */
int um_driver_evict_build(const struct um_compiled_plan *p, uint64_t capacity_blocks,
			  struct um_compiled_iteration *out);

#endif
