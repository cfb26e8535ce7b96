/* SPDX-License-Identifier: Apache-2.0
 *
 * Free ranges lie in two trees, by address to find neighbours and by (size, address) to find the best fit. Between two
 * free ranges of one region there is always a live one, so there are never more of them than live ranges plus regions:
 * take() and add_region() keep that many records, which is why give() cannot run out of them.
 */
#include "record/heap.h"

#include "model/event.h"

#include <assert.h>

struct range {
	struct um_tree_node by_addr; /* (addr, 0) */
	struct um_tree_node by_size; /* (bytes, addr) */
	struct range *next_spare;
};

static struct range *of_addr(struct um_tree_node *node)
{
	return node ? um_tree_entry(node, struct range, by_addr) : NULL;
}

static struct range *of_size(struct um_tree_node *node)
{
	return node ? um_tree_entry(node, struct range, by_size) : NULL;
}

static uint64_t addr_of(const struct range *f)
{
	return f->by_addr.a;
}

static uint64_t bytes_of(const struct range *f)
{
	return f->by_size.a;
}

static uint64_t end_of(const struct range *f)
{
	return addr_of(f) + bytes_of(f);
}

/* 0 if it does not fit into 64 bits. */
static uint64_t round_up(uint64_t bytes)
{
	if (bytes == 0)
		return UM_HEAP_GRANULE;
	return (bytes + UM_HEAP_GRANULE - 1) / UM_HEAP_GRANULE * UM_HEAP_GRANULE;
}

/* Makes sure that one more live range or region has its record. */
static int reserve(struct um_heap *h)
{
	struct range *f;

	if (h->n_records > h->n_live + h->regions.n)
		return 0;
	f = malloc(sizeof *f);
	if (!f)
		return -ENOMEM;
	f->next_spare = h->spare;
	h->spare = f;
	h->n_records++;
	return 0;
}

static void insert(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct range *f = h->spare;
	int rc;

	assert(f);
	h->spare = f->next_spare;
	f->by_addr.a = addr;
	f->by_addr.b = 0;
	f->by_size.a = bytes;
	f->by_size.b = addr;
	rc = um_tree_add(&h->by_addr, &f->by_addr);
	assert(rc == 0);
	rc = um_tree_add(&h->by_size, &f->by_size);
	assert(rc == 0);
	(void)rc;
}

static void drop(struct um_heap *h, struct range *f)
{
	um_tree_remove(&h->by_addr, &f->by_addr);
	um_tree_remove(&h->by_size, &f->by_size);
	f->next_spare = h->spare;
	h->spare = f;
}

/* Number of regions that start at or before addr. */
static size_t starts_upto(const struct um_heap *h, uint64_t addr)
{
	size_t lo = 0, hi = h->starts.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (h->starts.at[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Does a region start exactly here? Two free ranges that meet here belong to two regions. */
static int is_start(const struct um_heap *h, uint64_t addr)
{
	size_t n = starts_upto(h, addr);

	return n > 0 && h->starts.at[n - 1] == addr;
}

void um_heap_init(struct um_heap *h)
{
	memset(h, 0, sizeof *h);
}

void um_heap_fini(struct um_heap *h)
{
	struct um_tree_node *node;
	struct range *f;

	while ((node = h->by_addr.root) != NULL)
		drop(h, of_addr(node));
	while ((f = h->spare) != NULL) {
		h->spare = f->next_spare;
		free(f);
	}
	um_vec_fini(&h->regions);
	um_vec_fini(&h->starts);
	um_heap_init(h);
}

int um_heap_add_region(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	size_t at;

	assert(bytes > 0 && addr % UM_BLOCK_BYTES == 0 && bytes % UM_BLOCK_BYTES == 0);
	if (um_vec_reserve(&h->regions, 1) || um_vec_reserve(&h->starts, 1) || reserve(h))
		return -ENOMEM;
	at = starts_upto(h, addr);
	memmove(h->starts.at + at + 1, h->starts.at + at, (h->starts.n - at) * sizeof *h->starts.at);
	h->starts.at[at] = addr;
	h->starts.n++;
	h->regions.at[h->regions.n++] = (struct um_heap_region){addr, bytes};
	insert(h, addr, bytes);
	return 0;
}

/* Cuts [addr, addr + bytes) out of the free range that holds it. */
static void cut(struct um_heap *h, struct range *f, uint64_t addr, uint64_t bytes)
{
	uint64_t start = addr_of(f), end = end_of(f);

	drop(h, f);
	if (addr > start)
		insert(h, start, addr - start);
	if (addr + bytes < end)
		insert(h, addr + bytes, end - addr - bytes);
	h->live_bytes += bytes;
	h->n_live++;
}

int um_heap_take(struct um_heap *h, uint64_t bytes, uint64_t *addr)
{
	struct range *f;
	uint64_t start;

	bytes = round_up(bytes);
	if (bytes == 0)
		return -ENOMEM; /* more than can be addressed: no region would help */
	f = of_size(um_tree_ceil(&h->by_size, bytes, 0));
	if (!f)
		return -ENOSPC;
	if (reserve(h))
		return -ENOMEM;
	start = addr_of(f);
	cut(h, f, start, bytes);
	*addr = start;
	return 0;
}

int um_heap_take_at(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct range *f;

	bytes = round_up(bytes);
	if (bytes == 0 || addr % UM_HEAP_GRANULE)
		return -EBUSY;
	f = of_addr(um_tree_floor(&h->by_addr, addr, 0));
	if (!f || addr - addr_of(f) > bytes_of(f) || bytes > bytes_of(f) - (addr - addr_of(f)))
		return -EBUSY;
	if (reserve(h))
		return -ENOMEM;
	cut(h, f, addr, bytes);
	return 0;
}

void um_heap_give(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct range *below, *above;
	uint64_t start = addr, end;

	bytes = round_up(bytes);
	end = addr + bytes;
	assert(h->n_live > 0 && h->live_bytes >= bytes);
	below = of_addr(um_tree_floor(&h->by_addr, addr, 0));
	above = of_addr(um_tree_ceil(&h->by_addr, addr, 0));
	assert(!below || end_of(below) <= addr);
	assert(!above || addr_of(above) >= end);
	if (below && end_of(below) == addr && !is_start(h, addr)) {
		start = addr_of(below);
		drop(h, below);
	}
	if (above && addr_of(above) == end && !is_start(h, end)) {
		end = end_of(above);
		drop(h, above);
	}
	insert(h, start, end - start);
	h->live_bytes -= bytes;
	h->n_live--;
}

void um_heap_each_free(const struct um_heap *h, void (*fn)(void *user, uint64_t addr, uint64_t bytes), void *user)
{
	struct um_tree_node *node = um_tree_first(&h->by_addr);

	for (; node; node = um_tree_next(node))
		fn(user, addr_of(of_addr(node)), bytes_of(of_addr(node)));
}
