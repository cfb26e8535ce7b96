/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c - an interval tree of live tensors
 *
 * A tree keyed (addr, UINT64_MAX - bytes): of ranges that start together the inner one sorts later. Because live ranges
 * nest or are disjoint, the innermost range that contains an address is the last one that starts at or before it, or an
 * ancestor of that one: a floor and a short climb find it.
 */
#include "record/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct um_tensor *tensor_of(struct um_tree_node *node)
{
	return node ? um_tree_entry(node, struct um_tensor, node) : NULL;
}

static int holds(const struct um_tensor *t, uint64_t addr)
{
	return addr >= t->addr && addr - t->addr < t->bytes;
}

static uint64_t end_of(const struct um_tensor *t)
{
	return t->addr + t->bytes;
}

/* From the range at `node` outwards: the first that contains addr. */
static struct um_tensor *climb(struct um_tree_node *node, uint64_t addr)
{
	struct um_tensor *t = tensor_of(node);

	while (t && !holds(t, addr))
		t = t->parent;
	return t;
}

void um_registry_init(struct um_registry *r)
{
	memset(r, 0, sizeof *r);
	r->next_id = 1;
}

/* A record with id 0. */
static struct um_tensor *record_get(struct um_registry *r)
{
	struct um_tensor *t = r->spare;

	if (!t)
		return calloc(1, sizeof *t);
	r->spare = t->parent;
	memset(t, 0, sizeof *t);
	return t;
}

/* A copy of a name; NULL: out of memory. */
static char *name_get(struct um_registry *r, const char *name)
{
	size_t bytes = strlen(name) + 1;
	void *room = r->spare_names;

	if (bytes > UM_REGISTRY_NAME)
		room = malloc(bytes);
	else if (room)
		memcpy(&r->spare_names, room, sizeof r->spare_names);
	else
		room = malloc(UM_REGISTRY_NAME);
	return room ? memcpy(room, name, bytes) : NULL;
}

static void name_give(struct um_registry *r, char *name)
{
	if (!name)
		return;
	if (strlen(name) >= UM_REGISTRY_NAME) {
		free(name);
		return;
	}
	memcpy(name, &r->spare_names, sizeof r->spare_names);
	r->spare_names = name;
}

static void record_give(struct um_registry *r, struct um_tensor *t)
{
	name_give(r, t->name);
	t->name = NULL;
	t->id.v = 0;
	t->parent = r->spare;
	r->spare = t;
}

void um_registry_fini(struct um_registry *r)
{
	struct um_tree_node *node;
	struct um_tensor *t;
	void *room;

	while ((node = r->live.root) != NULL) {
		um_tree_remove(&r->live, node);
		record_give(r, tensor_of(node));
	}
	for (unsigned i = 0; i < UM_REGISTRY_FREED; i++)
		name_give(r, r->freed[i].name);
	memset(r->freed, 0, sizeof r->freed);
	while ((room = r->spare_names) != NULL) {
		memcpy(&r->spare_names, room, sizeof r->spare_names);
		free(room);
	}
	while ((t = r->spare) != NULL) {
		r->spare = t->parent;
		free(t);
	}
	r->n = 0;
}

/* The live tensor that would contain the range (`*parent`, may be NULL). -EEXIST if a live range overlaps this one in
 * part or is equal. Live ranges inside it are allowed: they become its parts. */
static int find_place(const struct um_registry *r, uint64_t addr, uint64_t bytes, struct um_tensor **parent)
{
	uint64_t end = addr + bytes, b = UINT64_MAX - bytes;
	struct um_tensor *outer = climb(um_tree_floor(&r->live, addr, b), addr);
	struct um_tensor *t = tensor_of(um_tree_ceil(&r->live, addr, b));

	if (outer && (end_of(outer) < end || (outer->addr == addr && outer->bytes == bytes)))
		return -EEXIST;
	for (; t && t->addr < end; t = tensor_of(um_tree_next(&t->node)))
		if (end_of(t) > end)
			return -EEXIST;
	*parent = outer;
	return 0;
}

/* Moves the outermost parts of `parent` that are inside `t` to it. */
static void take_parts(struct um_tensor *t)
{
	struct um_tensor *part = tensor_of(um_tree_next(&t->node));

	for (; part && part->addr < end_of(t); part = tensor_of(um_tree_next(&part->node))) {
		if (part->parent != t->parent)
			continue;
		if (t->parent)
			t->parent->n_children--;
		part->parent = t;
		t->n_children++;
	}
	if (t->parent)
		t->parent->n_children++;
}

int um_registry_add(struct um_registry *r, uint64_t addr, uint64_t bytes, const char *name, enum um_role role,
		    unsigned flags, struct um_tensor **out)
{
	struct um_tensor *t, *parent;
	int rc;

	if (bytes == 0 || bytes > UINT64_MAX - addr)
		return -EINVAL;
	rc = find_place(r, addr, bytes, &parent);
	if (rc)
		return rc;
	t = record_get(r);
	if (!t)
		return -ENOMEM;
	if (name) {
		t->name = name_get(r, name);
		if (!t->name) {
			record_give(r, t);
			return -ENOMEM;
		}
	}
	t->node.a = addr;
	t->node.b = UINT64_MAX - bytes;
	t->addr = addr;
	t->bytes = bytes;
	t->role = role;
	t->flags = flags;
	t->parent = parent;
	t->seen_generation = UINT64_MAX;
	rc = um_tree_add(&r->live, &t->node);
	assert(rc == 0);
	take_parts(t);
	t->id.v = r->next_id++;
	r->n++;
	r->changes++;
	*out = t;
	return 0;
}

struct um_tensor *um_registry_find(const struct um_registry *r, uint64_t addr)
{
	return climb(um_tree_floor(&r->live, addr, UINT64_MAX), addr);
}

void um_registry_clip(const struct um_registry *r, uint64_t *addr, uint64_t *bytes)
{
	uint64_t lo = *addr, hi = *addr + *bytes;
	struct um_tensor *t = um_registry_find(r, lo);

	if (t && hi <= end_of(t))
		return;
	if (*bytes && !t) {
		t = tensor_of(um_tree_ceil(&r->live, lo, 0));
		lo = t && t->addr < hi ? t->addr : hi;
	}
	if (lo < hi && !um_registry_find(r, hi - 1)) {
		t = tensor_of(um_tree_floor(&r->live, hi - 1, UINT64_MAX));
		while (t->parent) /* the outermost one ends last */
			t = t->parent;
		hi = end_of(t);
	}
	*addr = lo;
	*bytes = hi - lo;
}

const struct um_registry_freed *um_registry_find_freed(const struct um_registry *r, uint64_t addr)
{
	for (unsigned i = 1; i <= UM_REGISTRY_FREED; i++) {
		const struct um_registry_freed *p = &r->freed[(r->next_freed - i) % UM_REGISTRY_FREED];

		if (addr >= p->addr && addr - p->addr < p->bytes)
			return p;
	}
	return NULL;
}

/* Takes ownership of the name. */
static void remember(struct um_registry *r, struct um_tensor *t)
{
	struct um_registry_freed *p = &r->freed[r->next_freed++ % UM_REGISTRY_FREED];

	name_give(r, p->name);
	*p = (struct um_registry_freed){t->addr, t->bytes, t->name};
	t->name = NULL;
}

int um_registry_remove(struct um_registry *r, struct um_tensor *t)
{
	if (t->n_children)
		return -EBUSY;
	if (t->parent)
		t->parent->n_children--;
	um_tree_remove(&r->live, &t->node);
	r->n--;
	r->changes++;
	remember(r, t);
	record_give(r, t);
	return 0;
}
