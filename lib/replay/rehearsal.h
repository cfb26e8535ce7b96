/* SPDX-License-Identifier: Apache-2.0
 *
 * rehearsal.h - how long a steady iteration of a program will take, the driver's work included
 *
 * in    a program, its schedule (what ops take), a device profile
 * out   an estimate in ns
 *
 * What a plan predicts is the link's time alone. The driver's calls, its work on each block, what it copies though the
 * plan knows it to be clean, and who waits for whom among the lanes (lanes.h) come on top, and plans that predict the
 * same differ in them. The costs are those of doc/simulator.md. Ops are taken to run one after the other.
 * A value; iteration path: O((ops + actions) log blocks).
 */
#ifndef UM_REPLAY_REHEARSAL_H
#define UM_REPLAY_REHEARSAL_H

#include "model/profile.h"
#include "replay/compiled_plan.h"

/* 0 or -ENOMEM. */
int um_rehearse(const struct um_compiled_plan *program, const struct um_schedule *sched,
		const struct um_profile *profile, uint64_t *ns);

#endif
