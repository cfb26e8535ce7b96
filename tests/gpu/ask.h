/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.h - asks the guard about the device at hand, and ends the program where it says no
 */
#ifndef ASK_H
#define ASK_H

#include "guard.h"
#include "launch.h"

static inline void ask(uint64_t managed, uint64_t budget)
{
	size_t free_bytes, total;
	char why[200];

	check_cuda(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
	if (!guard_check(managed, budget, free_bytes, why, sizeof(why)))
		return;
	printf("Bail out! %s\n", why);
	exit(3);
}

#endif
