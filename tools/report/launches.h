/* SPDX-License-Identifier: Apache-2.0
 *
 * launches.h - the launch time and the announced op of a kernel
 *
 * in    ops announced by threads, and the calls of those threads
 * out   the op's number and the end of the call, for the correlation of a launch
 * owns  the pending launches of a process: the latest million at most
 *
 * An op covers all launches of its thread until the thread announces the next one. O(1) per call.
 */
#ifndef UM_REPORT_LAUNCHES_H
#define UM_REPORT_LAUNCHES_H

#include "base/vec.h"
#include "model/activity.h"

struct um_launch {
	uint64_t correlation;
	uint64_t op; /* UM_ACT_NO_OP: none was announced */
	int64_t at; /* end of the call; of an op's first launch, when the op was announced, since umadv_op may wait */
};

struct um_thread_op {
	uint64_t thread, op;
	int64_t announced; /* INT64_MIN: it was launched */
};

struct um_launches {
	UM_VEC(struct um_thread_op) threads;
	UM_VEC(struct um_launch) queue; /* by correlation */
	size_t first; /* first entry of the queue */
};

void um_launches_fini(struct um_launches *l); /* zeroed: empty */

/* An OP or a CALL. 0 or -ENOMEM. */
int um_launches_announce(struct um_launches *l, const struct um_activity *op);
int um_launches_call(struct um_launches *l, const struct um_activity *call);

/* NULL: unknown, or begun long ago. */
const struct um_launch *um_launches_find(const struct um_launches *l, uint64_t correlation);

/* Marks a launch as begun and drops much older ones. */
void um_launches_begun(struct um_launches *l, uint64_t correlation);

#endif
