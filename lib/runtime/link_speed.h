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

/* Bytes/s of evictions, a block each, once the host has memory for them: by so many threads with um_gpu_api.evict, or
 * by prefetches (0). 0: not measured, as above. `*memory`: UM_EVICT_BYTES on the host, UM_KERNEL_EVICT_BYTES with
 * threads, or NULL, for a cudaFree where that may wait for all work of the device. */
double um_evict_speed(struct um_gpu *gpu, unsigned evicters, void **memory);

#endif
