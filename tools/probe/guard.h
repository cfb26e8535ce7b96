/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - limits the managed memory of tests and measurements
 *
 * A program that oversubscribes a real GPU can hang it for all programs until a reboot. So tests and probes use at most
 * an eighth of the free memory, and so does a budget, which represents a small card.
 */
#ifndef UM_PROBE_GUARD_H
#define UM_PROBE_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"

#define UM_GUARD_SHARE 8 /* an eighth */

/* May a program allocate `managed` bytes in all under a budget (0: none)? 0; -EPERM: no, explained by `why` in one
 * line; -EIO: the device does not report its free memory. */
int um_probe_guard(struct um_gpu *gpu, uint64_t managed, uint64_t budget, char *why, size_t size);

/* Bytes that may be allocated now; 0 if the device does not report its free memory. */
uint64_t um_probe_allowance(struct um_gpu *gpu);

#endif
