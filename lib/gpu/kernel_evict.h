/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_evict.h - evictions by a request to the driver's kernel module, without libcuda
 *
 * in    libcuda's descriptor of the kernel module, found among those of the process; managed memory
 * out   the memory is on the host, as after a prefetch to it
 * owns  a duplicate of the descriptor
 *
 * While libcuda makes a prefetch to the host it holds a lock of the context, for as long as the kernel module needs to
 * copy the block and to map its pages for the CPU: launches, and prefetches of other threads, wait. The kernel module
 * itself serves several threads at once. On an H100 (driver 580) libcuda evicts a block of 2 MiB in 180 to 290 us,
 * whatever the number of threads, and launches take 90 to 190 us meanwhile; by requests eight threads need 103 to 115
 * us a block, launches take 6 us, and prefetches to the device beside them 50 us a block instead of 60 to 330
 * (doc/gpu.md).
 *
 * The request is UVM_MIGRATE of the open kernel modules (uvm_ioctl.h, uvm_migrate.c), with which libcuda makes its own
 * prefetches. It is no public interface of CUDA: whether it works is found out on memory of our own, and where it does
 * not, prefetches evict. Thread-safe.
 */
#ifndef UM_GPU_KERNEL_EVICT_H
#define UM_GPU_KERNEL_EVICT_H

#include <stddef.h>

#define UM_KERNEL_MODULE "/dev/nvidia-uvm"

/* A descriptor for um_kernel_evict(), to be closed by close(2): a duplicate of the descriptor of `device` that knows
 * the managed memory [ptr, ptr + bytes), which goes to the host. -1: there is none. Start path. */
int um_kernel_evict_open(const char *device, void *ptr, size_t bytes);

#define UM_ANY_NODE (-1)

/* Moves managed memory to a NUMA node of the host, or UM_ANY_NODE, whole pages of the host; done when it returns. Where
 * the node is full the kernel module takes another one. 0; UM_CUDA_NO_MEMORY: the host has no memory;
 * UM_CUDA_INVALID_VALUE: the memory is not managed, there is no such node, or the request failed. Costs 0.2 to 0.9 ms
 * for 2 MiB. */
int um_kernel_evict(int fd, const void *ptr, size_t bytes, int node);

#endif
