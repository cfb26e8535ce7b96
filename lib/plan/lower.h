/* SPDX-License-Identifier: Apache-2.0
 *
 * lower.h - from a choice of gaps to hints: the part that all strategies share
 *
 * in    blocks, a choice of gaps, parameters of the copies
 * out   the order of the link's work with an estimate of its time, and hints
 */
#ifndef UM_PLAN_LOWER_H
#define UM_PLAN_LOWER_H

#include "model/plan.h"
#include "plan/timeline.h"

struct um_lowering {
	struct um_timing timing;
	int32_t capacity; /* blocks */
	uint32_t merge; /* maximum number of blocks in a hint */
	const int32_t *not_before; /* by visit, as in um_returns_build; may be NULL. Borrowed */
};

/* Fills `line` (the caller frees it, on failure as well) and, if `out` is not NULL, its hints. 0 or -ENOMEM. */
int um_lower_plan(const struct um_blocks *b, const struct um_schedule *s, struct um_choice *c,
		  const struct um_lowering *how, struct um_timeline *line, struct um_plan *out);

#endif
