/* SPDX-License-Identifier: Apache-2.0
 *
 * lower.c - runs returns, timeline and hints for a choice of gaps
 */
#include "plan/lower.h"

#include "plan/hints.h"

int um_lower_plan(const struct um_blocks *b, const struct um_schedule *s, struct um_choice *c,
		  const struct um_lowering *how, struct um_timeline *line, struct um_plan *out)
{
	struct um_arrivals arrivals = {0};
	struct um_returns returns = {0};
	int err = um_arrivals_build(&arrivals, b, c);

	memset(line, 0, sizeof *line);
	if (!err)
		err = um_returns_build(&returns, b, c, how->capacity, how->merge, how->not_before);
	if (!err)
		err = um_timeline_build(line, b, s, c, &arrivals, &returns, &how->timing);
	if (!err && out)
		err = um_hints_build(out, b, c, &arrivals, &returns, line, how->merge);
	um_arrivals_fini(&arrivals);
	um_returns_fini(&returns);
	return err;
}
