/* SPDX-License-Identifier: Apache-2.0
 *
 * caching.c - best fit with coalescing over segments that are kept (BFC), as in PyTorch and TensorFlow
 *
 * After PyTorch's allocator for CUDA (c10/cuda/CUDACachingAllocator.cpp), which follows TensorFlow's BFC allocator:
 * sizes are multiples of 512 bytes; those of up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments
 * of 20 MiB, larger ones from a segment of their own in multiples of 2 MiB. Small and large ones have a set of free
 * pieces each, ordered by size. A piece is cut if at least 512 bytes remain of a small one, or more than 1 MiB of a
 * large one, and is merged with free neighbours of its segment when it is freed. Segments are not returned.
 */
#include "base/tree.h"
#include "pool/policy.h"

#define MIB (1ull << 20)
#define GRANULE 512ull
#define SMALL MIB
#define SMALL_SEGMENT (2 * MIB)
#define LARGE_SEGMENT (20 * MIB)
#define OWN_SEGMENT (10 * MIB) /* from this size on */
#define ROUND_SEGMENT (2 * MIB)

struct piece {
	struct um_tree_node node; /* (bytes, address) while it is free */
	struct piece *below, *above; /* in the segment */
	struct piece *next_segment; /* of the first piece of a segment */
	uint64_t addr, bytes;
	int free, small;
};

struct pool {
	struct um_tree free[2]; /* large, small */
	struct piece *segments;
	uint64_t reserved, steps, next_addr;
};

static void *open_pool(void)
{
	struct pool *p = calloc(1, sizeof *p);

	return p;
}

static void close_pool(void *pool)
{
	struct pool *p = pool;

	while (p->segments) {
		struct piece *x = p->segments;

		p->segments = x->next_segment;
		while (x) {
			struct piece *above = x->above;

			free(x);
			x = above;
		}
	}
	free(p);
}

/* Nodes on the way from the root of a balanced tree to a leaf. */
static uint64_t depth(const struct um_tree *t)
{
	uint64_t n = 0;

	for (size_t left = t->n; left; left /= 2)
		n++;
	return n;
}

static void insert(struct pool *p, struct piece *x)
{
	struct um_tree *t = &p->free[x->small];

	p->steps += depth(t);
	x->free = 1;
	x->node.a = x->bytes;
	x->node.b = x->addr;
	um_tree_add(t, &x->node); /* addresses differ */
}

static void take_out(struct pool *p, struct piece *x)
{
	p->steps += depth(&p->free[x->small]);
	x->free = 0;
	um_tree_remove(&p->free[x->small], &x->node);
}

static struct piece *new_segment(struct pool *p, uint64_t bytes, int small)
{
	struct piece *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->bytes = small ? SMALL_SEGMENT : bytes < OWN_SEGMENT ? LARGE_SEGMENT : bytes;
	x->bytes = (x->bytes + ROUND_SEGMENT - 1) / ROUND_SEGMENT * ROUND_SEGMENT;
	x->addr = p->next_addr;
	x->small = small;
	x->next_segment = p->segments;
	p->segments = x;
	p->next_addr += x->bytes + ROUND_SEGMENT; /* segments are not neighbours */
	p->reserved += x->bytes;
	return x;
}

static int is_cut(const struct piece *x, uint64_t bytes)
{
	return x->small ? x->bytes - bytes >= GRANULE : x->bytes - bytes > SMALL;
}

static int alloc_piece(void *pool, uint64_t bytes, struct um_pool_piece *out)
{
	struct pool *p = pool;
	struct um_tree_node *node;
	struct piece *x, *rest;
	int small;

	bytes = (bytes + GRANULE - 1) / GRANULE * GRANULE;
	small = bytes <= SMALL;
	p->steps += 1 + depth(&p->free[small]);
	node = um_tree_ceil(&p->free[small], bytes, 0);
	x = node ? um_tree_entry(node, struct piece, node) : new_segment(p, bytes, small);
	if (!x)
		return -ENOMEM;
	rest = is_cut(x, bytes) ? calloc(1, sizeof *rest) : NULL;
	if (is_cut(x, bytes) && !rest)
		return -ENOMEM;
	if (x->free)
		take_out(p, x);
	if (rest) {
		*rest = (struct piece){.below = x,
				       .above = x->above,
				       .addr = x->addr + bytes,
				       .bytes = x->bytes - bytes,
				       .small = small};
		if (x->above)
			x->above->below = rest;
		x->above = rest;
		x->bytes = bytes;
		insert(p, rest);
	}
	*out = (struct um_pool_piece){x->addr, x};
	return 0;
}

/* `x` takes over the piece above it. */
static void join_above(struct piece *x)
{
	struct piece *y = x->above;

	x->bytes += y->bytes;
	x->above = y->above;
	if (y->above)
		y->above->below = x;
	free(y);
}

static void free_piece(void *pool, struct um_pool_piece *piece)
{
	struct pool *p = pool;
	struct piece *x = piece->record;

	p->steps++;
	if (x->above && x->above->free) {
		take_out(p, x->above);
		join_above(x);
	}
	if (x->below && x->below->free) {
		x = x->below;
		take_out(p, x);
		join_above(x);
	}
	insert(p, x);
}

static uint64_t reserved(const void *pool)
{
	return ((const struct pool *)pool)->reserved;
}

static uint64_t steps(const void *pool)
{
	return ((const struct pool *)pool)->steps;
}

const struct um_pool_policy um_pool_caching = {
	.name = "caching",
	.open = open_pool,
	.alloc = alloc_piece,
	.free = free_piece,
	.reserved = reserved,
	.steps = steps,
	.close = close_pool,
};
