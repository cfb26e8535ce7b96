/* SPDX-License-Identifier: Apache-2.0
 *
 * link_speed.h - the speed of the link of a device that has no profile, and of evictions by the library
 *
 * in    a device
 * out   the link rates of a profile, scaled; the rate of evictions
 *
 * The driver (580) makes prefetches to the host one after the other, whatever thread calls, and maps each page for the
 * CPU: on an H100 in a virtual machine that takes five times as long as the copy, and three times with several threads
 * past libcuda (gpu/kernel_evict.h). So the rate of evictions is not the link's.
 * Start path: moves of 64, 8 or 32 MiB. They take some ms, at most UM_LINK_LIMIT_MS each where the host waits for them.
 */
#ifndef UM_RUNTIME_LINK_SPEED_H
#define UM_RUNTIME_LINK_SPEED_H

#include "gpu/gpu.h"
#include "model/event.h"
#include "model/profile.h"

#define UM_LINK_BYTES (64ull << 20)
#define UM_EVICT_BYTES (8ull << 20)
#define UM_KERNEL_EVICT_BYTES (32ull << 20)
#define UM_LINK_LIMIT_MS 2000

/* Scales h2d and d2h of `p` by the measured rate to the device. 1; 0: not measured, and `p` is unchanged (a call fails,
 * less than twice the bytes are free, or the limit has passed: then the memory stays allocated). */
int um_link_speed(struct um_gpu *gpu, struct um_profile *p);

/* Number of threads that evict by um_gpu_api.evict: UM_GPU_EVICTERS, at most half of the CPUs of the process. */
unsigned um_link_evicters(void);

/* Returns the rate of evictions in bytes/s, or 0 where nothing was measured, as above. `evicters` threads evict a block
 * a call by um_gpu_api.evict; if it is 0, the calling thread prefetches blocks to the host. Earlier rounds give the
 * host its memory. The caller frees `*memory`, which is on the host, where cudaFree may wait for all work of the
 * device: it has UM_KERNEL_EVICT_BYTES with threads and UM_EVICT_BYTES without; NULL: none is left. */
double um_evict_speed(struct um_gpu *gpu, unsigned evicters, void **memory);

#endif
