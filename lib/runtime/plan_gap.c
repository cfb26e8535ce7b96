/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_gap.h"

#include <stdio.h>

/* The cause that explains most, of those that the library knows. */
static void find_cause(const struct um_iteration_time *t, uint64_t misplaced, char *why, size_t size)
{
	uint64_t refused = t->after.refused - t->before.refused, dropped = t->after.dropped - t->before.dropped;
	uint64_t kept = t->after.kept_bytes - t->before.kept_bytes;
	uint64_t unplanned = t->after.issued_by.prefetch_bytes[UM_HINT_ANNOUNCED] -
			     t->before.issued_by.prefetch_bytes[UM_HINT_ANNOUNCED];

	if (refused)
		snprintf(why, size, "%llu hints were refused", (unsigned long long)refused);
	else if (dropped)
		snprintf(why, size, "%llu hints were dropped", (unsigned long long)dropped);
	else if (misplaced)
		snprintf(why, size, "%llu tensors are at other addresses than planned", (unsigned long long)misplaced);
	else if (kept)
		snprintf(why, size, "%.1f MiB that must not be discarded were copied", (double)kept / 1048576.0);
	else if (unplanned)
		snprintf(why, size, "%.1f MiB were prefetched by no plan, just before their use",
			 (double)unplanned / 1048576.0);
	else
		snprintf(why, size, "the cause is unknown, 'umadvise report' of a run log may tell");
}

void um_plan_gap_check(struct um_plan_gap *g, const struct um_iteration_time *t, uint64_t predicted_ns,
		       uint64_t misplaced, int last, struct um_notices *notices)
{
	uint64_t part = predicted_ns / 100 * UM_PLAN_GAP_PERCENT;
	int slower = t->ns > predicted_ns + part;
	char why[120];

	if (!predicted_ns || g->logged || (g->measurements++ == 0 && !last))
		return;
	if (!slower && t->ns + part >= predicted_ns)
		return;
	g->logged = 1;
	find_cause(t, misplaced, why, sizeof why);
	um_notices_log(notices, slower ? UMADV_LOG_WARN : UMADV_LOG_INFO,
		       "an iteration under the plan takes %.3f ms, predicted %.3f ms (%+.0f %%)%s%s",
		       (double)t->ns / 1e6, (double)predicted_ns / 1e6,
		       ((double)t->ns / (double)predicted_ns - 1) * 100, slower ? ": " : "", slower ? why : "");
}
