/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_player.h - plays a plan's own hints on a simulated GPU, exactly as they are written
 *
 * in    a plan, the trace it was made from (its operations' times count), a device profile
 * out   what each iteration cost
 * owns  the simulated device while it plays
 *
 * The order of things is that of um_plan_run, which also keeps the room below the plan's budget; how long each of them
 * takes is the device's matter. So the difference to the time that the plan predicts is what a umplan leaves out: the
 * driver's work, copies of what is clean, both directions slowing each other down, whole pages. Tensors do not share
 * 64 KiB pages, and the device has memory to spare for that: it never evicts by itself. Deterministic.
 */
#ifndef UM_PLAY_PLAN_PLAYER_H
#define UM_PLAY_PLAN_PLAYER_H

#include "play/player.h"

/* Of `o` the profile, iterations, jitter, means, progress and user count. 0; -ENODATA: the plan is not sound, or not of
 * this trace (out->why); -ENOMEM, -EIO. */
int um_plan_player_run(const struct um_trace *trace, const struct um_plan *plan, const struct um_play_options *o,
		       struct um_play_result *out);

#endif
