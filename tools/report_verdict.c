/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a run with the lower bound: its workload, recorded as a umtrace, is planned for its device.
 */
#include "report_verdict.h"

#include "bound/bound.h"
#include "io/profile_file.h"
#include "play_args.h"
#include "table.h"
#include "tool.h"
#include "umadvise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ITERATIONS 8 /* iterations played until the workload is learned */
#define SECONDS 30 /* for the bound */

static int keep(void *user, struct um_plan *plan)
{
	const struct bound_settings settings = {.verb = "report", .duplex = 1, .seconds = SECONDS};
	struct um_verdict *v = user;
	int err = bound_plan(plan, &settings);

	v->plan_ns = um_plan_expected_ns(plan);
	v->bound_ns = plan->bound_ns;
	return err;
}

int report_verdict_find(const struct report_args *a, struct um_verdict *out)
{
	struct play_args p = {.verb = "report", .budget = a->budget};
	struct um_play_options o = {.profile = &p.profile,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = ITERATIONS,
				    .planned = keep,
				    .planned_user = out};
	struct um_play_result r;
	struct um_trace *t;
	int code, err;

	*out = (struct um_verdict){0};
	code = tool_profile("report", a->profile, &p.profile);
	if (code)
		return code;
	t = play_args_trace(&p, a->workload, &code);
	if (!t)
		return code;
	snprintf(out->device, sizeof out->device, "%s", p.profile.name);
	out->budget_bytes = o.budget = play_args_budget(&p, t, 0);
	err = um_play(t, &o, &r);
	if (err == -ENODATA && r.steady_ns) { /* no plan: it fits */
		out->bound_ns = out->plan_ns = r.in_core_ns;
		err = 0;
	}
	if (err)
		tool_say("report", "%s: %s", a->workload, *r.why ? r.why : umadv_strerror(err));
	um_play_result_fini(&r);
	um_trace_free(t);
	return play_exit_of(err);
}

void report_verdict_show(FILE *to, const struct report_args *a, const struct um_verdict *v)
{
	if (!v || !v->iteration_ns || !v->bound_ns)
		return;
	table_wrapf(to, 0, 9,
		    "verdict: an iteration takes %.3f %s, %.2f times the lower bound of %.3f %s for any plan on %s "
		    "with %.1f MiB (without recomputation); the library plans %.3f %s",
		    (double)v->iteration_ns / a->unit_ns, a->unit, (double)v->iteration_ns / (double)v->bound_ns,
		    (double)v->bound_ns / a->unit_ns, a->unit, tool_text(v->device),
		    (double)v->budget_bytes / 1048576.0, (double)v->plan_ns / a->unit_ns, a->unit);
}
