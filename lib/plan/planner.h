/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.h - makes a plan from a schedule, a budget and link rates; without device or clock
 *
 * in    a schedule (ops with ns, slots with sizes and lifetimes, some fixed places), a budget, link rates
 * out   a plan: a place for every slot, and hints; sound by um_plan_check
 *
 * The passes: place (addresses of slots, so that 2 MiB blocks are well shared), blocks (the touches of each block, the
 * gaps between them, which of them carry content), choose (the gaps in which a block is off the device), timeline (when
 * it is evicted and returns: both engines booked, prefetches at their earliest time that displaces nothing needed
 * sooner, or just in time), hints. A published scheme (scheme.h) replaces choose, and may limit when blocks return.
 */
#ifndef UM_PLAN_PLANNER_H
#define UM_PLAN_PLANNER_H

#include "model/plan.h"
#include "model/profile.h"

/* Address ranges for slots without a fixed place. */
struct um_plan_room {
	uint64_t addr, bytes; /* multiples of 2 MiB, ascending, not overlapping */
};

/* More or less time than the usual effort. */
struct um_plan_effort {
	int (*more)(void *user); /* called before each further round, some ms apart: 1 to continue. May be NULL */
	int (*late)(void *user); /* called before each round: 1 to end with the best plan so far, if any. May be NULL */
	void *user;
};

/* A better estimate than the link alone of an iteration's time under a sound plan. */
struct um_plan_rehearsal {
	int (*ns)(void *user, const struct um_plan *plan, uint64_t *ns); /* 0 or -ENOMEM */
	/* Bytes of host memory, with that of blocks that leave without content. Likewise; may be NULL. */
	int (*host)(void *user, const struct um_plan *plan, uint64_t *bytes);
	void *user;
};

struct um_plan_request {
	const struct um_schedule *sched; /* borrowed */
	const struct um_profile *profile; /* borrowed: link rates, costs of hints, op estimates where ns is 0 */
	uint64_t budget; /* bytes */
	uint64_t host_budget; /* of host memory (model/plan_host.h), of lookahead; 0: no limit */
	/* Addresses of blocks that have host memory already, ascending. Borrowed; NULL: none. */
	const uint64_t *on_host;
	size_t n_on_host;
	const struct um_plan_room *rooms; /* arenas; slots that fit in none are placed after `grow_at` */
	size_t n_rooms;
	int stay; /* slots stay where their latest tensors are, since all memory in use fits in the budget */
	uint64_t grow_at; /* address of further arenas (multiple of 2 MiB) */
	const char *strategy; /* "lookahead", or the name of a scheme */
	int recompute; /* the plan may launch ops again that have `relaunch` */
	unsigned part; /* lookahead's usual work is divided by this; 0: it is not */
	int in_place; /* lookahead's relaunches need no scratch memory, and may come at any time before they are due */
	const struct um_plan_effort *effort; /* of lookahead; borrowed, may be NULL */
	const struct um_plan_rehearsal *rehearsal; /* likewise: the plan with the best rehearsal is chosen */
};

/* The published schemes (scheme.h): the i-th name, NULL past the last; the number of a name, or -EINVAL. */
const char *um_plan_scheme_name(unsigned i);
int um_plan_scheme_parse(const char *name);

/* Fills `out` (initialised, empty). 0; -ENOMEM; -E2BIG with one line in `why` if an op exceeds the budget of a
 * published scheme; -EINVAL if the schedule is not valid. Where no plan keeps the host budget, the plan that needs
 * least is made, and its host_budget is that. `*grow_bytes`: size used after grow_at. Plan path:
 * O((touches + hints) log). */
int um_plan_build(const struct um_plan_request *request, struct um_plan *out, uint64_t *grow_bytes, char *why,
		  size_t size);

#endif
