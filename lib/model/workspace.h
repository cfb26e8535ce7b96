/* SPDX-License-Identifier: Apache-2.0
 *
 * workspace.h - the workspaces that ops offer, and those that a plan has chosen
 *
 * An op may have several algorithms, each with a workspace and a time. In a plan the workspace of the chosen one is a
 * slot with UM_SLOT_WORKSPACE, which this op alone overwrites and which lives from the op to the next one. So a plan
 * keeps room for it as for any other slot.
 */
#ifndef UM_MODEL_WORKSPACE_H
#define UM_MODEL_WORKSPACE_H

#include "model/schedule.h"

/* The fastest of `n` > 0 offers with at most `room` bytes; of equally fast ones the one with fewer. If there is none,
 * the one with the fewest bytes; of equally large ones the faster. */
uint32_t um_workspace_pick(const struct um_workspace *ws, uint32_t n, uint64_t room);

/* Does an op offer workspaces? */
int um_schedule_offers(const struct um_schedule *s);

/* What the chosen algorithm of an op takes longer than its fastest one. */
uint64_t um_workspace_slower_ns(const struct um_schedule *s, const struct um_sched_op *op);

/* The slot of the op's workspace; UM_NO_SLOT: none. */
uint32_t um_workspace_slot(const struct um_schedule *s, const struct um_sched_op *op);

/* Has each op of a plan that offers workspaces the one that it chose, and nothing else a slot of this kind? 0, or
 * -EINVAL with one line in `why`. */
int um_workspace_check(const struct um_schedule *s, char *why, size_t size);

/* Fills `to` (initialised, empty): `from` with a slot for each chosen workspace, in place of those that it has.
 * `choice` by op; NULL: no workspaces, and each op takes its shortest time, which bounds every choice. `relaunch`: an
 * op with a workspace may be launched again, with another one. 0 or -ENOMEM. Linear. */
int um_workspace_apply(const struct um_schedule *from, const uint32_t *choice, int relaunch, struct um_schedule *to);

#endif
