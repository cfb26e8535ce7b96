/* SPDX-License-Identifier: Apache-2.0
 *
 * Queried each time, because other programs use the device, too.
 */
#include "probe/guard.h"

#include <errno.h>
#include <stdio.h>

#define MIB 1048576.0

static int free_bytes(struct um_gpu *gpu, uint64_t *out)
{
	size_t left = 0, total = 0;

	if (!gpu->api->cudaMemGetInfo || gpu->api->cudaMemGetInfo(gpu, &left, &total) || left > total)
		return -EIO;
	*out = left;
	return 0;
}

int um_probe_guard(struct um_gpu *gpu, uint64_t managed, uint64_t budget, char *why, size_t size)
{
	uint64_t left;

	if (free_bytes(gpu, &left)) {
		snprintf(why, size, "the device does not report its free memory");
		return -EIO;
	}
	if (managed > left / UM_GUARD_SHARE) {
		snprintf(why, size, "%.1f MiB of managed memory refused: more than 1/%d of the free %.1f MiB",
			 (double)managed / MIB, UM_GUARD_SHARE, (double)left / MIB);
		return -EPERM;
	}
	if (budget > left / UM_GUARD_SHARE) {
		snprintf(why, size, "a budget of %.1f MiB refused: more than 1/%d of the free %.1f MiB",
			 (double)budget / MIB, UM_GUARD_SHARE, (double)left / MIB);
		return -EPERM;
	}
	return 0;
}

uint64_t um_probe_allowance(struct um_gpu *gpu)
{
	uint64_t left;

	return free_bytes(gpu, &left) ? 0 : left / UM_GUARD_SHARE;
}
