/* SPDX-License-Identifier: Apache-2.0
 *
 * launches.h - when a kernel was launched, and which announced op it is
 *
 * in    ops as threads announce them, and the calls of those threads
 * out   the op's number, and when the call was over, for the correlation of a launch
 * owns  the launches of a process that may still begin: the latest million at most
 *
 * An op names what its thread launches from then on, until the thread announces the next one. O(1) a call.
 */
#ifndef UM_REPORT_LAUNCHES_H
#define UM_REPORT_LAUNCHES_H

#include "base/vec.h"
#include "model/activity.h"

struct um_launch {
	uint64_t correlation;
	uint64_t op; /* UM_ACT_NO_OP: none was announced */
	int64_t at; /* the call was over */
};

struct um_thread_op {
	uint64_t thread, op;
};

struct um_launches {
	UM_VEC(struct um_thread_op) threads;
	UM_VEC(struct um_launch) queue; /* by correlation */
	size_t first; /* of the queue: those before it are forgotten */
};

void um_launches_fini(struct um_launches *l); /* one of zeroes is empty */

/* An OP, or a CALL. 0 or -ENOMEM. */
int um_launches_announce(struct um_launches *l, const struct um_activity *op);
int um_launches_call(struct um_launches *l, const struct um_activity *call);

/* NULL: not known, or long begun. */
const struct um_launch *um_launches_find(const struct um_launches *l, uint64_t correlation);

/* That has begun: what was launched long before it will not be asked for. */
void um_launches_begun(struct um_launches *l, uint64_t correlation);

#endif
