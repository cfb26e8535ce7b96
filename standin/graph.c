/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - CUDA graphs as values: nodes, dependencies, copies, a topological order
 */
#include "standin/graph.h"

struct um_graph *um_graph_new(void)
{
	return calloc(1, sizeof(struct um_graph));
}

void um_node_clear(struct um_node *n)
{
	for (size_t i = 0; i < n->work.n; i++)
		um_work_drop(&n->work.at[i]);
	um_vec_clear(&n->work);
}

static void node_free(struct um_node *n)
{
	um_node_clear(n);
	um_vec_fini(&n->work);
	um_vec_fini(&n->after);
	um_graph_free(n->child);
	free(n);
}

void um_graph_free(struct um_graph *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->node.n; i++)
		node_free(g->node.at[i]);
	um_vec_fini(&g->node);
	free(g);
}

int um_node_after(struct um_node *n, struct um_node *before)
{
	for (size_t i = 0; i < n->after.n; i++)
		if (n->after.at[i] == before)
			return 0;
	return um_vec_push(&n->after, before);
}

void um_node_apart(struct um_node *n, const struct um_node *before)
{
	for (size_t i = 0; i < n->after.n; i++)
		if (n->after.at[i] == before) {
			n->after.n--;
			memmove(n->after.at + i, n->after.at + i + 1, (n->after.n - i) * sizeof *n->after.at);
		}
}

void um_node_remove(struct um_node *n)
{
	struct um_graph *g = n->graph;

	for (size_t i = 0; i < g->node.n; i++)
		um_node_apart(g->node.at[i], n);
	for (size_t i = 0; i < g->node.n; i++)
		if (g->node.at[i] == n) {
			g->node.n--;
			memmove(g->node.at + i, g->node.at + i + 1, (g->node.n - i) * sizeof *g->node.at);
		}
	node_free(n);
}

struct um_node *um_node_add(struct um_graph *g, enum um_node_type type, struct um_node *const *after, size_t n)
{
	struct um_node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	node->type = type;
	node->graph = g;
	for (size_t i = 0; i < n; i++)
		if (after[i]->graph != g || um_node_after(node, after[i]))
			goto free_node;
	if (um_vec_push(&g->node, node))
		goto free_node;
	return node;

free_node:
	node_free(node);
	return NULL;
}

int um_node_work(struct um_node *n, const struct um_work *work)
{
	if (um_vec_push(&n->work, *work) == 0)
		return 0;
	um_work_drop(work);
	return -ENOMEM;
}

static int node_copy(struct um_graph *to, const struct um_node *n)
{
	struct um_node *copy = um_node_add(to, n->type, NULL, 0);

	if (!copy)
		return -ENOMEM;
	copy->origin = n;
	for (size_t i = 0; i < n->work.n; i++) {
		um_work_keep(&n->work.at[i]);
		if (um_node_work(copy, &n->work.at[i]))
			return -ENOMEM;
	}
	if (n->child && !(copy->child = um_graph_copy(n->child)))
		return -ENOMEM;
	return 0;
}

struct um_graph *um_graph_copy(const struct um_graph *g)
{
	struct um_graph *copy = um_graph_new();

	for (size_t i = 0; copy && i < g->node.n; i++) {
		g->node.at[i]->index = i;
		if (node_copy(copy, g->node.at[i]))
			goto free_copy;
	}
	for (size_t i = 0; copy && i < g->node.n; i++)
		for (size_t k = 0; k < g->node.at[i]->after.n; k++)
			if (um_node_after(copy->node.at[i], copy->node.at[g->node.at[i]->after.at[k]->index]))
				goto free_copy;
	return copy;

free_copy:
	um_graph_free(copy);
	return NULL;
}

/* Repeatedly takes the first node, in order of addition, whose predecessors are all placed. */
int um_graph_order(struct um_graph *g, struct um_node ***out)
{
	struct um_node **order = malloc((g->node.n + 1) * sizeof *order);
	size_t placed = 0, before;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < g->node.n; i++)
		g->node.at[i]->index = 0; /* not placed */
	do {
		before = placed;
		for (size_t i = 0; i < g->node.n; i++) {
			struct um_node *n = g->node.at[i];
			size_t k = 0;

			while (k < n->after.n && n->after.at[k]->index)
				k++;
			if (n->index || k < n->after.n)
				continue;
			order[placed++] = n;
			n->index = placed;
		}
	} while (placed > before);
	if (placed < g->node.n) {
		free(order);
		return -EINVAL;
	}
	*out = order;
	return 0;
}
