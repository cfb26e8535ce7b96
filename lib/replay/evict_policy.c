/* SPDX-License-Identifier: Apache-2.0
 *
 * evict_policy.c - chooses the eviction policy by rehearsal
 */
#include "replay/evict_policy.h"

#include "replay/lanes.h"
#include "replay/rehearsal.h"
#include "replay/driver_evict.h"

#include <errno.h>

#define SHORTER 996 /* thousandths of the time with longer runs, at most: fewer calls are cheaper in all else */
#define AHEAD 97 /* percent of the other policy's time, at most: the error of a rehearsal */

/* Does the driver's work on evicted blocks limit the iteration, rather than their copies? */
static int may_gain(const struct um_profile *p)
{
	double copy = (double)UM_BLOCK_BYTES * 1e9 / (p->d2h * (p->eta > 0 ? p->eta : 1)) + (double)p->o_seg;
	uint64_t work = p->c_pf + p->c_pf_cpu;

	return (double)(p->c_api + work) + copy > copy * um_lanes_out_workers_on(p, (uint64_t)copy);
}

static int rehearse(const struct um_compiled_plan *p, const struct um_compiled_iteration *iteration,
		    const struct um_plan *plan, const struct um_profile *profile, uint64_t *ns)
{
	struct um_compiled_plan as = *p;

	as.iterations[UM_COMPILED_PLAN_STEADY] = *iteration;
	return um_rehearse(&as, plan, profile, ns);
}

uint32_t um_evict_policy_runs(const struct um_plan *plan, const struct um_profile *profile, uint64_t capacity_blocks)
{
	static const uint32_t runs[] = {4, 2, 1};
	uint64_t least = UINT64_MAX;
	uint32_t best = UM_RUN_OUT;

	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct um_compiled_plan p;
		uint64_t ns = UINT64_MAX;
		int err;

		um_compiled_plan_init(&p);
		p.run_out = runs[i];
		err = um_compiled_plan_build_steady(plan, capacity_blocks, &p);
		if (!err)
			err = um_rehearse(&p, plan, profile, &ns);
		um_compiled_plan_fini(&p);
		if (!err && ns < least / 1000 * SHORTER) {
			best = runs[i];
			least = ns;
		}
	}
	return best;
}

int um_evict_policy_choose(struct um_compiled_plan *p, const struct um_plan *plan, const struct um_profile *profile,
			   uint64_t capacity_blocks, enum um_evict_policy policy)
{
	struct um_compiled_iteration *steady = &p->iterations[UM_COMPILED_PLAN_STEADY], iteration;
	uint64_t library = UINT64_MAX, driver = 0;
	int err;

	if (policy == UM_EVICT_LIBRARY || !steady->n_out || (policy == UM_EVICT_AUTO && !may_gain(profile)))
		return um_compiled_plan_issue_early(p, plan);
	err = um_driver_evict_build(p, capacity_blocks, &iteration);
	if (err && err != -ENOTSUP)
		return err;
	if (um_compiled_plan_issue_early(p, plan)) {
		um_compiled_iteration_fini(&iteration);
		return -ENOMEM;
	}
	if (err)
		return 0;
	if (policy == UM_EVICT_AUTO) {
		err = um_rehearse(p, plan, profile, &library);
		err = err ? err : rehearse(p, &iteration, plan, profile, &driver);
	}
	if (!err && driver <= library / 100 * AHEAD) {
		um_compiled_iteration_fini(steady);
		*steady = iteration;
		p->driver_evicts = 1;
		return 0;
	}
	um_compiled_iteration_fini(&iteration);
	return err;
}
