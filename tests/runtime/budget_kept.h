/* SPDX-License-Identifier: Apache-2.0
 *
 * budget_kept.h - asserts that hints keep the budget: what prefetches have made resident never exceeds it
 *
 * The simulated GPU attributes each resident page to the prefetch or to the fault that brought it (model/tally.h). On a
 * device of just the budget that holds whatever the library does, so the tests use larger ones as well.
 */
#ifndef UM_TESTS_BUDGET_KEPT_H
#define UM_TESTS_BUDGET_KEPT_H

#include "sim/sim.h"
#include "play/player.h"
#include "tap.h"

/* Devices hold so many times the budget. */
static const unsigned budget_devices[] = {1, 2, 4};
#define BUDGET_DEVICES (sizeof budget_devices / sizeof *budget_devices)

/* Of a device whose streams were never marked: since it was opened. */
static inline TAP_UNUSED int budget_kept(struct um_gpu *gpu, uint64_t budget)
{
	struct um_tally t;

	um_sim_tally(gpu, &t);
	if (t.peak_prefetched_bytes > budget)
		diag("  prefetches made %llu bytes resident, the budget is %llu",
		     (unsigned long long)t.peak_prefetched_bytes, (unsigned long long)budget);
	return t.peak_prefetched_bytes <= budget;
}

/* Of every iteration that was played. */
static inline TAP_UNUSED int budget_kept_played(const struct um_play_result *r, uint64_t budget)
{
	int kept = 1;

	for (size_t i = 0; i < r->iterations.n; i++) {
		const struct um_play_iteration *it = &r->iterations.at[i];

		if (it->peak_prefetched_bytes <= budget)
			continue;
		diag("  iteration %zu: prefetches made %llu bytes resident, the budget is %llu", i,
		     (unsigned long long)it->peak_prefetched_bytes, (unsigned long long)budget);
		kept = 0;
	}
	return kept;
}

#endif
