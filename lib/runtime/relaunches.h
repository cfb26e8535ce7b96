/* SPDX-License-Identifier: Apache-2.0
 *
 * relaunches.h - which ops the followed plan launches again, and which content they make anew
 *
 * in    the launches of a plan (plan_launches.h)
 * out   gaps in which a slot's content is not needed, because a relaunch makes it anew; those that are open
 * owns  the arrays
 *
 * A gap may be left at any point: all content in open gaps is made anew by launching its writers, in the order of the
 * program. So um_relaunches_build only accepts relaunches that can come earlier than planned. From the op itself until
 * its relaunch, what it reads is alive and not written; what it writes is alive, and written by that op alone, as a
 * whole. All ops are on one stream. Not thread-safe: the caller holds the context's lock. Op path: O(gaps that begin or
 * end).
 */
#ifndef UM_RUNTIME_RELAUNCHES_H
#define UM_RUNTIME_RELAUNCHES_H

#include "model/schedule.h"
#include "model/tensor.h"

struct um_relaunch_gap {
	uint32_t slot;
	uint32_t from, to; /* launches: the last use, and the relaunch that writes the slot */
};

struct um_relaunches {
	UM_VEC(uint32_t)
	again; /* by launch: 1 + the op of the program that it repeats; 0: the program's. n == 0: none */
	UM_VEC(struct um_relaunch_gap) gaps; /* by begin */
	UM_VEC(uint32_t) last; /* by slot: 1 + the last relaunch that uses it; 0: none does */
	UM_VEC(uint32_t) open; /* gaps: the tensor has UM_TENSOR_AGAIN */
	UM_VEC(struct um_use) uses; /* of the relaunch at hand */
	uint32_t next; /* gap */
	uint32_t done; /* launches of this iteration whose gaps were opened */
};

/* `s`: the schedule of all launches; takes the content of `again`. 0; -EINVAL: some relaunch must not come earlier than
 * planned; -ENOMEM. `r` is initialised by zeroes. Linear. */
int um_relaunches_build(struct um_relaunches *r, const struct um_schedule *s, const uint32_t *again);
void um_relaunches_fini(struct um_relaunches *r);

/* Of the relaunches that make open content anew, the one whose op is the first in the program. A gap is open. */
uint32_t um_relaunches_first(const struct um_relaunches *r);

#endif
