/* SPDX-License-Identifier: Apache-2.0
 *
 * free_list.c - best fit and first fit over a list of free pieces
 *
 * One range of addresses that grows at its end, cut into pieces. Free pieces form a list in the order of addresses; a
 * birth goes through it from the beginning, and a piece that is freed is merged with free neighbours.
 *
 * best-fit is NVIDIA's cnmem (github.com/NVIDIA/cnmem): the whole list is examined for the smallest piece that fits, in
 * multiples of 512 bytes. There the pool grows by pieces of its own that are never merged; here it grows at its end,
 * which is in its favour.
 *
 * first-fit is the pool of SuperNeurons (Wang et al., PPoPP 2018, section 3.2.1): blocks of 1 KiB, the first piece of
 * the list that fits; a table finds the piece of a tensor that is freed.
 */
#include "pool/policy.h"

struct piece {
	struct piece *below, *above; /* in the order of addresses */
	struct piece *next_free, *prev_free; /* likewise, of free pieces */
	uint64_t addr, bytes;
	int free;
};

struct pool {
	struct piece *top; /* the last piece */
	struct piece *first_free;
	uint64_t end, steps, granule;
	int first_fit;
};

static void *open_pool(uint64_t granule, int first_fit)
{
	struct pool *p = calloc(1, sizeof *p);

	if (p) {
		p->granule = granule;
		p->first_fit = first_fit;
	}
	return p;
}

static void *open_best_fit(void)
{
	return open_pool(512, 0);
}

static void *open_first_fit(void)
{
	return open_pool(1024, 1);
}

static void close_pool(void *pool)
{
	struct pool *p = pool;

	while (p->top) {
		struct piece *below = p->top->below;

		free(p->top);
		p->top = below;
	}
	free(p);
}

/* Adds a piece after `prev` of the free list; NULL: at its beginning. */
static void link_free(struct pool *p, struct piece *x, struct piece *prev)
{
	x->free = 1;
	x->prev_free = prev;
	x->next_free = prev ? prev->next_free : p->first_free;
	if (x->next_free)
		x->next_free->prev_free = x;
	if (prev)
		prev->next_free = x;
	else
		p->first_free = x;
}

static void unlink_free(struct pool *p, struct piece *x)
{
	x->free = 0;
	if (x->next_free)
		x->next_free->prev_free = x->prev_free;
	if (x->prev_free)
		x->prev_free->next_free = x->next_free;
	else
		p->first_free = x->next_free;
}

static struct piece *find(struct pool *p, uint64_t bytes)
{
	struct piece *best = NULL;

	for (struct piece *x = p->first_free; x; x = x->next_free) {
		p->steps++;
		if (x->bytes < bytes || (best && x->bytes >= best->bytes))
			continue;
		best = x;
		if (p->first_fit)
			break;
	}
	return best;
}

static struct piece *new_piece(struct pool *p, struct piece *below, uint64_t addr, uint64_t bytes)
{
	struct piece *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->addr = addr;
	x->bytes = bytes;
	x->below = below;
	x->above = below ? below->above : NULL;
	if (x->above)
		x->above->below = x;
	if (below)
		below->above = x;
	if (p->top == below)
		p->top = x;
	return x;
}

/* A piece at the end, which may begin with a free one. */
static struct piece *grow(struct pool *p, uint64_t bytes)
{
	struct piece *x = p->top;

	if (x && x->free) {
		unlink_free(p, x);
		p->end += bytes - x->bytes;
		x->bytes = bytes;
		return x;
	}
	x = new_piece(p, x, p->end, bytes);
	if (x)
		p->end += bytes;
	return x;
}

static int alloc_piece(void *pool, uint64_t bytes, struct um_pool_piece *out)
{
	struct pool *p = pool;
	struct piece *x, *rest, *prev;

	bytes = (bytes + p->granule - 1) / p->granule * p->granule;
	p->steps++; /* the piece itself */
	x = find(p, bytes);
	if (!x) {
		x = grow(p, bytes);
	} else {
		prev = x->prev_free;
		rest = x->bytes > bytes ? new_piece(p, x, x->addr + bytes, x->bytes - bytes) : NULL;
		if (x->bytes > bytes && !rest)
			return -ENOMEM;
		unlink_free(p, x);
		x->bytes = bytes;
		if (rest)
			link_free(p, rest, prev);
	}
	if (!x)
		return -ENOMEM;
	*out = (struct um_pool_piece){x->addr, x};
	return 0;
}

/* Joins a free piece with the free one above it. */
static void join_above(struct pool *p, struct piece *x)
{
	struct piece *y = x->above;

	unlink_free(p, y);
	x->bytes += y->bytes;
	x->above = y->above;
	if (y->above)
		y->above->below = x;
	else
		p->top = x;
	free(y);
}

static void free_piece(void *pool, struct um_pool_piece *piece)
{
	struct pool *p = pool;
	struct piece *x = piece->record, *prev = NULL;

	p->steps++;
	if (x->below && x->below->free) {
		prev = x->below;
	} else {
		for (struct piece *y = p->first_free; y && y->addr < x->addr; y = y->next_free) {
			p->steps++;
			prev = y;
		}
	}
	link_free(p, x, prev);
	if (x->above && x->above->free)
		join_above(p, x);
	if (x->below && x->below->free)
		join_above(p, x->below);
}

static uint64_t reserved(const void *pool)
{
	return ((const struct pool *)pool)->end;
}

static uint64_t steps(const void *pool)
{
	return ((const struct pool *)pool)->steps;
}

const struct um_pool_policy um_pool_best_fit = {
	.name = "best-fit",
	.open = open_best_fit,
	.alloc = alloc_piece,
	.free = free_piece,
	.reserved = reserved,
	.steps = steps,
	.close = close_pool,
};

const struct um_pool_policy um_pool_first_fit = {
	.name = "first-fit",
	.open = open_first_fit,
	.alloc = alloc_piece,
	.free = free_piece,
	.reserved = reserved,
	.steps = steps,
	.close = close_pool,
};
