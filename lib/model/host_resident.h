/* SPDX-License-Identifier: Apache-2.0
 *
 * host_resident.h - what stays on the host and is reached from there
 *
 * in    a plan's advice: `preferred_location` and `accessed_by` for one range
 * out   by slot, the range; the time that ops take for what they touch in it
 *
 * Such bytes take no room and are never brought. An op reads and writes them over the link while it runs, so it takes
 * at least as long as the link does for what it touches. That is for tables in which ops look up a little here and
 * there: a plan is not sound if an op uses such a range as a whole.
 */
#ifndef UM_MODEL_HOST_RESIDENT_H
#define UM_MODEL_HOST_RESIDENT_H

#include "model/plan.h"

/* Of a slot; bytes 0: nothing. One range a slot: the last that has both advices counts. */
struct um_host_resident {
	uint64_t off, bytes;
};

/* By slot, to be freed; NULL: nothing is far. 0 or -ENOMEM. */
int um_host_resident_find(const struct um_plan *p, struct um_host_resident **far);

/* Can they be? 0 or -EINVAL and why not, as um_plan_check. */
int um_host_resident_check(const struct um_plan *p, const struct um_host_resident *far, char *why, size_t size);

/* How long the link takes, at `rate` bytes/s, for what an op touches of it. */
uint64_t um_host_resident_ns(const struct um_schedule *s, const struct um_sched_op *op,
			     const struct um_host_resident *far, uint64_t rate);

/* Bytes that a use and the far range have in common. */
uint64_t um_host_resident_overlap(const struct um_sched_use *use, const struct um_host_resident *far);

#endif
