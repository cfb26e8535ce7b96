/* SPDX-License-Identifier: Apache-2.0 */
#include "standin/var_room.h"

#include "model/event.h"

#include <pthread.h>
#include <stdlib.h>

struct um_var_block {
	struct um_var_block *next;
	struct um_gpu *gpu;
	void *at;
	uint64_t bytes, used;
	unsigned modules;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all blocks */
static struct um_var_block *blocks;

static int add_block(struct um_gpu *gpu, uint64_t bytes)
{
	struct um_var_block *b = calloc(1, sizeof *b);
	int err;

	if (!b)
		return UM_CUDA_NO_MEMORY;
	b->gpu = gpu;
	b->bytes = bytes > UM_BLOCK_BYTES ? bytes : UM_BLOCK_BYTES;
	err = gpu->api->cudaMalloc(gpu, &b->at, b->bytes);
	if (err) {
		free(b);
		return err;
	}
	b->next = blocks;
	blocks = b;
	return UM_CUDA_OK;
}

static struct um_var_block *find(const struct um_gpu *gpu, uint64_t bytes)
{
	struct um_var_block *b = blocks;

	while (b && (b->gpu != gpu || b->bytes - b->used < bytes))
		b = b->next;
	return b;
}

int um_var_room_take(struct um_var_room *room, struct um_gpu *gpu, uint64_t bytes)
{
	struct um_var_block *b;
	int err = UM_CUDA_OK;

	pthread_mutex_lock(&lock);
	b = find(gpu, bytes);
	if (!b) {
		err = add_block(gpu, bytes);
		b = find(gpu, bytes);
	}
	if (!err) {
		*room = (struct um_var_room){b, (char *)b->at + b->used};
		b->used += bytes;
		b->modules++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void um_var_room_give(struct um_var_room *room)
{
	struct um_var_block **at = &blocks, *b = room->block;

	if (!b)
		return;
	pthread_mutex_lock(&lock);
	if (!--b->modules) {
		while (*at != b)
			at = &(*at)->next;
		*at = b->next;
		b->gpu->api->cudaFree(b->gpu, b->at);
		free(b);
	}
	pthread_mutex_unlock(&lock);
	room->block = NULL;
}
