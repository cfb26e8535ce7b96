/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_malloc.c - every tensor by cudaMalloc and cudaFree
 *
 * Device memory is mapped in pages of 2 MiB, the granularity that cuMemGetAllocationGranularity reports. A tensor of at
 * least a page has whole pages of its own; smaller ones share pages, in multiples of 512 bytes, each in the first gap
 * of the first page that has one. A page without tensors returns to the device. Each call is one of the driver, which
 * takes microseconds whatever it examines: no steps are counted.
 */
#include "model/event.h"
#include "pool/policy.h"

#define GRANULE 512ull
#define SLOTS (UM_BLOCK_BYTES / GRANULE)

struct page {
	struct page *next;
	uint64_t addr, used; /* granules in use */
	unsigned char at[SLOTS];
};

struct pool {
	struct page *pages; /* shared ones */
	uint64_t reserved, next_addr;
};

/* A tensor: in a shared page, or alone. */
struct range {
	struct page *page; /* NULL: alone */
	uint64_t addr, bytes;
};

static void *open_pool(void)
{
	struct pool *p = calloc(1, sizeof *p);

	return p;
}

static void close_pool(void *pool)
{
	struct pool *p = pool;

	while (p->pages) {
		struct page *next = p->pages->next;

		free(p->pages);
		p->pages = next;
	}
	free(p);
}

/* The first gap of `n` granules in a page; SLOTS: none. */
static uint64_t find_gap(const struct page *page, uint64_t n)
{
	uint64_t run = 0;

	for (uint64_t i = 0; i < SLOTS && SLOTS - page->used >= n; i++) {
		run = page->at[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return SLOTS;
}

/* Pages are in the order in which they were mapped. */
static struct page *add_page(struct pool *p)
{
	struct page *page = calloc(1, sizeof *page), **last = &p->pages;

	if (!page)
		return NULL;
	while (*last)
		last = &(*last)->next;
	*last = page;
	page->addr = p->next_addr;
	p->next_addr += UM_BLOCK_BYTES;
	p->reserved += UM_BLOCK_BYTES;
	return page;
}

static int alloc_small(struct pool *p, struct range *r)
{
	uint64_t n = (r->bytes + GRANULE - 1) / GRANULE, gap = SLOTS;
	struct page *page = p->pages;

	for (; page; page = page->next) {
		gap = find_gap(page, n);
		if (gap < SLOTS)
			break;
	}
	if (!page) {
		page = add_page(p);
		gap = 0;
	}
	if (!page)
		return -ENOMEM;
	memset(page->at + gap, 1, n);
	page->used += n;
	r->page = page;
	r->addr = page->addr + gap * GRANULE;
	return 0;
}

static int alloc_range(void *pool, uint64_t bytes, struct um_pool_piece *out)
{
	struct pool *p = pool;
	struct range *r = calloc(1, sizeof *r);
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->bytes = bytes;
	if (bytes < UM_BLOCK_BYTES) {
		err = alloc_small(p, r);
	} else {
		r->bytes = (bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
		r->addr = p->next_addr;
		p->next_addr += r->bytes;
		p->reserved += r->bytes;
	}
	if (err)
		free(r);
	else
		*out = (struct um_pool_piece){r->addr, r};
	return err;
}

static void drop_page(struct pool *p, struct page *page)
{
	struct page **at = &p->pages;

	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	p->reserved -= UM_BLOCK_BYTES;
	free(page);
}

static void free_range(void *pool, struct um_pool_piece *piece)
{
	struct pool *p = pool;
	struct range *r = piece->record;
	uint64_t n = (r->bytes + GRANULE - 1) / GRANULE;

	if (r->page) {
		memset(r->page->at + (r->addr - r->page->addr) / GRANULE, 0, n);
		r->page->used -= n;
		if (!r->page->used)
			drop_page(p, r->page);
	} else {
		p->reserved -= r->bytes;
	}
	free(r);
}

static uint64_t reserved(const void *pool)
{
	return ((const struct pool *)pool)->reserved;
}

const struct um_pool_policy um_pool_cuda_malloc = {
	.name = "cuda-malloc",
	.open = open_pool,
	.alloc = alloc_range,
	.free = free_range,
	.reserved = reserved,
	.close = close_pool,
};
