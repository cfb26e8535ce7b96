/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_cut.h - a part of what was recorded, as if iterations had been marked there
 *
 * in    a recorded iteration, positions in it
 * out   an iteration of its ops from one position to another
 * owns  nothing
 *
 * Values in, value out. What is born or freed between two parts belongs to the second one. O(n log n) of the
 * recorded iteration.
 */
#ifndef UM_LEARN_ITERATION_CUT_H
#define UM_LEARN_ITERATION_CUT_H

#include "model/iteration.h"

/* Which part, and of which iterations. */
struct um_cut {
	uint32_t before; /* the iteration before it began with this op */
	uint32_t from, to; /* its own ops: [from, to) */
	uint64_t n; /* its number */
};

/* `out` is initialised and empty; it borrows the names of `all`. 0 or -ENOMEM (`out` is empty). */
int um_iteration_cut(const struct um_iteration *all, const struct um_cut *cut, struct um_iteration *out);

#endif
