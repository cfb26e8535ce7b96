/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h - kernels against their declared ranges (private to the simulated GPU)
 *
 * in    a kernel's host code, the ranges that were declared for it
 * out   accesses outside of these ranges
 * owns  hashes of the pages of shared memory
 */
#ifndef UM_SIM_CHECK_H
#define UM_SIM_CHECK_H

#include "sim/state.h"

struct um_sim_check {
	const struct um_touch *touch; /* `ptr` is an address */
	uint32_t n;
	void (*stray)(void *arg, const struct um_sim_stray *s);
	void *arg; /* also the argument of the kernel's host code */
};

int um_sim_check_begin(struct um_sim_mem *m); /* for newly backed, shared memory. 0 or -ENOMEM */
void um_sim_check_run(struct um_sim *sim, const struct um_sim_check *check, void (*fn)(void *arg));
void um_sim_check_wrote(struct um_sim_mem *m, uint64_t addr, uint64_t bytes); /* the device, not a kernel */

#endif
