/* SPDX-License-Identifier: Apache-2.0
 *
 * managed.h - managed memory, and nothing else, from a driver that takes no hints
 *
 * in    libcuda.so.1 of CUDA 6.0 or later
 * out   a device whose allocations kernels can use; every other call succeeds and does nothing
 * owns  a reference to the primary context of the device in use
 */
#ifndef UM_GPU_MANAGED_H
#define UM_GPU_MANAGED_H

#include "gpu/gpu.h"

/* 0; -ENOMEM; -ENODEV: there is no driver, or no device with managed memory. */
int um_managed_open(struct um_gpu **out);

#endif
