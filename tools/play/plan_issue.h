/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_issue.h - plays a plan as the library issues it: compiled to whole blocks, by the library's workers
 *
 * in    a sound plan whose slots all have places, the times of its operations, a device profile
 * out   the cost of each iteration
 * owns  the simulated device while it plays
 *
 * As lookahead plays its plan, with two exceptions: operations run one after the other, on one stream, and content that
 * the plan counts as dead in the first iteration is copied. The device has the plan's budget as its memory, unless
 * whole blocks do not fit into that. Deterministic.
 */
#ifndef UM_PLAY_PLAN_ISSUE_H
#define UM_PLAY_PLAN_ISSUE_H

#include "play/player.h"

/* Do all slots have places, as in the plans that the library writes? */
int um_plan_issue_can(const struct um_plan *plan);

/* `ns`, `turns`: um_plan_match. Of `o` the profile, iterations, evict, jitter, means, progress and user count. 0,
 * -ENOMEM or -EIO. */
int um_plan_issue(const struct um_plan *plan, const struct um_play_options *o, const uint64_t *ns, uint64_t turns,
		  struct um_play_result *out);

#endif
