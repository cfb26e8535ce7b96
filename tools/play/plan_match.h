/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_match.h - is this plan of this trace?
 *
 * in    a plan, a trace, a device profile
 * out   the time of each op of the plan in the trace
 *
 * The plan's iteration is the trace's period, once or several times: the same ops.
 */
#ifndef UM_PLAY_PLAN_MATCH_H
#define UM_PLAY_PLAN_MATCH_H

#include "io/umtrace.h"
#include "model/plan.h"
#include "model/profile.h"

/* `ns`: by op of the plan; `turns`: iterations of the trace in one of the plan. 0; -ENODATA: no match, explained by
 * `why`; or -ENOMEM. O(ops). */
int um_plan_match(const struct um_plan *plan, const struct um_trace *trace, const struct um_profile *profile,
		  uint64_t *ns, uint64_t *turns, char *why, size_t size);

#endif
