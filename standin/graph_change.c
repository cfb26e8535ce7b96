/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_change.c - changes instantiated graphs
 */
#include "standin/graph_exec.h"

static struct um_node *node_of(const struct um_exec *x, const struct um_node *n)
{
	for (size_t i = 0; i < x->graph->node.n; i++)
		if (x->graph->node.at[i]->origin == n)
			return x->graph->node.at[i];
	return NULL;
}

static struct um_item *item_of(const struct um_exec *x, const struct um_node *n)
{
	for (size_t i = 0; i < x->item.n; i++)
		if (x->item.at[i].origin == n)
			return &x->item.at[i];
	return NULL;
}

/* The item does what its node in the copy says. */
static int item_set(struct um_item *it, const struct um_node *mine)
{
	um_item_clear(it);
	if (um_vec_reserve(&it->work, mine->work.n))
		return UM_CUDA_NO_MEMORY;
	for (size_t i = 0; i < mine->work.n; i++) {
		um_work_keep(&mine->work.at[i]);
		it->work.at[it->work.n++] = mine->work.at[i];
	}
	return UM_CUDA_OK;
}

/* Replaces the work of the item of `n`, which reads it from its node in the copy. */
static int exec_change(const char *name, struct um_exec *x, const struct um_node *n,
		       int (*set)(struct um_node *n, const void *params), const void *params)
{
	int err = um_standin_enter(name);
	struct um_node *mine;
	struct um_item *it;

	if (err || !x || !n)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	mine = node_of(x, n);
	it = item_of(x, n);
	err = mine && it ? set(mine, params) : UM_CUDA_INVALID_VALUE;
	err = err ? err : item_set(it, mine);
	um_standin_unlock();
	return err;
}

#define CHANGE struct um_exec *x, const struct um_node *n, const void *p

UM_FORWARD(cuGraphExecKernelNodeSetParams, (CHANGE), exec_change(__func__, x, n, um_kernel_node_set_1, p))
UM_FORWARD(cuGraphExecKernelNodeSetParams_v2, (CHANGE), exec_change(__func__, x, n, um_kernel_node_set_2, p))
UM_FORWARD(cuGraphExecMemcpyNodeSetParams, (CHANGE, void *context),
	   ((void)context, exec_change(__func__, x, n, um_copy_node_set, p)))
UM_FORWARD(cuGraphExecMemsetNodeSetParams, (CHANGE, void *context),
	   ((void)context, exec_change(__func__, x, n, um_set_node_set, p)))
UM_FORWARD(cuGraphExecHostNodeSetParams, (CHANGE), exec_change(__func__, x, n, um_host_node_set, p))

/* Enables or disables the node, or tells whether it is enabled. */
static int enabled(const char *name, struct um_exec *x, const struct um_node *n, const unsigned *set, unsigned *get)
{
	int err = um_standin_enter(name);
	struct um_item *it = NULL;

	if (err || !x || !n || (!set && !get))
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	if (n->type <= UM_NODE_SET)
		it = item_of(x, n);
	if (it && set)
		it->disabled = !*set;
	if (it && get)
		*get = !it->disabled;
	um_standin_unlock();
	return it ? UM_CUDA_OK : UM_CUDA_INVALID_VALUE;
}

UM_FORWARD(cuGraphNodeSetEnabled, (struct um_exec * x, const struct um_node *n, unsigned on),
	   enabled(__func__, x, n, &on, NULL))
UM_FORWARD(cuGraphNodeGetEnabled, (struct um_exec * x, const struct um_node *n, unsigned *on),
	   enabled(__func__, x, n, NULL, on))

struct update_result { /* CUgraphExecUpdateResultInfo */
	int result; /* 0 success, 2 topology changed, 3 type of a node changed */
	void *node, *from;
};

/* The same number of nodes, of the same types, with the same dependencies. */
static int alike(const struct um_graph *a, struct um_graph *b)
{
	if (a->node.n != b->node.n)
		return 2;
	for (size_t i = 0; i < b->node.n; i++) {
		a->node.at[i]->index = i;
		b->node.at[i]->index = i;
	}
	for (size_t i = 0; i < a->node.n; i++) {
		const struct um_node *p = a->node.at[i], *q = b->node.at[i];

		if (p->type != q->type)
			return 3;
		if (p->after.n != q->after.n)
			return 2;
		for (size_t k = 0; k < p->after.n; k++)
			if (p->after.at[k]->index != q->after.at[k]->index)
				return 2;
	}
	return 0;
}

