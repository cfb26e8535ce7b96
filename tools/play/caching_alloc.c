/* SPDX-License-Identifier: Apache-2.0 */
#include "play/caching_alloc.h"

#include "model/tensor.h"

#define REGION (512ull << 20) /* bytes of managed memory at once, at least */

void um_caching_alloc_init(struct um_caching_alloc *h, struct um_gpu *gpu)
{
	memset(h, 0, sizeof *h);
	h->gpu = gpu;
	um_heap_init(&h->heap);
}

void um_caching_alloc_fini(struct um_caching_alloc *h)
{
	um_heap_fini(&h->heap);
	um_vec_fini(&h->home);
}

void um_caching_alloc_iter(struct um_caching_alloc *h)
{
	h->made = 0;
}

static int grow(struct um_caching_alloc *h, uint64_t bytes)
{
	uint64_t want = bytes < REGION ? REGION : (bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	void *p;

	if (h->gpu->api->cudaMallocManaged(h->gpu, &p, want, 1))
		return -ENOMEM;
	return um_heap_add_region(&h->heap, (uint64_t)(uintptr_t)p, want);
}

static int take_anywhere(struct um_caching_alloc *h, uint64_t bytes, uint64_t *addr)
{
	int err = um_heap_alloc(&h->heap, bytes, addr);

	if (err != -ENOSPC)
		return err;
	err = grow(h, bytes);
	return err ? err : um_heap_alloc(&h->heap, bytes, addr);
}

int um_caching_alloc_take(struct um_caching_alloc *h, uint64_t bytes, uint64_t *addr)
{
	struct um_caching_alloc_home *home;
	int err;

	if (h->made == h->home.n && um_vec_push(&h->home, ((struct um_caching_alloc_home){0, {0, 0}})))
		return -ENOMEM;
	home = &h->home.at[h->made++];
	for (int i = 0; i < 2 && home->bytes == bytes; i++) {
		if (!home->addr[i] || um_heap_alloc_at(&h->heap, home->addr[i], bytes))
			continue;
		*addr = home->addr[i];
		return 0;
	}
	err = take_anywhere(h, bytes, addr);
	if (err)
		return err;
	home->addr[1] = home->bytes == bytes ? home->addr[0] : 0;
	home->addr[0] = *addr;
	home->bytes = bytes;
	return 0;
}

void um_caching_alloc_give(struct um_caching_alloc *h, uint64_t addr, uint64_t bytes)
{
	um_heap_free(&h->heap, addr, bytes);
}
