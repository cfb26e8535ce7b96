/* SPDX-License-Identifier: Apache-2.0
 *
 * arrivals.h - parts that become resident without a copy
 *
 * in    blocks, the gaps in which they are off the device
 * out   by op, the parts without content that must become resident for it: those of tensors just born, and those whose
 *       dead content was dropped before and is written now
 */
#ifndef UM_PLAN_ARRIVALS_H
#define UM_PLAN_ARRIVALS_H

#include "plan/choose.h"

struct um_arrivals {
	uint32_t *first; /* by op, into touch; n_ops + 1 */
	uint32_t *touch; /* the touch for which each part arrives */
	uint64_t *bytes; /* by op */
};

int um_arrivals_build(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c); /* 0 or -ENOMEM */
void um_arrivals_fini(struct um_arrivals *a);

static inline int um_arrivals_any(const struct um_arrivals *a, int32_t op)
{
	return a->first[op] < a->first[op + 1];
}

#endif
