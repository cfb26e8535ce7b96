/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_copy.h - a copy of a kernel launch with its parameters, for relaunches
 *
 * in    a launch, and a function that tells offset and size of each parameter
 * out   a block of bytes that may be copied, and the launch of such a block
 * owns  the block, unless it is small
 *
 * CUDA passes parameters by pointers and knows their sizes: the block has the parameters themselves. Op path; allocates
 * if the block is large.
 */
#ifndef UM_RUNTIME_KERNEL_COPY_H
#define UM_RUNTIME_KERNEL_COPY_H

#include "umadvise.h"

#include <stddef.h>

#define UM_KERNEL_COPY_SMALL 2048

struct um_kernel_copy {
	void *block;
	size_t bytes;
	max_align_t small[UM_KERNEL_COPY_SMALL / sizeof(max_align_t)];
};

/* 0; -ENOMEM; -ENOTSUP: the parameters are not known, `*code` is the CUDA error. */
int um_kernel_copy_init(struct um_kernel_copy *c, const struct umadv_kernel *k, int *code);
void um_kernel_copy_fini(struct um_kernel_copy *c);

/* Launches a block, or a copy of it: a umadv_launch_fn. */
int um_kernel_copy_launch(void *block, void *stream);

#endif
