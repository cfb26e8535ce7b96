/* SPDX-License-Identifier: Apache-2.0
 *
 * previous_iteration.h - finds the number that a tensor had in the previous iteration
 *
 * A value: owns its memory. Iteration path: O(n) to fill, O(1) per query; no allocation once an iteration of this
 * length was filled in.
 */
#ifndef UM_LEARN_PREVIOUS_ITERATION_H
#define UM_LEARN_PREVIOUS_ITERATION_H

#include "model/iteration.h"

#define UM_NO_NUMBER UINT32_MAX

struct um_previous_iteration {
	int known; /* 0: empty */
	uint64_t n, signature; /* of the iteration */
	UM_VEC(uint64_t) ids; /* by number in the iteration's tensors */
	UM_VEC(uint32_t) table; /* hash table of numbers plus 1, at most half full; 0: free */
	unsigned shift; /* of a hash, to an index of the table */
};

void um_previous_iteration_init(struct um_previous_iteration *p);
void um_previous_iteration_fini(struct um_previous_iteration *p);
int um_previous_iteration_fill(struct um_previous_iteration *p,
			       const struct um_iteration *it); /* 0, or -ENOMEM and it is empty */

/* The number that the tensor had; UM_NO_NUMBER if it was not in that iteration. */
uint32_t um_previous_iteration_find(const struct um_previous_iteration *p, struct um_tensor_id id);

/* Is it the one before this one, and did it do the same? */
static inline int um_previous_iteration_is_like(const struct um_previous_iteration *p, const struct um_iteration *it)
{
	return p->known && p->n + 1 == it->n && p->signature == it->signature;
}

/* Share of this iteration's bytes, 0 to 1, that are of older tensors which the previous iteration did not have. */
double um_previous_iteration_other(const struct um_previous_iteration *p, const struct um_iteration *it);

#endif
