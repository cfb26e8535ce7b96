/* SPDX-License-Identifier: Apache-2.0
 *
 * host_resident.h - ranges that stay on the host and are accessed over the link
 *
 * in    a plan's advice: `preferred_location` and `accessed_by` for one range
 * out   the range of each slot; the time that ops need for their accesses to it
 *
 * These bytes take no device memory and are never prefetched. An op reads and writes them over the link while it runs,
 * so it takes at least the link's time for the bytes that it touches. This is meant for tables in which ops look up a
 * little, and for the data of an op that exceeds the budget: a plan is not sound if an op uses such a range as a whole,
 * and none of those that use its slot exceeds the budget.
 */
#ifndef UM_MODEL_HOST_RESIDENT_H
#define UM_MODEL_HOST_RESIDENT_H

#include "model/plan.h"

/* Range of a slot; bytes 0: none. A slot has one range: the last one with both advices. */
struct um_host_resident {
	uint64_t off, bytes;
};

/* Array by slot, to be freed; NULL: no slot has such a range. 0 or -ENOMEM. */
int um_host_resident_find(const struct um_plan *p, struct um_host_resident **ranges);

/* Are the ranges valid? 0, or -EINVAL with the reason, as um_plan_check. */
int um_host_resident_check(const struct um_plan *p, const struct um_host_resident *ranges, char *why, size_t size);

/* Time of the link, at `rate` bytes/s, for the bytes that an op touches in it. */
uint64_t um_host_resident_ns(const struct um_schedule *s, const struct um_sched_op *op,
			     const struct um_host_resident *ranges, uint64_t rate);

/* May a part of the slot's tensor stay on the host? It does not if another tensor takes its place. */
static inline int um_host_resident_may(const struct um_slot *s, size_t slot)
{
	return s->birth < 0 && s->death < 0 && s->carry == slot && s->place != UINT64_MAX &&
	       !(s->flags & (UM_SLOT_TRANSIENT | UM_SLOT_UNMANAGED | UM_SLOT_SUPPLIED));
}

/* Bytes that a use shares with the range. */
uint64_t um_host_resident_overlap(const struct um_sched_use *use, const struct um_host_resident *ranges);

#endif
