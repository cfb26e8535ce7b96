/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_player.h - plays a plan's own hints on a simulated GPU
 *
 * in    a plan, its trace, which gives the operations' times, a device profile
 * out   the cost of each iteration
 * owns  the simulated device while it plays
 *
 * If all slots have places, the library's executor issues the plan (plan_issue.h). Otherwise hints are issued exactly
 * as they are written: um_plan_run decides the order and keeps the plan's budget; the device decides the times. So the
 * difference to the predicted time shows costs that a umplan does not model: the driver's work, copies of clean pages,
 * interference of both directions, whole pages. Tensors do not share 64 KiB pages, and the device has additional
 * memory for that: it never evicts by itself. Deterministic.
 */
#ifndef UM_PLAY_PLAN_PLAYER_H
#define UM_PLAY_PLAN_PLAYER_H

#include "play/player.h"

/* Of `o` the profile, iterations, jitter, means, progress and user count. 0; -ENODATA: the plan is not sound, or not of
 * this trace (out->why); -ENOMEM, -EIO. */
int um_plan_player_run(const struct um_trace *trace, const struct um_plan *plan, const struct um_play_options *o,
		       struct um_play_result *out);

#endif
