/* SPDX-License-Identifier: Apache-2.0
 *
 * var_room.h - device memory for the variables of modules
 *
 * in    sizes
 * out   addresses
 * owns  device memory in blocks of 2 MiB, which modules share: with lazy loading a program has a module for each of its
 *       kernels, and an allocation of its own would take a whole block for each
 *
 * A block is freed with its last module. Thread-safe.
 */
#ifndef UM_STANDIN_VAR_ROOM_H
#define UM_STANDIN_VAR_ROOM_H

#include "gpu/gpu.h"

struct um_var_block;

struct um_var_room {
	struct um_var_block *block; /* NULL: none */
	char *at;
};

int um_var_room_take(struct um_var_room *room, struct um_gpu *gpu, uint64_t bytes); /* 0 or a CUDA error code */
void um_var_room_give(struct um_var_room *room);

#endif
