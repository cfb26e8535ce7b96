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
 */
#ifndef UM_PLAN_ADVICE_H
#define UM_PLAN_ADVICE_H

#include "model/plan.h"

/* Adds the advice to the plan's hints, of which none is advice yet. 0 or -ENOMEM. O(hints log hints + uses). */
int um_advice_add(struct um_plan *p);

#endif
