/* SPDX-License-Identifier: Apache-2.0
 *
 * collective.h - kernels of collectives, by their names
 *
 * in    the name of a kernel, as the program's code or a profiler has it
 * out   whether it is one of NCCL's collectives
 * owns  nothing
 *
 * Such a kernel runs until the last rank has joined: its time is not the device's own.
 */
#ifndef UM_MODEL_COLLECTIVE_H
#define UM_MODEL_COLLECTIVE_H

#include <string.h>

/* ncclKernel_, ncclDevKernel_, ncclSymDevKernel_, ncclSymkDevKernel_, and the same behind a mangled name's length. */
static inline int um_collective_is(const char *name)
{
	size_t n;

	if (strncmp(name, "_Z", 2) == 0)
		name += 2 + strspn(name + 2, "0123456789");
	if (strncmp(name, "nccl", 4) != 0)
		return 0;
	n = strcspn(name, "_");
	return n >= sizeof "ncclKernel" - 1 && strncmp(name + n - 6, "Kernel_", 7) == 0;
}

#endif
