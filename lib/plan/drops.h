/* SPDX-License-Identifier: Apache-2.0
 *
 * drops.h - gaps in which a tensor's content may be dropped and made again, the most worthwhile first
 *
 * in    a schedule, a budget
 * out   an order of gaps between two uses of a slot: the longer its prefix, the less memory and the more relaunches
 * owns  the arrays
 *
 * Greedy: bytes x time above the budget that a gap relieves, over the time of the relaunches. A gap shortens others:
 * what its relaunch reads must be there, so another dropped tensor returns with it. Plan path: O((gaps + uses) log),
 * times the relaunches of a gap.
 */
#ifndef UM_PLAN_DROPS_H
#define UM_PLAN_DROPS_H

#include "plan/burst.h"

#define UM_DROP_LEAST (256ull << 10) /* bytes of a slot whose content may be dropped */

struct um_drop {
	uint32_t slot;
	int32_t from, to; /* ops: the last use before, the next one */
	uint64_t bytes;
	uint32_t first_shared, n_shared; /* into `shared` */
};

struct um_drops {
	struct um_drop *at; /* in order */
	uint32_t n;
	int32_t *shared; /* ops that must be launched again for a gap and write other slots */
};

struct um_drops_rule {
	uint64_t budget; /* bytes */
	double power; /* of the time above the budget that a gap relieves; bytes and cost have 1 */
	double burst; /* share of the budget that a burst may return at once */
	uint64_t near_ns; /* gaps that end within this time share the relaunches that they have in common */
	int in_place; /* without scratch memory, by relaunches that may come earlier (runtime/relaunches.h) */
};

int um_drops_build(struct um_drops *d, const struct um_versions *v,
		   const struct um_drops_rule *rule); /* 0 or -ENOMEM */
void um_drops_fini(struct um_drops *d);

#endif
