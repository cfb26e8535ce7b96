/* SPDX-License-Identifier: Apache-2.0
 *
 * nesting.h - parts of a tensor that is used as a whole too
 *
 * Two slots that are alive together must not overlap. Where an iteration uses a tensor and also parts of it that are
 * tensors of their own, what it does to a part is therefore said of the whole, at the part's offset. Where it uses the
 * parts only, the whole is hollow: its slot, if it has one, asks for nothing.
 */
#ifndef UM_LEARN_NESTING_H
#define UM_LEARN_NESTING_H

#include "learn/previous_iteration.h"

struct um_nesting {
	uint32_t *host; /* by tensor: the outermost used tensor that it is a part of; itself if there is none */
	uint64_t *off; /* by tensor: where it starts in its host */
	unsigned char *whole; /* by tensor: it is a host of others */
	unsigned char *hollow; /* by tensor: it holds others and is not used itself */
};

/* `now` is the iteration as um_previous_iteration_fill makes it. 0 or -ENOMEM. */
int um_nesting_init(struct um_nesting *n, const struct um_iteration *it, const struct um_previous_iteration *now);
void um_nesting_fini(struct um_nesting *n);

#endif
