/* SPDX-License-Identifier: Apache-2.0 */
#include "play/plan_again.h"

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

int um_plan_again(struct um_plan *plan, const struct um_profile *profile)
{
	const struct um_scheme *scheme = um_scheme_find(plan->strategy);
	struct um_plan_rehearsal rehearsal = {rehearse, (void *)(uintptr_t)profile};
	struct um_plan_request r = {.sched = &plan->sched,
				    .profile = profile,
				    .budget = plan->budget,
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
	return scheme ? um_recompute_scheme(&r, scheme, 0, plan, &grow) : um_recompute_plan(&r, plan, &grow);
}
