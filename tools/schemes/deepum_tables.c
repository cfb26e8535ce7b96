/* SPDX-License-Identifier: Apache-2.0
 *
 * Unused rows take no memory.
 */
#include "schemes/deepum_tables.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

struct record {
	struct um_tree_node node; /* a: the id, b: a hash of the previous ones */
	uint64_t next;
};

struct way {
	uint64_t block, successor[UM_DEEPUM_SUCCESSORS]; /* UM_DEEPUM_NONE: none, and no later ones */
};

struct row {
	struct um_tree_node node; /* a: the id, b: the row's number */
	struct way way[UM_DEEPUM_WAYS]; /* most recently used first */
};

static struct um_tree_node *find(const struct um_tree *t, uint64_t a, uint64_t b)
{
	struct um_tree_node *n = um_tree_floor(t, a, b);

	return n && n->a == a && n->b == b ? n : NULL;
}

static void clear(struct um_tree *t, size_t offset)
{
	struct um_tree_node *n;

	while ((n = t->root)) {
		um_tree_remove(t, n);
		free((char *)n - offset);
	}
}

void um_deepum_tables_fini(struct um_deepum_tables *t)
{
	clear(&t->execs, offsetof(struct um_deepum_exec, node));
	clear(&t->records, offsetof(struct record, node));
	clear(&t->rows, offsetof(struct row, node));
}

struct um_deepum_exec *um_deepum_exec(struct um_deepum_tables *t, uint64_t id)
{
	struct um_tree_node *n = find(&t->execs, id, 0);
	struct um_deepum_exec *e;

	if (n)
		return um_tree_entry(n, struct um_deepum_exec, node);
	e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	e->node.a = id;
	e->start = e->end = UM_DEEPUM_NONE;
	um_tree_add(&t->execs, &e->node);
	return e;
}

void um_deepum_shift(struct um_deepum_context *c, uint64_t id)
{
	memmove(c->before + 1, c->before, sizeof c->before - sizeof *c->before);
	c->before[0] = c->id;
	c->id = id;
}

static uint64_t mix(const struct um_deepum_context *c)
{
	uint64_t h = 0;

	for (int i = 0; i < UM_DEEPUM_BEFORE; i++)
		h = um_hash_u64(h, c->before[i]);
	return h;
}

void um_deepum_followed(struct um_deepum_tables *t, const struct um_deepum_context *c, uint64_t next)
{
	uint64_t before = mix(c);
	struct um_tree_node *n = find(&t->records, c->id, before);
	struct record *r = n ? um_tree_entry(n, struct record, node) : calloc(1, sizeof *r);

	if (!r)
		return;
	r->next = next;
	if (!n) {
		r->node.a = c->id;
		r->node.b = before;
		um_tree_add(&t->records, &r->node);
	}
}

uint64_t um_deepum_next(const struct um_deepum_tables *t, const struct um_deepum_context *c)
{
	struct um_tree_node *n = find(&t->records, c->id, mix(c));

	return n ? um_tree_entry(n, struct record, node)->next : UM_DEEPUM_NONE;
}

static struct row *row_of(const struct um_deepum_tables *t, uint64_t id, uint64_t block)
{
	struct um_tree_node *n = find(&t->rows, id, block % UM_DEEPUM_ROWS);

	return n ? um_tree_entry(n, struct row, node) : NULL;
}

static struct row *row_new(struct um_deepum_tables *t, uint64_t id, uint64_t block)
{
	struct row *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	memset(r->way, 0xff, sizeof r->way);
	r->node.a = id;
	r->node.b = block % UM_DEEPUM_ROWS;
	um_tree_add(&t->rows, &r->node);
	return r;
}

/* Moves `x` to the front of the first `n`, replacing its old position or the last one. */
static void to_front(uint64_t *list, unsigned n, uint64_t x)
{
	unsigned i = 0;

	while (i < n - 1 && list[i] != x)
		i++;
	memmove(list + 1, list, i * sizeof *list);
	list[0] = x;
}

void um_deepum_relate(struct um_deepum_tables *t, uint64_t id, uint64_t block, uint64_t next)
{
	struct row *r = row_of(t, id, block);
	struct way way;
	unsigned i = 0;

	if (!r)
		r = row_new(t, id, block);
	if (!r)
		return;
	while (i < UM_DEEPUM_WAYS - 1 && r->way[i].block != block)
		i++;
	way = r->way[i];
	if (way.block != block) {
		memset(&way, 0xff, sizeof way);
		way.block = block;
	}
	memmove(r->way + 1, r->way, i * sizeof *r->way);
	to_front(way.successor, UM_DEEPUM_SUCCESSORS, next);
	r->way[0] = way;
}

unsigned um_deepum_successors(const struct um_deepum_tables *t, uint64_t id, uint64_t block,
			      uint64_t out[UM_DEEPUM_SUCCESSORS])
{
	const struct row *r = row_of(t, id, block);
	unsigned n = 0;

	for (unsigned i = 0; r && i < UM_DEEPUM_WAYS; i++)
		if (r->way[i].block == block)
			while (n < UM_DEEPUM_SUCCESSORS && r->way[i].successor[n] != UM_DEEPUM_NONE) {
				out[n] = r->way[i].successor[n];
				n++;
			}
	return n;
}
