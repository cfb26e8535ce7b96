/* SPDX-License-Identifier: Apache-2.0
 *
 * host_memory.h - how much host memory this process may still take
 *
 * in    /proc and the mounts of cgroups: the memory that is available, the limits of the cgroups of the process, of
 *       version 2 and 1. In a container, those of the container and below are visible.
 * out   bytes, and which limit it is
 *
 * Memory that the kernel can reclaim at once counts as available. Start path.
 */
#ifndef UM_RUNTIME_HOST_MEMORY_H
#define UM_RUNTIME_HOST_MEMORY_H

#include <stdint.h>

struct um_host_memory {
	uint64_t bytes; /* UINT64_MAX: nothing limits it, or nothing is known */
	char limit[200]; /* what limits it */
};

/* `root`: where proc and all mounts are; "" but for tests. */
void um_host_memory_find(const char *root, struct um_host_memory *m);

#endif
