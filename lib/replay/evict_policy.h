/* SPDX-License-Identifier: Apache-2.0
 *
 * evict_policy.h - who evicts in steady iterations: the library by prefetches to the host, or the driver
 *
 * in    a program, its schedule, a device profile
 * out   the program, its steady iteration played the cheaper way
 *
 * Where a copy takes longer than what a prefetch to the host costs the driver besides, shared among the workers that
 * make them, evictions gain nothing: what comes waits for the copy of what it takes the memory of. Elsewhere both are
 * rehearsed. A value; iteration path: a few times the rehearsal, and nothing where the link is what is waited for.
 */
#ifndef UM_REPLAY_EVICT_POLICY_H
#define UM_REPLAY_EVICT_POLICY_H

#include "model/profile.h"
#include "replay/compiled_plan.h"

/* Whose way blocks leave: what takes less time, the library's, the driver's where its order can be foreseen. */
enum um_evict_policy { UM_EVICT_AUTO, UM_EVICT_LIBRARY, UM_EVICT_DRIVER };

/* 0 or -ENOMEM, and the program is as it was. */
int um_evict_policy_choose(struct um_compiled_plan *p, const struct um_schedule *sched,
			   const struct um_profile *profile, uint64_t capacity_blocks, enum um_evict_policy way);

#endif
