/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_cut.h - cuts an iteration out of a longer recording
 *
 * in    a recording, positions in it
 * out   the iteration that a program with marks at those positions would have recorded
 * owns  nothing
 *
 * A birth or free between two parts belongs to the second one. Births before the first op of the recording are set-up,
 * up to the last one of a tensor that outlives the part which begins there. O(n log n) in the length of the recording.
 */
#ifndef UM_LEARN_ITERATION_CUT_H
#define UM_LEARN_ITERATION_CUT_H

#include "model/iteration.h"

/* Positions are numbers of ops of the recording. */
struct um_cut {
	uint32_t before; /* first op of the previous iteration */
	uint32_t from, to; /* the part: [from, to) */
	uint64_t n; /* number of the iteration */
};

/* What the program promised of its iterations (umadv_transient) does not hold for a part. `out` is initialised and
 * empty; it borrows the names of `all`. 0 or -ENOMEM (`out` is empty). */
int um_iteration_cut(const struct um_iteration *all, const struct um_cut *cut, struct um_iteration *out);

#endif