/* The nodes of `to`, in the copy of `x`, and their items do what the nodes of `from` do. */
static int child_change(struct um_exec *x, struct um_graph *to, const struct um_graph *from)
{
	int err = UM_CUDA_OK;

	for (size_t i = 0; i < to->node.n && !err; i++) {
		struct um_node *mine = to->node.at[i];
		const struct um_node *n = from->node.at[i];
		struct um_item *it = item_of(x, mine->origin);

		if (n->child) {
			err = child_change(x, mine->child, n->child);
			continue;
		}
		um_node_clear(mine);
		for (size_t k = 0; k < n->work.n && !err; k++) {
			um_work_keep(&n->work.at[k]);
			err = um_node_work(mine, &n->work.at[k]) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
		}
		err = err || !it ? err : item_set(it, mine);
	}
	return err;
}

static int alike_in_depth(const struct um_graph *a, struct um_graph *b)
{
	if (alike(a, b))
		return 0;
	for (size_t i = 0; i < a->node.n; i++)
		if (a->node.at[i]->child && !alike_in_depth(a->node.at[i]->child, b->node.at[i]->child))
			return 0;
	return 1;
}

UM_CALL(cuGraphExecChildGraphNodeSetParams, struct um_exec *x, const struct um_node *n, struct um_graph *g)
{
	int err = um_standin_enter(__func__);
	struct um_node *mine;

	if (err || !x || !n || !g)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	mine = node_of(x, n);
	if (!mine || !mine->child || !alike_in_depth(mine->child, g))
		err = UM_CUDA_INVALID_VALUE;
	else
		err = child_change(x, mine->child, g);
	um_standin_unlock();
	return err;
}

UM_CALL(cuGraphExecNodeSetParams, struct um_exec *x, const struct um_node *n, const struct um_node_params *p)
{
	if (!p || !n || p->type != (int)n->type)
		return UM_CUDA_INVALID_VALUE;
	switch (p->type) {
	case UM_NODE_KERNEL:
		return exec_change(__func__, x, n, um_kernel_node_set_2, p->of.any);
	case UM_NODE_COPY:
		return exec_change(__func__, x, n, um_copy_node_set, p->of.copy.params);
	case UM_NODE_SET:
		return exec_change(__func__, x, n, um_set_node_set, p->of.any);
	case UM_NODE_HOST:
		return exec_change(__func__, x, n, um_host_node_set, p->of.any);
	case UM_NODE_GRAPH:
		return cuGraphExecChildGraphNodeSetParams(x, n, p->of.child);
	default:
		return um_standin_unsupported("a change of a node of this type");
	}
}

UM_CALL(cuGraphExecUpdate_v2, struct um_exec *x, struct um_graph *g, struct update_result *result)
{
	int err = um_standin_enter(__func__), why;
	struct um_exec *fresh, old;

	if (err || !x || !g || !result)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	why = alike(x->graph, g);
	um_standin_unlock();
	err = why ? UM_CU_GRAPH_UPDATE_FAILURE : um_exec_new(&fresh, g, x->flags);
	if (!err) {
		old = *x;
		*x = *fresh;
		*fresh = old;
		um_exec_free(fresh);
	}
	*result = (struct update_result){why, NULL, NULL};
	return err;
}

UM_CALL(cuGraphExecUpdate, struct um_exec *x, struct um_graph *g, void **node, int *result)
{
	struct update_result r = {1, NULL, NULL};
	int err = cuGraphExecUpdate_v2(x, g, &r);

	if (node)
		*node = r.node;
	if (result)
		*result = r.result;
	return err;
}

const struct um_entry um_change_entries[] = {
	{"cuGraphExecKernelNodeSetParams", 10010, cuGraphExecKernelNodeSetParams, NULL},
	{"cuGraphExecKernelNodeSetParams", 12000, cuGraphExecKernelNodeSetParams_v2, NULL},
	{"cuGraphExecMemcpyNodeSetParams", 10020, cuGraphExecMemcpyNodeSetParams, NULL},
	{"cuGraphExecMemsetNodeSetParams", 10020, cuGraphExecMemsetNodeSetParams, NULL},
	{"cuGraphExecHostNodeSetParams", 10020, cuGraphExecHostNodeSetParams, NULL},
	{"cuGraphExecChildGraphNodeSetParams", 11010, cuGraphExecChildGraphNodeSetParams, NULL},
	{"cuGraphExecNodeSetParams", 12020, cuGraphExecNodeSetParams, NULL},
	{"cuGraphNodeSetEnabled", 11060, cuGraphNodeSetEnabled, NULL},
	{"cuGraphNodeGetEnabled", 11060, cuGraphNodeGetEnabled, NULL},
	{"cuGraphExecUpdate", 10020, cuGraphExecUpdate, NULL},
	{"cuGraphExecUpdate", 12000, cuGraphExecUpdate_v2, NULL},
	{0},
};
