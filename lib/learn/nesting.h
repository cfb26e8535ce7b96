/* SPDX-License-Identifier: Apache-2.0
 *
 * nesting.h - finds tensors that are parts of other tensors in an iteration
 *
 * Two slots that are alive together must not overlap. If an iteration uses a tensor and also parts of it that are
 * tensors of their own, uses of a part are therefore attributed to the whole, at the part's offset. If it uses the
 * parts only, the slot of the whole, if it has one, has no uses.
 */
#ifndef UM_LEARN_NESTING_H
#define UM_LEARN_NESTING_H

#include "learn/previous_iteration.h"

struct um_nesting {
	uint32_t *host; /* by tensor: the outermost used tensor that contains it; itself if there is none */
	uint64_t *off; /* by tensor: its offset in its host */
	unsigned char *whole; /* by tensor: it is the host of others */
	unsigned char *parts_only; /* by tensor: it contains others and is not used itself */
};

/* `now` is the iteration as filled by um_previous_iteration_fill. 0 or -ENOMEM. */
int um_nesting_init(struct um_nesting *n, const struct um_iteration *it, const struct um_previous_iteration *now);
void um_nesting_fini(struct um_nesting *n);

#endif
