/* SPDX-License-Identifier: Apache-2.0
 *
 * successors.h - who takes whose place when the next iteration begins
 *
 * in    an iteration, and what is remembered of the one before it
 * out   for each tensor of the iteration, the tensor of it that will play its part in the next one
 *
 * Two iterations with one signature number their tensors alike. So a tensor that is number a now and was number b
 * before tells the whole rule: who is b now will be a next. Weights have a == b, buffers that swap have each other, the
 * hidden state that is handed on has the number of a birth. Where the iteration before was another one (or there was
 * none), a tensor born in it and freed in this one is taken to be followed by the birth of the same order and size.
 */
#ifndef UM_LEARN_SUCCESSORS_H
#define UM_LEARN_SUCCESSORS_H

#include "learn/previous_iteration.h"

struct um_successors {
	uint32_t *next; /* by tensor: who plays its part next; itself for what stays; UM_NOBODY where that is not known,
	                   and for births */
	uint32_t *heir_of; /* by tensor: the one whose `next` it is, if that is another; else UM_NOBODY */
	int32_t *late; /* by birth: where the tensor of the same birth order, born in the iteration before, was freed in
	                  this one, if the birth itself is alive at the end; else UM_NOWHERE */
};

int um_successors_init(struct um_successors *r, const struct um_iteration *it,
		       const struct um_previous_iteration *past); /* 0 or -ENOMEM */
void um_successors_fini(struct um_successors *r);

#endif
