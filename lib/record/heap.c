/* SPDX-License-Identifier: Apache-2.0
 *
 * heap.c - best-fit allocation of address ranges
 *
 * Free ranges are in three trees: by address to find neighbours, by (size, address) to find the best fit, and by (size
 * from the first block boundary on, address) to find the best fit at a boundary. Between two free ranges of one region
 * there is always a live one, so there are never more of them than live ranges plus regions: um_heap_alloc() and
 * um_heap_add_region() keep that many records, so that um_heap_free() never needs memory.
 */
#include "record/heap.h"

#include "base/bisect.h"
#include "model/event.h"

#include <assert.h>

struct range {
	struct um_tree_node by_addr; /* (addr, 0) */
	struct um_tree_node by_size; /* (bytes, addr) */
	struct um_tree_node by_aligned; /* (bytes from the first block boundary on, addr) */
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

static struct range *of_aligned(struct um_tree_node *node)
{
	return node ? um_tree_entry(node, struct range, by_aligned) : NULL;
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

static uint64_t block_down(uint64_t addr)
{
	return addr - addr % UM_BLOCK_BYTES;
}

static uint64_t block_up(uint64_t addr)
{
	return block_down(addr + UM_BLOCK_BYTES - 1);
}

/* 0 if it exceeds 64 bits. */
static uint64_t round_up(uint64_t bytes)
{
	if (bytes == 0)
		return UM_HEAP_GRANULE;
	return (bytes + UM_HEAP_GRANULE - 1) / UM_HEAP_GRANULE * UM_HEAP_GRANULE;
}

/* Reserves a record for one more live range or region. */
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
	f->by_aligned.a = addr + bytes > block_up(addr) ? addr + bytes - block_up(addr) : 0;
	f->by_aligned.b = addr;
	rc = um_tree_add(&h->by_aligned, &f->by_aligned);
	assert(rc == 0);
	h->used_blocks -= f->by_aligned.a / UM_BLOCK_BYTES;
	(void)rc;
}

static void drop(struct um_heap *h, struct range *f)
{
	um_tree_remove(&h->by_addr, &f->by_addr);
	um_tree_remove(&h->by_size, &f->by_size);
	um_tree_remove(&h->by_aligned, &f->by_aligned);
	h->used_blocks += f->by_aligned.a / UM_BLOCK_BYTES;
	f->next_spare = h->spare;
	h->spare = f;
}

/* Number of regions that start at or before addr. */
static size_t starts_upto(const struct um_heap *h, uint64_t addr)
{
	size_t lo = 0;

	UM_BISECT(lo, h->starts.n, i, h->starts.at[i] <= addr)
	return lo;
}

/* Adjacent free ranges on both sides of a start belong to two regions. */
int um_heap_is_start(const struct um_heap *h, uint64_t addr)
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
	h->used_blocks += bytes / UM_BLOCK_BYTES; /* insert() subtracts the free ones */
	insert(h, addr, bytes);
	return 0;
}

/* Cuts [addr, addr + bytes) out of the free range that contains it. */
static void cut(struct um_heap *h, struct range *f, uint64_t addr, uint64_t bytes)
{
	uint64_t start = addr_of(f), end = end_of(f);

	drop(h, f);
	if (addr > start)
		insert(h, start, addr - start);
	if (addr + bytes < end)
		insert(h, addr + bytes, end - addr - bytes);
}

static void count_live(struct um_heap *h, uint64_t bytes)
{
	h->live_bytes += bytes;
	h->n_live++;
}

struct fit {
	struct range *range;
	uint64_t at;
};

/* The lowest address in a free range where `bytes` touch as few blocks as possible. UINT64_MAX: none. */
static uint64_t place_in_few_blocks(const struct range *f, uint64_t bytes)
{
	uint64_t at = addr_of(f), slack = (UM_BLOCK_BYTES - bytes % UM_BLOCK_BYTES) % UM_BLOCK_BYTES;

	if (at % UM_BLOCK_BYTES > slack)
		at = block_up(at);
	return at < end_of(f) && bytes <= end_of(f) - at ? at : UINT64_MAX;
}

/* Do the free bytes of blocks in use stay below their limit with this piece? */
static int is_affordable(const struct um_heap *h, struct fit fit, uint64_t bytes)
{
	uint64_t lo = block_down(fit.at), hi = block_up(fit.at + bytes);
	uint64_t live = h->live_bytes + bytes, blocks = h->used_blocks;

	if (lo < block_up(addr_of(fit.range))) /* the range begins in a block in use */
		lo = block_up(addr_of(fit.range));
	if (hi > block_down(end_of(fit.range))) /* or ends in one */
		hi = block_down(end_of(fit.range));
	if (hi > lo)
		blocks += (hi - lo) / UM_BLOCK_BYTES;
	return blocks * UM_BLOCK_BYTES <= live + live / UM_HEAP_WASTE + UM_BLOCK_BYTES;
}

