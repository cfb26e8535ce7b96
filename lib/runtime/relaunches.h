/* SPDX-License-Identifier: Apache-2.0
 *
 * relaunches.h - which ops the followed plan launches again, and which content they make anew
 *
 * in    the launches of a plan (plan_launches.h)
 * out   gaps in which a slot's content is not needed, because a relaunch makes it anew; those that are open
 * owns  the arrays
 *
 * A gap may be left at any point: all content in open gaps is made anew by launching its writers, in the order of the
 * program. So um_relaunches_build only accepts relaunches that can come earlier than planned.
 *
 * A burst is a row of relaunches without an op of the program in between. The chain of a slot at a burst are the ops of
 * the program that wrote it so far, from the last one on that overwrote it as a whole without reading it.
 *
 *   inputs     from the op until its relaunch, a slot that it only reads is alive and not written by the program
 *   outputs    the relaunch of an op that writes a slot comes in a burst with those of the slot's whole chain, which
 *              has the op. The slot is alive from the first op of the chain until then
 *   order      relaunches of a burst are in the order of the program, each op once; all ops are on one stream
 *
 * Relaunches of a burst that write the same slot are a group, and so are all that share a slot in turn. A group is
 * launched as a whole, or not at all: what it overwrites passes through the content of each op of the chain, and ends
 * with what it had, whether that was dropped or not. A gap begins once all ops of its group were launched by the
 * program and ends with the group. Several groups at once are merged in the order of the program: an input that one of
 * them makes anew was complete before the op that reads it, in the program as in the burst. A group that was left in
 * between is launched from its beginning.
 *
 * Not thread-safe: the caller holds the context's lock. Op path: O(gaps that begin or end).
 */
#ifndef UM_RUNTIME_RELAUNCHES_H
#define UM_RUNTIME_RELAUNCHES_H

#include "model/schedule.h"
#include "model/tensor.h"

struct um_relaunch_gap {
	uint32_t slot;
	uint32_t from; /* launch: the last use, or the last op of the group */
	uint32_t first, made; /* the first and the last relaunch that write the slot */
	uint32_t to; /* the last relaunch of the group */
};

struct um_relaunches {
	UM_VEC(uint32_t)
	again; /* by launch: 1 + the op of the program that it repeats; 0: the program's. n == 0: none */
	UM_VEC(uint32_t) group; /* by launch: of a relaunch 1 + the first one of its group */
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

/* Of the relaunches that make open content anew, the one whose op is the first in the program after the first `done`
 * ops. UINT32_MAX: none. */
uint32_t um_relaunches_next(const struct um_relaunches *r, uint32_t done);

#endif
