/* SPDX-License-Identifier: Apache-2.0
 *
 * rehearsal.h - estimates the duration of a steady iteration of a compiled plan, including the driver's work
 *
 * in    a compiled plan, the plan (ops' times, advice), a device profile
 * out   an estimate in ns
 *
 * A plan predicts the link's time only. The driver's calls, its work on each block, its copies of clean data, and the
 * waits among the lanes (lanes.h) are added here; plans with equal predictions differ in them. The costs are those of
 * doc/simulator.md. Accesses over the link and the page faults of paged ops add to the ops' times. Ops are assumed to
 * run one after the other. A value; iteration path: O((ops + actions) log blocks).
 */
#ifndef UM_REPLAY_REHEARSAL_H
#define UM_REPLAY_REHEARSAL_H

#include "model/profile.h"
#include "replay/compiled_plan.h"

/* 0 or -ENOMEM. */
int um_rehearse(const struct um_compiled_plan *program, const struct um_plan *plan, const struct um_profile *profile,
		uint64_t *ns);

#endif
