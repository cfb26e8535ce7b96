/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.c - an AVL tree with parent links
 *
 * `balance` holds the height of the subtree (a leaf has 1), from which the skew of a node follows. After a change only
 * the path to the root is visited, and only as far as heights change.
 */
#include "base/tree.h"

#include <assert.h>
#include <errno.h>

static int height(const struct um_tree_node *node)
{
	return node ? node->balance : 0;
}

static int key_cmp(uint64_t a, uint64_t b, const struct um_tree_node *node)
{
	if (a != node->a)
		return a < node->a ? -1 : 1;
	if (b != node->b)
		return b < node->b ? -1 : 1;
	return 0;
}

/* The link that points at `node`: in its parent, or the root. */
static struct um_tree_node **link_to(struct um_tree *t, const struct um_tree_node *node)
{
	if (!node->parent)
		return &t->root;
	return &node->parent->child[node->parent->child[1] == node];
}

static void refresh(struct um_tree_node *node)
{
	int left = height(node->child[0]), right = height(node->child[1]);

	node->balance = 1 + (left > right ? left : right);
}

/* Moves `node` down to side `side`; its child on the other side takes its place and is returned. */
static struct um_tree_node *rotate(struct um_tree *t, struct um_tree_node *node, int side)
{
	struct um_tree_node *up = node->child[!side], *across = up->child[side];

	*link_to(t, node) = up;
	up->parent = node->parent;
	up->child[side] = node;
	node->parent = up;
	node->child[!side] = across;
	if (across)
		across->parent = node;
	refresh(node);
	refresh(up);
	return up;
}

/* Restores heights and balance from `node` upwards. */
static void rebalance(struct um_tree *t, struct um_tree_node *node)
{
	while (node) {
		int before = node->balance;
		int skew = height(node->child[1]) - height(node->child[0]);

		if (skew < -1 || skew > 1) {
			int heavy = skew > 0;
			struct um_tree_node *c = node->child[heavy];

			/* the heavy child must lean outwards, otherwise one rotation only moves the skew */
			if (height(c->child[!heavy]) > height(c->child[heavy]))
				rotate(t, c, heavy);
			node = rotate(t, node, !heavy);
		} else {
			refresh(node);
		}
		if (node->balance == before)
			break; /* ancestors keep their heights */
		node = node->parent;
	}
}

int um_tree_add(struct um_tree *t, struct um_tree_node *node)
{
	struct um_tree_node *parent = NULL, **link = &t->root;

	while (*link) {
		int c = key_cmp(node->a, node->b, *link);

		if (c == 0)
			return -EEXIST;
		parent = *link;
		link = &parent->child[c > 0];
	}
	node->child[0] = node->child[1] = NULL;
	node->parent = parent;
	node->balance = 1;
	*link = node;
	t->n++;
	rebalance(t, parent);
	return 0;
}

/* Puts `with` (may be NULL) in the place of `node`. */
static void replace(struct um_tree *t, struct um_tree_node *node, struct um_tree_node *with)
{
	*link_to(t, node) = with;
	if (with)
		with->parent = node->parent;
}

void um_tree_remove(struct um_tree *t, struct um_tree_node *node)
{
	struct um_tree_node *from; /* lowest node whose height may have changed */

	assert(t->n > 0);
	if (node->child[0] && node->child[1]) {
		struct um_tree_node *successor = node->child[1];

		while (successor->child[0])
			successor = successor->child[0];
		from = successor->parent == node ? successor : successor->parent;
		replace(t, successor, successor->child[1]);
		replace(t, node, successor);
		for (int side = 0; side < 2; side++) {
			successor->child[side] = node->child[side];
			if (successor->child[side])
				successor->child[side]->parent = successor;
		}
		successor->balance = node->balance;
	} else {
		from = node->parent;
		replace(t, node, node->child[node->child[1] != NULL]);
	}
	t->n--;
	node->child[0] = node->child[1] = node->parent = NULL;
	rebalance(t, from);
}

struct um_tree_node *um_tree_floor(const struct um_tree *t, uint64_t a, uint64_t b)
{
	struct um_tree_node *best = NULL;

	for (struct um_tree_node *n = t->root; n;) {
		int at_most = n->a < a || (n->a == a && n->b <= b);

		if (at_most)
			best = n;
		n = n->child[at_most];
	}
	return best;
}

struct um_tree_node *um_tree_ceil(const struct um_tree *t, uint64_t a, uint64_t b)
{
	struct um_tree_node *best = NULL;

	for (struct um_tree_node *n = t->root; n;) {
		int c = key_cmp(a, b, n);

		if (c <= 0)
			best = n;
		if (c == 0)
			break;
		n = n->child[c > 0];
	}
	return best;
}

struct um_tree_node *um_tree_first(const struct um_tree *t)
{
	struct um_tree_node *n = t->root;

	while (n && n->child[0])
		n = n->child[0];
	return n;
}

/* The nearest node below on the right, otherwise the first ancestor that is reached from its left side. */
struct um_tree_node *um_tree_next(const struct um_tree_node *node)
{
	struct um_tree_node *n = node->child[1];

	if (n) {
		while (n->child[0])
			n = n->child[0];
		return n;
	}
	for (n = node->parent; n && n->child[1] == node; n = n->parent)
		node = n;
	return n;
}
