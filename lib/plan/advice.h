/* SPDX-License-Identifier: Apache-2.0
 *
 * advice.h - what a plan tells the driver of memory once, not in every iteration
 *
 * in    a plan with its hints
 * out   hints of kind advise, before all others
 *
 * Read-mostly is what leaves and comes back in every iteration and is never written by an op: the driver then keeps
 * the host's copy when it brings the range to the device, and has nothing to copy when it leaves. It knows no dirty
 * bit, so without the advice it copies what the plan counts as clean.
 *
 * Far is what ops only look up a little in, if the link takes less time for that than for bringing all of it once: it
 * stays on the host and takes no room.
 */
#ifndef UM_PLAN_ADVICE_H
#define UM_PLAN_ADVICE_H

#include "model/host_resident.h"

/* Adds read-mostly to the plan's hints, of which none is advice yet. 0 or -ENOMEM. O(hints log hints + uses). */
int um_advice_add(struct um_plan *p);

/* Takes it away again. 1: there was some. */
int um_advice_drop(struct um_plan *p);

/* By slot, what may be far in a plan of this schedule (with places), whole blocks; NULL: nothing. `remote`: bytes/s of
 * what ops reach over the link. To be freed. 0 or -ENOMEM. O(uses). */
int um_advice_far(const struct um_plan *p, uint64_t remote, struct um_host_resident **far);

#endif
