/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.h - schedule -> plan: value in, value out, no device, no clock
 *
 * in    a schedule (ops with ns, slots with sizes and lifetimes, some places settled), a budget, link rates
 * out   a plan: a place for every slot, and hints; sound by um_plan_check
 *
 * The passes: place (where slots lie, so that 2 MiB blocks are well shared), blocks (the touches of each block, the
 * gaps between them, which of them carry content), choose (which gaps a block spends away), timeline (when it leaves
 * and returns: both engines booked, prefetches at their earliest time that displaces nothing needed sooner, or just in
 * time), hints. A published scheme (scheme.h) takes the place of choose, and has a say in when blocks return.
 */
#ifndef UM_PLAN_PLANNER_H
#define UM_PLAN_PLANNER_H

#include "model/plan.h"
#include "model/profile.h"

/* Where slots without a settled place may be put. */
struct um_plan_room {
	uint64_t addr, bytes; /* multiples of 2 MiB, ascending, not overlapping */
};

/* Who has more time than the usual effort takes, or less. */
struct um_plan_effort {
	int (*more)(void *user); /* asked before each further round, some ms apart: 1 to go on. May be NULL */
	int (*late)(void *user); /* asked before each round: 1 to end with the best plan so far, if any. May be NULL */
	void *user;
};

/* Who knows better than the link alone how long an iteration under a sound plan will take. */
struct um_plan_rehearsal {
	int (*ns)(void *user, const struct um_plan *plan, uint64_t *ns); /* 0 or -ENOMEM */
	void *user;
};

struct um_plan_request {
	const struct um_schedule *sched; /* borrowed */
	const struct um_profile *profile; /* borrowed: link rates, costs of hints, op estimates where ns is 0 */
	uint64_t budget; /* bytes */
	const struct um_plan_room *rooms; /* arenas; slots that fit in none go behind `grow_at` */
	size_t n_rooms;
	uint64_t grow_at; /* address from which new arenas may be assumed (multiple of 2 MiB) */
	const char *strategy; /* "lookahead", or the name of a scheme */
	const struct um_plan_effort *effort; /* of lookahead; borrowed, may be NULL */
	const struct um_plan_rehearsal *rehearsal; /* likewise: the plan that does best there is chosen */
};

/* The published schemes that are there (scheme.h): the i-th one's name, NULL past the last; a name's number, or
 * -EINVAL. */
const char *um_plan_scheme_name(unsigned i);
int um_plan_scheme_parse(const char *name);

/* Fills `out` (initialised, empty). 0; -ENOMEM; -E2BIG with one line in `why` ("op 12 'cat' alone needs ... of
 * ...") where an op exceeds the budget; -EINVAL where the schedule makes no sense. `*grow_bytes`: how much behind
 * grow_at is used. Plan path: O((touches + hints) log). */
int um_plan_build(const struct um_plan_request *request, struct um_plan *out, uint64_t *grow_bytes, char *why,
		  size_t size);

#endif
