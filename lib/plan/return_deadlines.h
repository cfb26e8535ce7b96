/* SPDX-License-Identifier: Apache-2.0
 *
 * return_deadlines.h - the latest useful start of each return
 *
 * in    blocks, the gaps in which they are off the device, start times of ops
 * out   by visit, the position from which on the return after it may start
 *
 * Returns that come as early as there is room take the room of tensors born meanwhile, which then wait for evictions.
 * Here each return comes so late that the link, processing all returns in the order of need, completes it just in time.
 */
#ifndef UM_PLAN_RETURN_DEADLINES_H
#define UM_PLAN_RETURN_DEADLINES_H

#include "plan/choose.h"

/* `start`: by op, its start in a steady iteration; one more entry. `h2d`: bytes/s. `not_before`: by visit, as in
 * um_returns_build. 0 or -ENOMEM. O(visits + gaps log (gaps ops)). */
int um_return_deadlines_build(const struct um_blocks *b, const struct um_choice *c, const uint64_t *start, uint64_t h2d,
			      int32_t *not_before);

#endif
