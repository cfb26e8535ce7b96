/* SPDX-License-Identifier: Apache-2.0 */
#include "play/plan_again.h"

#include "model/workspace.h"
#include "plan/recompute.h"
#include "plan/scheme.h"
#include "replay/rehearsal.h"

int um_plan_again_can(const struct um_schedule *s)
{
	for (size_t i = 0; i < s->ops.n; i++)
		if (s->ops.at[i].n_relaunch)
			return 1;
	return 0;
}

/* As the library does before it chooses a plan. */
static int rehearse(void *user, const struct um_plan *plan, uint64_t *ns)
{
	struct um_compiled_plan program;
	int err;

	um_compiled_plan_init(&program);
	err = um_compiled_plan_build_steady(plan, plan->budget / UM_BLOCK_BYTES, &program);
	if (!err)
		err = um_rehearse(&program, plan, user, ns);
	um_compiled_plan_fini(&program);
	return err;
}

/* Chooses algorithms anew, with relaunches: these leave more room for workspaces than swaps do. */
static int choose_again(struct um_plan *plan, const struct um_plan_request *r)
{
	struct um_plan other;
	uint64_t grow = 0, ns, least;
	int err;

	um_plan_init(&other);
	err = um_plan_build(r, &other, &grow, NULL, 0);
	if (!err)
		err = um_plan_prove(plan, NULL, NULL, 0);
	if (!err)
		err = rehearse(r->rehearsal->user, plan, &least);
	ns = um_plan_expected_ns(&other);
	if (!err && !other.rehearsed_ns)
		err = um_plan_prove(&other, NULL, NULL, 0);
	if (!err && !other.rehearsed_ns)
		err = rehearse(r->rehearsal->user, &other, &ns);
	if (!err && ns < least) {
		struct um_plan was = *plan;

		*plan = other;
		other = was;
		plan->source = was.source;
		plan->workload = was.workload;
		other.source = other.workload = NULL;
	}
	um_plan_fini(&other);
	return err == -ENOMEM ? err : 0;
}

static int find_host(void *user, const struct um_plan *plan, uint64_t *bytes)
{
	(void)user;
	return um_compiled_plan_host(plan, NULL, 0, bytes);
}

int um_plan_again(struct um_plan *plan, const struct um_profile *profile)
{
	const struct um_scheme *scheme = um_scheme_find(plan->strategy);
	struct um_plan_rehearsal rehearsal = {.ns = rehearse, .host = find_host, .user = (void *)(uintptr_t)profile};
	struct um_plan_request r = {.sched = &plan->sched,
				    .profile = profile,
				    .budget = plan->budget,
				    .host_budget = plan->host_budget,
				    .strategy = plan->strategy,
				    .recompute = 1,
				    .rehearsal = &rehearsal};
	uint64_t grow = 0;

	if (scheme && !scheme->drops)
		return 0;
	for (size_t i = 0; i < plan->sched.slots.n; i++) {
		const struct um_slot *t = &plan->sched.slots.at[i];

		if (t->place != UINT64_MAX && t->place + t->bytes > r.grow_at)
			r.grow_at = t->place + t->bytes;
	}
	r.grow_at = (r.grow_at + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	if (um_schedule_offers(&plan->sched))
		return choose_again(plan, &r);
	return scheme ? um_recompute_scheme(&r, scheme, 0, plan, &grow) : um_recompute_plan(&r, plan, &grow);
}
