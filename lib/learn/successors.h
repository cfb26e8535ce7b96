/* SPDX-License-Identifier: Apache-2.0
 *
 * successors.h - finds the tensor that has each tensor's role in the next iteration
 *
 * in    an iteration, and the numbers of the previous one; or what was found of an earlier one that did the same
 * out   for each tensor of the iteration, the tensor that has its role in the next one
 *
 * Two iterations with one signature number their tensors alike. So a tensor that is number a now and was number b
 * before shows the rule: the tensor that is b now will be a next. Weights have a == b, swapped buffers have each other,
 * a hidden state that is passed on has the number of a birth. If the previous iteration was different (or there was
 * none), the rule of an earlier pair of such iterations applies. Without one, a tensor born in the previous iteration
 * and freed in this one is assumed to be succeeded by the birth of the same order and size.
 */
#ifndef UM_LEARN_SUCCESSORS_H
#define UM_LEARN_SUCCESSORS_H

#include "learn/previous_iteration.h"

struct um_successors {
	uint32_t *next; /* by tensor: its successor; itself if it stays; UM_NOBODY if unknown, and for births */
	uint32_t *predecessor; /* by tensor: the tensor that it succeeds, if that is another one; else UM_NOBODY */
	uint8_t *supplied; /* by tensor: it is older, and the previous iteration had another one in its place */
	int32_t *idle; /* by tensor: position of the idle free of the one that it succeeds; else UM_NOWHERE */
	uint32_t n; /* tensors */
	int32_t *late; /* by birth: position of the free, in this iteration, of the tensor with the same birth order in
		          the previous one, if the birth itself is alive at the end; else UM_NOWHERE */
};

/* `known`: of an earlier iteration of this signature, with one like it before; or NULL. 0 or -ENOMEM. */
int um_successors_init(struct um_successors *r, const struct um_iteration *it, const struct um_previous_iteration *past,
		       const struct um_successors *known);
void um_successors_fini(struct um_successors *r);

#endif
