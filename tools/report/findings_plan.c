/* SPDX-License-Identifier: Apache-2.0 */
#include "report/findings_plan.h"

#include "report/report.h"

#include <stdio.h>

static const struct um_capture_library *library(const struct um_report *r)
{
	return r->o.capture && r->o.capture->library.is ? &r->o.capture->library : NULL;
}

int um_finding_plan(struct um_finding *f, const struct um_report *r)
{
	const struct um_capture_library *l = library(r);
	uint64_t plan = l ? l->levels[UM_LIBRARY_PLAN_NS] : 0, played = l ? l->levels[UM_LIBRARY_PLAYED_NS] : 0;

	if (!plan || played <= plan + plan / 100 * UM_FINDING_PLAN_PERCENT)
		return 0;
	f->saving_ns = f->ns = played - plan;
	f->share = (double)(played - plan) / (double)played;
	return 1;
}

int um_finding_plan_evidence(const struct um_report *r, char **out)
{
	const struct um_capture_library *l = library(r);
	uint64_t refused = l->counts[UM_LIBRARY_REFUSED], dropped = l->counts[UM_LIBRARY_DROPPED];
	uint64_t kept = l->counts[UM_LIBRARY_KEPT];
	double plan = (double)l->levels[UM_LIBRARY_PLAN_NS], played = (double)l->levels[UM_LIBRARY_PLAYED_NS];
	char why[128] = "";

	if (refused)
		snprintf(why, sizeof why, "; %llu hints of the run were refused", (unsigned long long)refused);
	else if (dropped)
		snprintf(why, sizeof why, "; %llu hints of the run were dropped", (unsigned long long)dropped);
	else if (kept)
		snprintf(why, sizeof why, "; %.1f MiB of the run were copied because they must not be discarded",
			 (double)kept / 1048576.0);
	return asprintf(out, "an iteration under the plan takes %.3f ms, predicted %.3f ms (%+.0f %%)%s", played / 1e6,
			plan / 1e6, (played / plan - 1) * 100, why);
}

int um_finding_plan_estimate(char **out)
{
	return asprintf(out, "the measured time less the prediction");
}

int um_finding_plan_advice(const struct um_report *r, char **out)
{
	const struct um_capture_library *l = library(r);

	if (l->counts[UM_LIBRARY_REFUSED])
		return asprintf(out, "umadv_caps_get and --report hints say which hints the device refuses, and why");
	if (l->counts[UM_LIBRARY_DROPPED])
		return asprintf(out, "hints are dropped where iterations differ, where queues are full and beyond the "
				     "budget: name kinds of iterations in umadv_iter, or raise UMADVISE_BUDGET");
	if (l->counts[UM_LIBRARY_KEPT])
		return asprintf(out,
				"declare dead content with umadv_dead or umadv_transient, in memory of umadv_alloc");
	if (!l->simulated && !l->levels[UM_LIBRARY_MEASURED])
		return asprintf(out, "the plan is made with estimated times: give costs of operations in umadv_op_ex");
	return asprintf(out, "measure the machine: umadvise calibrate -o card.profile, then UMADVISE_PROFILE");
}