/* A small piece takes the end of the range that is in a block in use, and leaves whole blocks to large pieces. */
static uint64_t place_in_used_block(const struct range *f, uint64_t bytes)
{
	uint64_t head = block_up(addr_of(f)) - addr_of(f), tail = end_of(f) - block_down(end_of(f));

	return head < bytes && tail >= bytes && tail < bytes_of(f) ? end_of(f) - tail : addr_of(f);
}

/* Keeps small pieces out of whole free blocks, and medium ones from straddling more blocks than they need. */
static void align(const struct um_heap *h, uint64_t bytes, struct fit *fit)
{
	struct fit few = {fit->range, place_in_few_blocks(fit->range, bytes)};

	if (bytes < UM_HEAP_MEDIUM) {
		fit->at = place_in_used_block(fit->range, bytes);
		return;
	}
	if (bytes > UM_HEAP_LARGE)
		return;
	if (few.at == UINT64_MAX) {
		few.range = of_aligned(um_tree_ceil(&h->by_aligned, bytes, 0));
		if (!few.range)
			return;
		few.at = place_in_few_blocks(few.range, bytes);
	}
	if (is_affordable(h, few, bytes))
		*fit = few;
}

/* From the best fit on. */
static void find_cheapest(uint64_t bytes, const struct um_heap_cost *cost, struct fit *fit)
{
	struct range *f = fit->range;
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < UM_HEAP_FITS && f && least; i++) {
		const uint64_t at[2] = {addr_of(f), end_of(f) - bytes};

		for (int end = 0; end < 2 && least; end++) {
			uint64_t is = cost->of(cost->user, at[end], bytes);

			if (is < least) {
				least = is;
				*fit = (struct fit){f, at[end]};
			}
		}
		f = of_size(um_tree_next(&f->by_size));
	}
}

static int take(struct um_heap *h, uint64_t bytes, int aligned, const struct um_heap_cost *cost, uint64_t *addr)
{
	struct fit fit;

	bytes = round_up(bytes);
	if (bytes == 0)
		return -ENOMEM; /* more than can be addressed: another region would not help */
	fit.range = of_size(um_tree_ceil(&h->by_size, bytes, 0));
	if (!fit.range)
		return -ENOSPC;
	if (reserve(h))
		return -ENOMEM;
	fit.at = addr_of(fit.range);
	if (aligned)
		align(h, bytes, &fit);
	if (cost)
		find_cheapest(bytes, cost, &fit);
	cut(h, fit.range, fit.at, bytes);
	count_live(h, bytes);
	*addr = fit.at;
	return 0;
}

int um_heap_alloc(struct um_heap *h, uint64_t bytes, uint64_t *addr)
{
	return take(h, bytes, 0, NULL, addr);
}

int um_heap_alloc_cheapest(struct um_heap *h, uint64_t bytes, const struct um_heap_cost *cost, uint64_t *addr)
{
	return take(h, bytes, 0, cost, addr);
}

int um_heap_alloc_aligned(struct um_heap *h, uint64_t bytes, uint64_t *addr)
{
	return take(h, bytes, 1, NULL, addr);
}

int um_heap_alloc_at(struct um_heap *h, uint64_t addr, uint64_t bytes)
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
	count_live(h, bytes);
	return 0;
}

void um_heap_cut(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct range *f = of_addr(um_tree_floor(&h->by_addr, addr, 0));

	assert(f && addr + bytes <= end_of(f));
	cut(h, f, addr, bytes);
}

void um_heap_uncut(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct range *below = of_addr(um_tree_floor(&h->by_addr, addr, 0));
	struct range *above = of_addr(um_tree_ceil(&h->by_addr, addr, 0));
	uint64_t start = addr, end = addr + bytes;

	assert(!below || end_of(below) <= addr);
	assert(!above || addr_of(above) >= end);
	if (below && end_of(below) == addr && !um_heap_is_start(h, addr)) {
		start = addr_of(below);
		drop(h, below);
	}
	if (above && addr_of(above) == end && !um_heap_is_start(h, end)) {
		end = end_of(above);
		drop(h, above);
	}
	insert(h, start, end - start);
}

int um_heap_enter(struct um_heap *h, uint64_t bytes)
{
	if (reserve(h))
		return -ENOMEM;
	count_live(h, bytes ? round_up(bytes) : 0);
	return 0;
}

void um_heap_leave(struct um_heap *h, uint64_t bytes)
{
	bytes = bytes ? round_up(bytes) : 0;
	assert(h->n_live > 0 && h->live_bytes >= bytes);
	h->live_bytes -= bytes;
	h->n_live--;
}

void um_heap_free(struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	bytes = round_up(bytes);
	um_heap_uncut(h, addr, bytes);
	um_heap_leave(h, bytes);
}

void um_heap_each_free(const struct um_heap *h, void (*fn)(void *user, uint64_t addr, uint64_t bytes), void *user)
{
	struct um_tree_node *node = um_tree_first(&h->by_addr);

	for (; node; node = um_tree_next(node))
		fn(user, addr_of(of_addr(node)), bytes_of(of_addr(node)));
}
