/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h - searches for the fastest plan
 *
 * in    blocks, a plan without hints (schedule, budget, rates)
 * out   the plan's hints, sound by um_plan_check, and predicted_ns
 *
 * Several ways of choosing evictions, our own and published ones, are carried through to hints and proved. Then the
 * best plan is improved: gaps that an op waited for are chosen less in the next round, and gaps are varied at random.
 * Only sound plans are kept; of plans with nearly equal predictions the one with the best rehearsal, if the caller
 * provides one; with advice (advice.h), which published schemes lack. Where the rehearsal is far from the prediction
 * and the plan discards content that ops overwrite, a second search predicts with copies of that content. Unless more
 * effort is requested, the number of rounds depends only on the schedule's size, so that equal requests give equal
 * plans.
 */
#ifndef UM_PLAN_SEARCH_H
#define UM_PLAN_SEARCH_H

#include "model/plan.h"
#include "plan/blocks.h"
#include "plan/planner.h"

struct um_search_request {
	const struct um_plan_effort *effort; /* borrowed, may be NULL; likewise the next */
	const struct um_plan_rehearsal *rehearsal;
	int learn; /* learning precedes other ways */
	const uint64_t *on_host; /* as in struct um_plan_request */
	size_t n_on_host;
	unsigned part; /* the usual work is divided by this; 0: it is not */
};

/* 0; -ENOMEM; -E2BIG (the blocks in use around one op do not fit) or -EINVAL (no sound plan found) with one line in
 * `why`. If all plans exceed out->host_budget, that becomes the least that one of them needs. out->rehearsed_ns: of a
 * plan of the second search, otherwise 0. */
int um_search_run(const struct um_blocks *b, const struct um_search_request *request, struct um_plan *out, char *why,
		  size_t size);

/* About the time that um_search_run would predict, by some rounds of learning; without hints and proof. Fewer rounds
 * where `limit` is out of reach. Adds to `*work`, about touches. 0, -ENOMEM or -E2BIG. */
int um_search_estimate(const struct um_blocks *b, struct um_plan *plan, int rounds, uint64_t limit, uint64_t *ns,
		       uint64_t *work);

#endif
