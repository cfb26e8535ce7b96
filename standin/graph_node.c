/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_node.c - calls that add, change and query nodes of a graph
 */
#include "standin/graph.h"

#include <stddef.h>

/* CUDA_KERNEL_NODE_PARAMS, first and second form. */
struct kernel_params {
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context; /* of the second form */
};

struct set_params { /* CUDA_MEMSET_NODE_PARAMS */
	uint64_t at;
	size_t pitch;
	unsigned value, size;
	size_t width, rows;
};

struct host_params { /* CUDA_HOST_NODE_PARAMS */
	void (*fn)(void *arg);
	void *arg;
};

static int kernel_set(struct um_node *n, const void *params, int second_form)
{
	const struct kernel_params *p = params;
	struct um_work w = {.kind = UM_WORK_KERNEL};
	void *function;
	int err;

	if (!p || n->type != UM_NODE_KERNEL)
		return UM_CUDA_INVALID_VALUE;
	function = p->function ? p->function : second_form ? p->kernel : NULL;
	err = um_launch_new(&w.launch, function, p->grid, p->block, p->params, p->extra);
	if (err)
		return err;
	um_node_clear(n);
	return um_node_work(n, &w) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

static int plane_add(void *arg, const struct um_work *work)
{
	return um_node_work(arg, work) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

int um_copy_node_set(struct um_node *n, const void *params)
{
	if (!params || n->type != UM_NODE_COPY)
		return UM_CUDA_INVALID_VALUE;
	um_node_clear(n);
	return um_copy_planes(params, plane_add, n);
}

int um_set_node_set(struct um_node *n, const void *params)
{
	const struct set_params *p = params;
	struct um_work w;

	if (!p || n->type != UM_NODE_SET || !p->at || (p->size != 1 && p->size != 2 && p->size != 4))
		return UM_CUDA_INVALID_VALUE;
	w = (struct um_work){.kind = UM_WORK_SET,
			     .set = {.at = (void *)(uintptr_t)p->at,
				     .pitch = p->pitch,
				     .width = p->width,
				     .rows = p->rows,
				     .value = p->value,
				     .size = p->size}};
	um_node_clear(n);
	return um_node_work(n, &w) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

int um_host_node_set(struct um_node *n, const void *params)
{
	const struct host_params *p = params;
	struct um_work w;

	if (!p || !p->fn || n->type != UM_NODE_HOST)
		return UM_CUDA_INVALID_VALUE;
	w = (struct um_work){.kind = UM_WORK_HOST, .host.fn = p->fn, .host.arg = p->arg};
	um_node_clear(n);
	return um_node_work(n, &w) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

int um_kernel_node_set_1(struct um_node *n, const void *params)
{
	return kernel_set(n, params, 0);
}

int um_kernel_node_set_2(struct um_node *n, const void *params)
{
	return kernel_set(n, params, 1);
}

static int event_set(struct um_node *n, const void *event)
{
	struct um_work w = {.kind = n->type == UM_NODE_RECORD ? UM_WORK_RECORD : UM_WORK_WAIT,
			    .event = um_event_get((void *)(uintptr_t)event)};

	if (!w.event)
		return UM_CU_INVALID_HANDLE;
	return um_node_work(n, &w) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
}

static int child_set(struct um_node *n, const void *graph)
{
	struct um_graph *copy = graph ? um_graph_copy(graph) : NULL;

	if (!copy)
		return graph ? UM_CUDA_NO_MEMORY : UM_CUDA_INVALID_VALUE;
	n->child = copy;
	return UM_CUDA_OK;
}

static int nothing_set(struct um_node *n, const void *params)
{
	(void)n;
	(void)params;
	return UM_CUDA_OK;
}

/* Removes an incomplete node, which is the last one. */
static int add(const char *name, void **out, struct um_graph *g, struct um_node *const *after, size_t n,
	       enum um_node_type type, int (*set)(struct um_node *n, const void *params), const void *params)
{
	int err = um_standin_enter(name);
	struct um_node *node;

	if (err || !out || !g || (n && !after))
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	node = um_node_add(g, type, after, n);
	err = node ? set(node, params) : UM_CUDA_INVALID_VALUE;
	if (node && err)
		um_node_remove(node);
	um_standin_unlock();
	if (!err)
		*out = node;
	return err;
}

#define ADD void **out, struct um_graph *g, struct um_node *const *after, size_t n
#define WITH(type, set, params) add(__func__, out, g, after, n, type, set, params)

UM_FORWARD(cuGraphAddKernelNode, (ADD, const void *params), WITH(UM_NODE_KERNEL, um_kernel_node_set_1, params))
UM_FORWARD(cuGraphAddKernelNode_v2, (ADD, const void *params), WITH(UM_NODE_KERNEL, um_kernel_node_set_2, params))
UM_FORWARD(cuGraphAddMemcpyNode, (ADD, const void *params, void *context),
	   ((void)context, WITH(UM_NODE_COPY, um_copy_node_set, params)))
UM_FORWARD(cuGraphAddMemsetNode, (ADD, const void *params, void *context),
	   ((void)context, WITH(UM_NODE_SET, um_set_node_set, params)))
UM_FORWARD(cuGraphAddHostNode, (ADD, const void *params), WITH(UM_NODE_HOST, um_host_node_set, params))
UM_FORWARD(cuGraphAddChildGraphNode, (ADD, const void *child), WITH(UM_NODE_GRAPH, child_set, child))
UM_FORWARD(cuGraphAddEmptyNode, (ADD), WITH(UM_NODE_EMPTY, nothing_set, NULL))
UM_FORWARD(cuGraphAddEventRecordNode, (ADD, void *event), WITH(UM_NODE_RECORD, event_set, event))
UM_FORWARD(cuGraphAddEventWaitNode, (ADD, void *event), WITH(UM_NODE_WAIT, event_set, event))

/* Sets a node's parameters; instantiated graphs are unaffected. */
static int change(const char *name, struct um_node *n, int (*set)(struct um_node *n, const void *params),
		  const void *params)
{
	int err = um_standin_enter(name);

	if (err || !n)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	err = set(n, params);
	um_standin_unlock();
	return err;
}

UM_FORWARD(cuGraphKernelNodeSetParams, (struct um_node * n, const void *p),
	   change(__func__, n, um_kernel_node_set_1, p))
UM_FORWARD(cuGraphKernelNodeSetParams_v2, (struct um_node * n, const void *p),
	   change(__func__, n, um_kernel_node_set_2, p))
/* The work of a node of that type, or NULL with an error code. Locked. */
static const struct um_work *work_of(const char *name, const struct um_node *n, enum um_node_type type, const void *out,
				     int *err)
{
	*err = um_standin_enter(name);
	if (!*err && (!n || !out || n->type != type || !n->work.n))
		*err = UM_CUDA_INVALID_VALUE;
	return *err ? NULL : n->work.at;
}

/* `size`: of the form of the struct. */
static int kernel_get(const char *name, struct um_node *n, void *out, size_t size)
{
	struct um_launch_description d;
	struct kernel_params p = {0};
	const struct um_work *w;
	int err;

	um_standin_lock();
	w = work_of(name, n, UM_NODE_KERNEL, out, &err);
	if (w) {
		um_launch_describe(w->launch, &d);
		p.function = d.function;
		memcpy(p.grid, d.grid, sizeof p.grid);
		memcpy(p.block, d.block, sizeof p.block);
		p.params = d.params;
		p.extra = d.extra;
		memcpy(out, &p, size);
	}
	um_standin_unlock();
	return err;
}

UM_FORWARD(cuGraphKernelNodeGetParams, (struct um_node * n, void *p),
	   kernel_get(__func__, n, p, offsetof(struct kernel_params, kernel)))
UM_FORWARD(cuGraphKernelNodeGetParams_v2, (struct um_node * n, void *p),
	   kernel_get(__func__, n, p, sizeof(struct kernel_params)))

/* Launches keep no attributes, apart from whether they are cooperative. */
UM_CALL(cuGraphKernelNodeGetAttribute, struct um_node *n, int attribute, unsigned *out)
{
	const struct um_work *w;
	int err;

	um_standin_lock();
	w = work_of(__func__, n, UM_NODE_KERNEL, out, &err);
	if (w && (attribute < 1 || attribute > 15))
		err = UM_CUDA_INVALID_VALUE;
	if (!err) {
		memset(out, 0, 64);
		out[0] = attribute == 2 && um_launch_is_cooperative(w->launch);
	}
	um_standin_unlock();
	return err;
}

UM_CALL(cuGraphMemsetNodeGetParams, struct um_node *n, struct set_params *out)
{
	const struct um_work *w;
	int err;

	um_standin_lock();
	w = work_of(__func__, n, UM_NODE_SET, out, &err);
	if (w)
		*out = (struct set_params){(uintptr_t)w->set.at, w->set.pitch, w->set.value,
					   w->set.size,		 w->set.width, w->set.rows};
	um_standin_unlock();
	return err;
}

UM_CALL(cuGraphMemcpyNodeGetParams, struct um_node *n, void *out)
{
	const struct um_work *w;
	int err;

	um_standin_lock();
	w = work_of(__func__, n, UM_NODE_COPY, out, &err);
	if (w)
		um_copy_describe(w, n->work.n, out);
	um_standin_unlock();
	return err;
}

UM_FORWARD(cuGraphMemcpyNodeSetParams, (struct um_node * n, const void *p), change(__func__, n, um_copy_node_set, p))
UM_FORWARD(cuGraphMemsetNodeSetParams, (struct um_node * n, const void *p), change(__func__, n, um_set_node_set, p))
UM_FORWARD(cuGraphHostNodeSetParams, (struct um_node * n, const void *p), change(__func__, n, um_host_node_set, p))

/* --- graphs ------------------------------------------------------------------------------------------------------- */

UM_CALL(cuGraphCreate, void **out, unsigned flags)
{
	int err = um_standin_enter(__func__);
	struct um_graph *g;

	if (err || !out || flags)
		return err ? err : UM_CUDA_INVALID_VALUE;
	g = um_graph_new();
	if (g)
		*out = g;
	return g ? UM_CUDA_OK : UM_CUDA_NO_MEMORY;
}

UM_CALL(cuGraphDestroy, struct um_graph *g)
{
	int err = um_standin_enter(__func__);

	if (err || !g)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	um_graph_free(g);
	um_standin_unlock();
	return UM_CUDA_OK;
}

UM_CALL(cuGraphClone, void **out, struct um_graph *g)
{
	int err = um_standin_enter(__func__);
	struct um_graph *copy;

	if (err || !out || !g)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	copy = um_graph_copy(g);
	um_standin_unlock();
	if (copy)
		*out = copy;
	return copy ? UM_CUDA_OK : UM_CUDA_NO_MEMORY;
}

UM_CALL(cuGraphNodeFindInClone, void **out, struct um_node *n, struct um_graph *g)
{
	int err = um_standin_enter(__func__);

	if (err || !out || !n || !g)
		return err ? err : UM_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < g->node.n; i++)
		if (g->node.at[i]->origin == n) {
			*out = g->node.at[i];
			return UM_CUDA_OK;
		}
	return UM_CUDA_INVALID_VALUE;
}

UM_CALL(cuGraphDestroyNode, struct um_node *n)
{
	int err = um_standin_enter(__func__);

	if (err || !n)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	um_node_remove(n);
	um_standin_unlock();
	return UM_CUDA_OK;
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* Fills the array as far as it reaches, with NULL beyond the last one; without an array returns the number. */
struct answer {
	void **at;
	size_t room, n;
};

static void say(struct answer *a, void *what)
{
	if (a->at && a->n < a->room)
		a->at[a->n] = what;
	a->n++;
}

static int answer_size(struct answer *a, size_t *n)
{
	for (size_t i = a->n; a->at && i < a->room; i++)
		a->at[i] = NULL;
	*n = a->at && a->n > a->room ? a->room : a->n;
	return UM_CUDA_OK;
}

static int nodes(const char *name, struct um_graph *g, void **out, size_t *n, int roots)
{
	int err = um_standin_enter(name);
	struct answer a = {out, n ? *n : 0, 0};

	if (err || !g || !n)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	for (size_t i = 0; i < g->node.n; i++)
		if (!roots || !g->node.at[i]->after.n)
			say(&a, g->node.at[i]);
	um_standin_unlock();
	return answer_size(&a, n);
}

UM_FORWARD(cuGraphGetNodes, (struct um_graph * g, void **out, size_t *n), nodes(__func__, g, out, n, 0))
UM_FORWARD(cuGraphGetRootNodes, (struct um_graph * g, void **out, size_t *n), nodes(__func__, g, out, n, 1))

UM_CALL(cuGraphNodeGetDependencies, struct um_node *node, void **out, size_t *n)
{
	int err = um_standin_enter(__func__);
	struct answer a = {out, n ? *n : 0, 0};

	if (err || !node || !n)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	for (size_t i = 0; i < node->after.n; i++)
		say(&a, node->after.at[i]);
	um_standin_unlock();
	return answer_size(&a, n);
}

UM_CALL(cuGraphNodeGetDependentNodes, struct um_node *node, void **out, size_t *n)
{
	int err = um_standin_enter(__func__);
	struct answer a = {out, n ? *n : 0, 0};

	if (err || !node || !n)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	for (size_t i = 0; i < node->graph->node.n; i++) {
		struct um_node *o = node->graph->node.at[i];

		for (size_t k = 0; k < o->after.n; k++)
			if (o->after.at[k] == node)
				say(&a, o);
	}
	um_standin_unlock();
	return answer_size(&a, n);
}

UM_CALL(cuGraphGetEdges, struct um_graph *g, void **from, void **to, size_t *n)
{
	int err = um_standin_enter(__func__);
	struct answer f = {from, n ? *n : 0, 0}, t = {to, n ? *n : 0, 0};

	if (err || !g || !n || !from != !to)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	for (size_t i = 0; i < g->node.n; i++)
		for (size_t k = 0; k < g->node.at[i]->after.n; k++) {
			say(&f, g->node.at[i]->after.at[k]);
			say(&t, g->node.at[i]);
		}
	um_standin_unlock();
	answer_size(&f, n);
	return answer_size(&t, n);
}

UM_CALL(cuGraphNodeGetType, struct um_node *n, int *type)
{
	int err = um_standin_enter(__func__);

	if (err || !n || !type)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*type = (int)n->type;
	return UM_CUDA_OK;
}

UM_CALL(cuGraphChildGraphNodeGetGraph, struct um_node *n, void **out)
{
	int err = um_standin_enter(__func__);

	if (err || !n || !out || !n->child)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*out = n->child;
	return UM_CUDA_OK;
}

/* Adds or removes edges. */
static int edges(const char *name, struct um_graph *g, struct um_node *const *from, struct um_node *const *to, size_t n,
		 int more)
{
	int err = um_standin_enter(name);

	if (err || !g || (n && (!from || !to)))
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	for (size_t i = 0; i < n && !err; i++) {
		if (from[i]->graph != g || to[i]->graph != g)
			err = UM_CUDA_INVALID_VALUE;
		else if (more)
			err = um_node_after(to[i], from[i]) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
		else
			um_node_apart(to[i], from[i]);
	}
	um_standin_unlock();
	return err;
}

#define EDGES struct um_graph *g, struct um_node *const *from, struct um_node *const *to

UM_FORWARD(cuGraphAddDependencies, (EDGES, size_t n), edges(__func__, g, from, to, n, 1))
UM_FORWARD(cuGraphAddDependencies_v2, (EDGES, const void *data, size_t n),
	   ((void)data, edges(__func__, g, from, to, n, 1)))
UM_FORWARD(cuGraphRemoveDependencies, (EDGES, size_t n), edges(__func__, g, from, to, n, 0))
UM_FORWARD(cuGraphRemoveDependencies_v2, (EDGES, const void *data, size_t n),
	   ((void)data, edges(__func__, g, from, to, n, 0)))
UM_FORWARD(cuGraphGetEdges_v2, (struct um_graph * g, void **from, void **to, void *data, size_t *n),
	   ((void)data, cuGraphGetEdges(g, from, to, n)))
UM_FORWARD(cuGraphNodeGetDependencies_v2, (struct um_node * node, void **out, void *data, size_t *n),
	   ((void)data, cuGraphNodeGetDependencies(node, out, n)))
UM_FORWARD(cuGraphNodeGetDependentNodes_v2, (struct um_node * node, void **out, void *data, size_t *n),
	   ((void)data, cuGraphNodeGetDependentNodes(node, out, n)))

const struct um_entry um_graph_entries[] = {
	{"cuGraphAddKernelNode", 10000, cuGraphAddKernelNode, NULL},
	{"cuGraphAddKernelNode", 12000, cuGraphAddKernelNode_v2, NULL},
	{"cuGraphAddMemcpyNode", 10000, cuGraphAddMemcpyNode, NULL},
	{"cuGraphAddMemsetNode", 10000, cuGraphAddMemsetNode, NULL},
	{"cuGraphAddHostNode", 10000, cuGraphAddHostNode, NULL},
	{"cuGraphAddChildGraphNode", 10000, cuGraphAddChildGraphNode, NULL},
	{"cuGraphAddEmptyNode", 10000, cuGraphAddEmptyNode, NULL},
	{"cuGraphAddEventRecordNode", 11010, cuGraphAddEventRecordNode, NULL},
	{"cuGraphAddEventWaitNode", 11010, cuGraphAddEventWaitNode, NULL},
	{"cuGraphKernelNodeSetParams", 10000, cuGraphKernelNodeSetParams, NULL},
	{"cuGraphKernelNodeSetParams", 12000, cuGraphKernelNodeSetParams_v2, NULL},
	{"cuGraphKernelNodeGetParams", 10000, cuGraphKernelNodeGetParams, NULL},
	{"cuGraphKernelNodeGetParams", 12000, cuGraphKernelNodeGetParams_v2, NULL},
	{"cuGraphKernelNodeGetAttribute", 11000, cuGraphKernelNodeGetAttribute, NULL},
	{"cuGraphMemcpyNodeGetParams", 10000, cuGraphMemcpyNodeGetParams, NULL},
	{"cuGraphMemsetNodeGetParams", 10000, cuGraphMemsetNodeGetParams, NULL},
	{"cuGraphMemcpyNodeSetParams", 10000, cuGraphMemcpyNodeSetParams, NULL},
	{"cuGraphMemsetNodeSetParams", 10000, cuGraphMemsetNodeSetParams, NULL},
	{"cuGraphHostNodeSetParams", 10000, cuGraphHostNodeSetParams, NULL},
	{"cuGraphCreate", 10000, cuGraphCreate, NULL},
	{"cuGraphDestroy", 10000, cuGraphDestroy, NULL},
	{"cuGraphClone", 10000, cuGraphClone, NULL},
	{"cuGraphNodeFindInClone", 10000, cuGraphNodeFindInClone, NULL},
	{"cuGraphDestroyNode", 10000, cuGraphDestroyNode, NULL},
	{"cuGraphGetNodes", 10000, cuGraphGetNodes, NULL},
	{"cuGraphGetRootNodes", 10000, cuGraphGetRootNodes, NULL},
	{"cuGraphGetEdges", 10000, cuGraphGetEdges, NULL},
	{"cuGraphGetEdges", 12030, cuGraphGetEdges_v2, NULL},
	{"cuGraphNodeGetDependencies", 10000, cuGraphNodeGetDependencies, NULL},
	{"cuGraphNodeGetDependencies", 12030, cuGraphNodeGetDependencies_v2, NULL},
	{"cuGraphNodeGetDependentNodes", 10000, cuGraphNodeGetDependentNodes, NULL},
	{"cuGraphNodeGetDependentNodes", 12030, cuGraphNodeGetDependentNodes_v2, NULL},
	{"cuGraphNodeGetType", 10000, cuGraphNodeGetType, NULL},
	{"cuGraphChildGraphNodeGetGraph", 10000, cuGraphChildGraphNodeGetGraph, NULL},
	{"cuGraphAddDependencies", 10000, cuGraphAddDependencies, NULL},
	{"cuGraphAddDependencies", 12030, cuGraphAddDependencies_v2, NULL},
	{"cuGraphRemoveDependencies", 10000, cuGraphRemoveDependencies, NULL},
	{"cuGraphRemoveDependencies", 12030, cuGraphRemoveDependencies_v2, NULL},
	{0},
};
