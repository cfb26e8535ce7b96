/* SPDX-License-Identifier: Apache-2.0
 *
 * advice.h - memory advice of a plan, given once, not in every iteration
 *
 * in    a plan with its hints
 * out   hints of kind advise, before all others
 *
 * Read-mostly: ranges that are evicted and return in every iteration and that no op writes. The driver then keeps the
 * host's copy when it migrates the range to the device, and needs no copy when it evicts it. The driver does not track
 * dirty pages, so without the advice it copies ranges that the plan counts as clean.
 *
 * Host-resident: ranges in which ops only look up a little, if the link needs less time for these accesses than for one
 * migration of the whole; and what an op uses beyond the budget (plan/spill.h). They stay on the host and take no room.
 */
#ifndef UM_PLAN_ADVICE_H
#define UM_PLAN_ADVICE_H

#include "model/host_resident.h"

/* Adds read-mostly advice to the plan's hints, which have no advice yet. 0 or -ENOMEM. O(hints log hints + uses). */
int um_advice_add(struct um_plan *p);

/* Removes it again. 1: there was some. */
int um_advice_drop(struct um_plan *p);

/* By slot, the ranges that may be host-resident in a plan of this schedule (with places), whole blocks; NULL: none.
 * `remote`: bytes/s of accesses over the link. These are ranges that the link accesses faster than it migrates them,
 * and ranges of paged ops. To be freed. 0 or -ENOMEM. O(uses + what um_spill_paged costs). */
int um_advice_host_resident(const struct um_plan *p, uint64_t remote, struct um_host_resident **host_resident);

#endif
