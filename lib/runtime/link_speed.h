/* SPDX-License-Identifier: Apache-2.0
 *
 * link_speed.h - the speed of the link of a device that has no profile
 *
 * in    a device
 * out   the link rates of a profile, scaled
 *
 * Start path: one prefetch of 64 MiB, which are freed again. It takes some ms, at most UM_LINK_LIMIT_MS.
 */
#ifndef UM_RUNTIME_LINK_SPEED_H
#define UM_RUNTIME_LINK_SPEED_H

#include "gpu/gpu.h"
#include "model/profile.h"

#define UM_LINK_BYTES (64ull << 20)
#define UM_LINK_LIMIT_MS 2000

/* Scales h2d and d2h of `p` by the measured rate to the device. 1; 0: not measured, and `p` is unchanged (a call fails,
 * less than twice the bytes are free, or the limit has passed: then the memory stays allocated). */
int um_link_speed(struct um_gpu *gpu, struct um_profile *p);

#endif
