/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/compiled_plan.h"

#include "base/bisect.h"

#include <errno.h>
#include <stdlib.h>

void um_compiled_plan_visit_leaving(const struct um_compiled_plan *p, void (*fn)(void *user, uint64_t addr), void *user)
{
	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY; i++)
		for (size_t k = 0; k < p->iterations[i].actions.n; k++) {
			const struct um_action *a = &p->iterations[i].actions.at[k];
			uint64_t addr = a->addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

			if (a->kind == UM_ACTION_PREFETCH || a->kind == UM_ACTION_REFRESH)
				continue;
			for (; addr < a->addr + a->bytes; addr += UM_BLOCK_BYTES)
				fn(user, addr);
		}
}

/* Which of the others leave under the plan, too. */
struct others {
	const uint64_t *at;
	size_t n;
	uint8_t *leaves;
};

static void note(void *user, uint64_t addr)
{
	struct others *o = user;
	size_t i = um_bisect_find(o->at, o->n, addr);

	if (i < o->n)
		o->leaves[i] = 1;
}

int um_compiled_plan_host(const struct um_plan *plan, const uint64_t *others, size_t n, uint64_t *bytes)
{
	struct others o = {others, n, n ? calloc(n, 1) : NULL};
	struct um_compiled_plan program;
	int err = n && !o.leaves ? -ENOMEM : 0;

	um_compiled_plan_init(&program);
	if (!err)
		err = um_compiled_plan_build_steady(plan, plan->budget / UM_BLOCK_BYTES, &program);
	*bytes = program.host * UM_BLOCK_BYTES;
	if (!err && n)
		um_compiled_plan_visit_leaving(&program, note, &o);
	for (size_t i = 0; i < n && !err; i++)
		*bytes += o.leaves[i] ? 0 : UM_BLOCK_BYTES;
	um_compiled_plan_fini(&program);
	free(o.leaves);
	return err;
}
