/* SPDX-License-Identifier: Apache-2.0
 *
 * recompute.h - plans that drop content and launch the ops again that made it
 *
 * in    a plan that only swaps, with places
 * out   a faster one with recompute hints, if there is one
 *
 * Content is dropped in some gaps, the iteration is rewritten with the relaunches that bring it back (rewrite.h), and
 * the search for swaps plans the rewritten iteration. How many gaps are taken, in the order of drops.h, is a search in
 * one dimension.
 */
#ifndef UM_PLAN_RECOMPUTE_H
#define UM_PLAN_RECOMPUTE_H

#include "plan/planner.h"

/* `out` is a sound plan for the request; its hints stay if no plan with relaunches is faster. `*grow`: addresses in
 * use after r->grow_at; rises with scratch slots. 0 or -ENOMEM. Plan path: some 24 to 160 estimates, the fewer the
 * longer the iteration is, and two to four plans with the usual work; of short iterations also some with little. */
int um_recompute_plan(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow);

/* Likewise for a published scheme that makes content again: `out` has its hints, or none if it failed (`had` is the
 * error). 0, -ENOMEM, or `had` if there is still no plan. Plan path: one more plan. */
struct um_scheme;
int um_recompute_scheme(const struct um_plan_request *r, const struct um_scheme *scheme, int had, struct um_plan *out,
			uint64_t *grow);

#endif
