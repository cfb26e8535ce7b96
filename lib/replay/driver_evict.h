/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_evict.h - a steady iteration in which the driver evicts what leaves
 *
 * in    a program's steady iteration, the number of blocks that the device holds
 * out   the same with outs that are left to the driver (LEAVE), and ins of what is there (KEEP)
 *
 * An out costs the driver the block's mapping on the host, and its unmapping when it comes back; an eviction neither.
 * The driver evicts the head of its list, and a block goes to the list's tail when it is brought, or asked for while it
 * is there. So a block that is to stay and comes near the head is asked for again (KEEP), and a block that nobody asks
 * for any more, once its last op is through (LEAVE), is at the head some time.
 *
 * What is asked for is the same in each iteration, in one order (all of it in lane `in`), so the list's order is known
 * once one iteration has asked: that one takes its outs home still. A device that holds more than it was planned for,
 * or to which memory is given back sooner, evicts later, and only what it would have evicted by then: what stays is
 * asked for before anything behind it is evicted.
 * A value. Iteration path: O(blocks + actions x UM_LANES_IN), some times over.
 */
#ifndef UM_REPLAY_DRIVER_EVICT_H
#define UM_REPLAY_DRIVER_EVICT_H

#include "replay/compiled_plan.h"

/* 0, -ENOMEM, or -ENOTSUP: the order cannot be foreseen. `out` is the caller's (um_compiled_iteration_fini). */
int um_driver_evict_build(const struct um_compiled_plan *p, uint64_t capacity_blocks,
			  struct um_compiled_iteration *out);

#endif
