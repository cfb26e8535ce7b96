/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h - the calls of a workload answered by one pool, and what that takes
 *
 * in    calls, a pool
 * out   addresses, and figures of the last period
 */
#ifndef UM_POOL_COMPARE_H
#define UM_POOL_COMPARE_H

#include "pool/policy.h"

struct um_pool_figures {
	uint64_t *addr; /* by tensor, of those that are alive in the last period; owned */
	uint64_t alive; /* most bytes alive at once */
	uint64_t reserved; /* most bytes taken from the device; of the library: the blocks that held a tensor */
	uint64_t blocks; /* most bytes of 2 MiB blocks that held a tensor at once: the footprint in managed memory */
	uint64_t births, frees;
	uint64_t elsewhere; /* births that an offline pool did not foresee */
	uint64_t steps, most_steps; /* of all calls, and of one; 0: not counted */
};

/* 0 or -ENOMEM. */
int um_pool_compare(const struct um_pool_calls *c, struct um_pool_window before, struct um_pool_window last,
		    const struct um_pool_policy *policy, struct um_pool_figures *out);
void um_pool_figures_fini(struct um_pool_figures *f);

#endif
