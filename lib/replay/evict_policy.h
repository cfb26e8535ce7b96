/* SPDX-License-Identifier: Apache-2.0
 *
 * evict_policy.h - eviction policy of steady iterations: prefetches to the host by the library, or the driver
 *
 * in    a compiled plan, its plan, a device profile
 * out   the plan with its steady iteration under the cheaper policy
 *
 * If a copy takes longer than the driver's additional work for a prefetch to the host, shared among the workers,
 * evictions by the driver gain nothing: a prefetch waits for the copy of the block whose memory it takes. Otherwise
 * both are rehearsed. A value; iteration path: a few times the rehearsal, and nothing where the link is the limit.
 */
#ifndef UM_REPLAY_EVICT_POLICY_H
#define UM_REPLAY_EVICT_POLICY_H

#include "model/profile.h"
#include "replay/compiled_plan.h"

/* AUTO: the faster one; DRIVER only if its order can be predicted. */
enum um_evict_policy { UM_EVICT_AUTO, UM_EVICT_LIBRARY, UM_EVICT_DRIVER };

/* The maximum number of blocks in an eviction with which the plan's steady iteration is fastest by rehearsal. Long runs
 * save calls, short ones make room sooner. */
uint32_t um_evict_policy_runs(const struct um_plan *plan, const struct um_profile *profile, uint64_t capacity_blocks);

/* Also issues prefetches early (um_compiled_plan_issue_early). 0 or -ENOMEM. */
int um_evict_policy_choose(struct um_compiled_plan *p, const struct um_plan *plan, const struct um_profile *profile,
			   uint64_t capacity_blocks, enum um_evict_policy policy);

#endif
