/* SPDX-License-Identifier: Apache-2.0
 *
 * place_blocks.c - counts blocks with live content by their changes over the iteration
 *
 * A block that one range covers as a whole is occupied exactly during the range's arc. Blocks that a range covers in
 * part may be shared: their arcs are sorted by block and merged.
 */
#include "plan/place_blocks.h"

#include "model/event.h"

struct part {
	uint64_t block;
	int32_t from, to;
};

struct count {
	int32_t n_ops;
	int64_t *blocks, *bytes; /* change at each op */
	UM_VEC(struct part) parts;
};

static void change(int64_t *at, int32_t from, int32_t to, int64_t by)
{
	at[from] += by;
	at[to] -= by;
}

/* The range during [from, to). There is room for two parts. */
static void add(struct count *c, const struct um_place_range *r, int32_t from, int32_t to)
{
	uint64_t first = r->addr / UM_BLOCK_BYTES, last = (r->addr + r->bytes - 1) / UM_BLOCK_BYTES;
	uint64_t whole = (r->addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES, end = (r->addr + r->bytes) / UM_BLOCK_BYTES;

	to = to < c->n_ops ? to : c->n_ops;
	if (from >= to)
		return;
	change(c->bytes, from, to, (int64_t)r->bytes);
	if (whole < end)
		change(c->blocks, from, to, (int64_t)(end - whole));
	if (first < whole)
		c->parts.at[c->parts.n++] = (struct part){first, from, to};
	if (last >= end && (last > first || first >= whole))
		c->parts.at[c->parts.n++] = (struct part){last, from, to};
}

static int by_block(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void add_parts(struct count *c)
{
	if (c->parts.n)
		qsort(c->parts.at, c->parts.n, sizeof *c->parts.at, by_block);
	for (size_t i = 0; i < c->parts.n;) {
		struct part all = c->parts.at[i++];

		for (; i < c->parts.n && c->parts.at[i].block == all.block && c->parts.at[i].from <= all.to; i++)
			all.to = c->parts.at[i].to > all.to ? c->parts.at[i].to : all.to;
		change(c->blocks, all.from, all.to, 1);
	}
}

static uint64_t most(const int64_t *at, int32_t n)
{
	int64_t sum = 0, most = 0;

	for (int32_t i = 0; i < n; i++) {
		sum += at[i];
		most = sum > most ? sum : most;
	}
	return (uint64_t)most;
}

int um_place_blocks(const struct um_place_range *range, size_t n, int32_t n_ops, uint64_t *blocks, uint64_t *bytes)
{
	struct count c = {.n_ops = n_ops,
			  .blocks = calloc((size_t)n_ops + 1, sizeof *c.blocks),
			  .bytes = calloc((size_t)n_ops + 1, sizeof *c.bytes)};
	int err = c.blocks && c.bytes && !um_vec_reserve(&c.parts, 4 * n) ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		add(&c, &range[i], range[i].arc.from, range[i].arc.to);
		add(&c, &range[i], 0, range[i].arc.wrap);
	}
	if (!err) {
		add_parts(&c);
		*blocks = most(c.blocks, n_ops);
		*bytes = most(c.bytes, n_ops);
	}
	free(c.blocks);
	free(c.bytes);
	um_vec_fini(&c.parts);
	return err;
}
