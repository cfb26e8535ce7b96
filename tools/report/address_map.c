/* SPDX-License-Identifier: Apache-2.0
 *
 * address_map.c - an interval tree from addresses to tensors and allocations
 *
 * Ranges are ordered by their beginnings, an outer one before an inner one with the same beginning. As they nest, the
 * innermost range that contains an address is the last one to begin there or before, or one that contains that range.
 */
#include "report/address_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEAR (2u << 20) /* bytes */

struct place {
	struct um_tree_node node; /* (beginning, ~end) */
	struct place *holder; /* the innermost range that contains all of it, or NULL */
	uint64_t begun; /* index in the order of insertion */
	uint32_t row;
};

static struct place *place_of(struct um_tree_node *node)
{
	return node ? um_tree_entry(node, struct place, node) : NULL;
}

static uint64_t begin_of(const struct place *p)
{
	return p->node.a;
}

static uint64_t end_of(const struct place *p)
{
	return ~p->node.b;
}

/* The last range that begins at an address or before it. */
static struct place *last_at(const struct um_tree *t, uint64_t address)
{
	return place_of(um_tree_floor(t, address, UINT64_MAX));
}

/* Moves the children of `p` to `holder`. */
static void hand_over(const struct um_tree *t, struct place *p, struct place *holder)
{
	struct place *c = place_of(um_tree_next(&p->node));

	while (c && begin_of(c) < end_of(p)) {
		c->holder = holder;
		c = place_of(um_tree_ceil(t, end_of(c), 0));
	}
}

static void drop(struct um_tree *t, struct place *p)
{
	hand_over(t, p, p->holder);
	um_tree_remove(t, &p->node);
	free(p);
}

/* Removes ranges that do not nest with [begin, end), and an equal one. */
static void drop_crossing(struct um_tree *t, uint64_t begin, uint64_t end)
{
	struct place *p, *up;

	for (p = begin ? last_at(t, begin - 1) : NULL; p && end_of(p) < end; p = up) {
		up = p->holder;
		if (end_of(p) > begin)
			drop(t, p);
	}
	for (p = last_at(t, end - 1); p && begin_of(p) > begin; p = up) {
		up = p->holder;
		if (end_of(p) > end)
			drop(t, p);
	}
	p = place_of(um_tree_floor(t, begin, ~end));
	if (p && begin_of(p) == begin && end_of(p) == end)
		drop(t, p);
}

/* Invalidates the cached look-up. */
static void forget(struct um_address_map *p)
{
	memset(p->found, 0, sizeof p->found);
}

int um_address_map_add(struct um_address_map *p, enum um_place_kind kind, uint64_t address, uint64_t bytes,
		       uint32_t row)
{
	struct um_tree *t = &p->ranges[kind];
	uint64_t end = bytes < UINT64_MAX - address ? address + bytes : UINT64_MAX;
	struct place *fresh, *holder;

	if (end <= address)
		return 0;
	forget(p);
	drop_crossing(t, address, end);
	if (t->n >= UM_ADDRESS_MAP_MAX)
		return 0;
	fresh = malloc(sizeof *fresh);
	if (!fresh)
		return -ENOMEM;
	holder = place_of(um_tree_floor(t, address, ~end));
	while (holder && end_of(holder) < end)
		holder = holder->holder;
	*fresh = (struct place){.node = {.a = address, .b = ~end}, .holder = holder, .begun = ++p->begun, .row = row};
	um_tree_add(t, &fresh->node);
	hand_over(t, fresh, fresh);
	return 0;
}

/* Removes the tensors that lie in [begin, end) as a whole. */
static void drop_within(struct um_tree *t, uint64_t begin, uint64_t end)
{
	struct place *p = place_of(um_tree_ceil(t, begin, 0)), *next;

	for (; p && begin_of(p) < end; p = next) {
		next = place_of(um_tree_next(&p->node));
		if (end_of(p) <= end)
			drop(t, p);
	}
}

void um_address_map_remove(struct um_address_map *p, enum um_place_kind kind, uint64_t address, uint64_t bytes)
{
	struct um_tree *t = &p->ranges[kind];
	struct place *x = place_of(um_tree_ceil(t, address, 0)), *best = NULL;
	uint64_t end;

	for (; x && begin_of(x) == address; x = place_of(um_tree_next(&x->node))) {
		int fits = bytes && end_of(x) - address == bytes;

		if (fits || !best || x->begun > best->begun)
			best = x;
		if (fits)
			break;
	}
	if (!best)
		return;
	forget(p);
	end = end_of(best);
	drop(t, best);
	if (kind == UM_PLACE_ALLOCATION)
		drop_within(&p->ranges[UM_PLACE_TENSOR], address, end);
}

/* Finds the row at an address, and the surrounding addresses with the same row. */
static struct um_place_found look(const struct um_address_map *p, uint64_t address)
{
	struct um_place_found f = {0, UINT64_MAX, UM_PLACE_NONE};

	for (int kind = 0; kind < UM_PLACE_KINDS && f.row == UM_PLACE_NONE; kind++) {
		const struct um_tree *t = &p->ranges[kind];
		struct place *x = last_at(t, address);
		const struct place *next = place_of(x ? um_tree_next(&x->node) : um_tree_first(t));

		if (next && begin_of(next) < f.until)
			f.until = begin_of(next);
		for (; x && end_of(x) <= address; x = x->holder)
			f.from = end_of(x) > f.from ? end_of(x) : f.from;
		if (!x)
			continue;
		f.from = begin_of(x) > f.from ? begin_of(x) : f.from;
		f.until = end_of(x) < f.until ? end_of(x) : f.until;
		f.row = x->row;
	}
	return f;
}

uint32_t um_address_map_find(struct um_address_map *p, uint64_t address, uint64_t *until)
{
	struct um_place_found *f = &p->found[address / NEAR % UM_ADDRESS_MAP_FOUND];

	if (address < f->from || address >= f->until)
		*f = look(p, address);
	*until = f->until;
	return f->row;
}

void um_address_map_fini(struct um_address_map *p)
{
	for (int kind = 0; kind < UM_PLACE_KINDS; kind++) {
		struct um_tree_node *node;

		while ((node = p->ranges[kind].root)) {
			um_tree_remove(&p->ranges[kind], node);
			free(place_of(node));
		}
	}
	*p = (struct um_address_map){0};
}
