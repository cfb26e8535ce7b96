/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.h - an ordered set of records (intrusive balanced tree)
 *
 * The node is a member of the owner's record; the set allocates nothing. Keys are pairs (a, b) of 64-bit numbers
 * compared in that order, so an interval map orders by (start, 0) and a best-fit list by (size, address). No two nodes
 * have equal keys. All operations are O(log n). Not thread-safe.
 */
#ifndef UM_BASE_TREE_H
#define UM_BASE_TREE_H

#include <stddef.h>
#include <stdint.h>

struct um_tree_node {
	struct um_tree_node *child[2], *parent;
	uint64_t a, b; /* the key: set before insertion, constant while in the tree */
	int balance; /* private */
};

struct um_tree {
	struct um_tree_node *root;
	size_t n;
};

/* Inserts; 0, or -EEXIST if the key is there already. */
int um_tree_add(struct um_tree *t, struct um_tree_node *node);
void um_tree_remove(struct um_tree *t, struct um_tree_node *node);

/* The last node with key <= (a, b); the first with key >= (a, b); NULL if none. */
struct um_tree_node *um_tree_floor(const struct um_tree *t, uint64_t a, uint64_t b);
struct um_tree_node *um_tree_ceil(const struct um_tree *t, uint64_t a, uint64_t b);

/* In order: the first node, and the successor of a node; NULL at the end. */
struct um_tree_node *um_tree_first(const struct um_tree *t);
struct um_tree_node *um_tree_next(const struct um_tree_node *node);

#define um_tree_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

#endif
