/* SPDX-License-Identifier: Apache-2.0
 *
 * return_deadlines.h - when blocks that are away need not be back yet
 *
 * in    blocks, the gaps they spend away, when ops start
 * out   by visit, the position from which on the return behind it may start
 *
 * Returns that come as early as there is room take the room of what is born meanwhile, which then has to wait for
 * something to leave. Here each comes so late that the link, working through all returns in the order of need, is done
 * with it just in time.
 */
#ifndef UM_PLAN_RETURN_DEADLINES_H
#define UM_PLAN_RETURN_DEADLINES_H

#include "plan/choose.h"

/* `start`: by op, when it starts in a steady iteration; one more. `h2d`: bytes/s. `not_before`: by visit, as
 * um_returns_build takes it. 0 or -ENOMEM. O(visits + gaps log (gaps ops)). */
int um_return_deadlines_build(const struct um_blocks *b, const struct um_choice *c, const uint64_t *start, uint64_t h2d,
			      int32_t *not_before);

#endif
