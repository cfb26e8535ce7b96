/* SPDX-License-Identifier: Apache-2.0
 *
 * spill.h - which part of the data of ops above the budget stays on the host
 *
 * in    a plan's schedule with places, in which ops above the budget are marked as paged; its budget
 * out   host-resident ranges (model/host_resident.h)
 *
 * A paged op moves most of its data to the device by page faults, and evicts some of it before it was used. If a part
 * as large as the excess stays on the host, the op accesses that part over the link, once, and does not fault. A part
 * is chosen of the slot that ops touch the least in an iteration. Only slots qualify that live in all iterations and
 * whose ops are known to stream: by their cost they access each byte about once and compute little with it. A kernel
 * that reads its operands several times, as products of matrices do, would take longer over the link than with page
 * faults.
 */
#ifndef UM_PLAN_SPILL_H
#define UM_PLAN_SPILL_H

#include "model/host_resident.h"

/* Adds ranges to `host_resident`, one for each slot at most, whole blocks. Slots that have a range keep it. 1: ranges
 * were added, 0: none, or -ENOMEM. O(paged ops x slots they use x log). */
int um_spill_paged(const struct um_plan *p, struct um_host_resident *host_resident);

#endif
