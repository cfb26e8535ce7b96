/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - how much managed memory a test or a measurement may ask of a device
 *
 * A program that oversubscribes a real GPU can hang all of it, for others, too, until the machine is started again. So
 * nothing of ours asks for more than an eighth of what is free, and a budget, which stands for a small card, lies
 * below that as well.
 */
#ifndef UM_PROBE_GUARD_H
#define UM_PROBE_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"

#define UM_GUARD_SHARE 8 /* an eighth */

/* May `managed` bytes be had, in all, under a budget (0: none)? 0; -EPERM: no, and `why` says so in one line; -EIO: the
 * device did not tell what is free. */
int um_probe_guard(struct um_gpu *gpu, uint64_t managed, uint64_t budget, char *why, size_t size);

/* Bytes that may be had now; 0 if the device does not tell. */
uint64_t um_probe_allowance(struct um_gpu *gpu);

#endif
