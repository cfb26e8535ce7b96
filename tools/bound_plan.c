/* SPDX-License-Identifier: Apache-2.0 */
#include "bound/bound.h"
#include "bound/bound_lp.h"
#include "tool.h"

#include "model/host_resident.h"
#include "model/workspace.h"

int bound_is_available(void)
{
#ifdef HAVE_LP
	return bound_lp_load() == 0;
#else
	return 0;
#endif
}

static void note(const struct bound_settings *settings, const char *text)
{
	if (settings->verb)
		tool_say(settings->verb, "%s", text);
}

#ifdef HAVE_LP
/* Bounds the schedule with the solver. 0 or -ENOMEM. */
static int raise_bound(struct um_plan *p, const struct um_schedule *s, const struct bound_settings *settings)
{
	struct bound_request r = {.sched = s,
				  .budget = p->budget,
				  .h2d = (double)p->h2d,
				  .d2h = (double)p->d2h,
				  .duplex = settings->duplex,
				  .seconds = settings->seconds,
				  .recompute = settings->recompute,
				  .copies = settings->copies};
	struct bound_result out;
	int err = bound_find(&r, &out);

	if (err)
		note(settings, "the linear program of the bound failed: using the planner's weaker bound");
	else if (out.cut_short)
		note(settings, "the bound stopped at --bound-time; more time may raise it");
	if (!err && out.ns > p->bound_ns)
		p->bound_ns = out.ns;
	return err == -ENOMEM ? err : 0;
}
#endif

#ifdef HAVE_LP
/* Does the linear program cover all ops of the plan: the device's, within the budget? 0: no, 1, or -ENOMEM. */
static int is_covered(const struct um_plan *p)
{
	struct um_host_resident *ranges;
	int err = um_host_resident_find(p, &ranges), covered = 1;

	for (size_t i = 0; i < p->sched.ops.n && !err; i++) {
		const struct um_sched_op *op = &p->sched.ops.at[i];

		covered &= !op->paged && op->stream != UM_STREAM_CPU;
		for (uint32_t k = op->first_use; ranges && k < op->first_use + op->n_uses; k++) {
			const struct um_sched_use *u = &p->sched.uses.at[k];

			covered &= u->touched < u->bytes || !um_host_resident_overlap(u, &ranges[u->slot]);
		}
	}
	free(ranges);
	return err ? err : covered;
}
#endif

int bound_plan(struct um_plan *p, const struct bound_settings *settings)
{
#ifdef HAVE_LP
	struct um_schedule fastest; /* bounds every choice of algorithms */
	int err = bound_lp_load(), covered = is_covered(p);

	if (covered < 0)
		return covered;
	if (!covered) {
		note(settings,
		     "the bound of a plan with operations above the budget or CPU accesses is the time in core");
		return 0;
	}
	/* The planner's own bound covers copies only. */
	if (settings->recompute)
		p->bound_ns = p->in_core_ns;
	if (err) {
		note(settings, "no LP solver (libClp.so.1) is installed: using the planner's weaker bound");
		return 0;
	}
	if (!um_schedule_offers(&p->sched))
		return raise_bound(p, &p->sched, settings);
	um_schedule_init(&fastest);
	err = um_workspace_apply(&p->sched, NULL, 1, &fastest);
	if (!err)
		err = raise_bound(p, &fastest, settings);
	um_schedule_fini(&fastest);
	return err;
#else
	(void)p;
	note(settings, "built without an LP solver (Clp): using the planner's weaker bound");
	return 0;
#endif
}
