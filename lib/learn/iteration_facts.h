/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_facts.h - a fingerprint of all that a schedule is built from
 *
 * in    an iteration, and where its tensors were in the previous one
 * out   a hash: iterations with equal hashes get schedules with equal keys
 *
 * It is several times cheaper than building a schedule, and most iterations equal the one before. Beside the signature
 * it covers frees, promises, touched bytes, parts of tensors, and which tensor succeeds which. Iteration path: linear,
 * no allocation.
 */
#ifndef UM_LEARN_ITERATION_FACTS_H
#define UM_LEARN_ITERATION_FACTS_H

#include "learn/previous_iteration.h"

/* `now` is the iteration itself, as filled by um_previous_iteration_fill. */
uint64_t um_iteration_facts(const struct um_iteration *it, const struct um_previous_iteration *past,
			    const struct um_previous_iteration *now);

#endif
