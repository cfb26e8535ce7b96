/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/compiled_plan.h"

int um_compiled_plan_host(const struct um_plan *plan, uint64_t *bytes)
{
	struct um_compiled_plan program;
	int err;

	um_compiled_plan_init(&program);
	err = um_compiled_plan_build_steady(plan, plan->budget / UM_BLOCK_BYTES, &program);
	*bytes = program.host * UM_BLOCK_BYTES;
	um_compiled_plan_fini(&program);
	return err;
}
