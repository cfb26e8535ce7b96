/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes are read in the order in which they were added. Where each edge leads to a later node, the nodes may be
 * launched in this order.
 */
#include "inject/graph_nodes.h"

#include "inject/driver.h"
#include "inject/launch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 16 /* graphs inside of graphs */
#define DEVICE_LAUNCH 4u /* of a graph's flags: launched by kernels, too */

/* CUlaunchAttributeID: what a launch without attributes would do otherwise. */
enum attribute { COOPERATIVE = 2, CLUSTER = 4, PREFERRED_CLUSTER = 11, DEVICE_UPDATABLE = 13 };

/* --- uses --------------------------------------------------------------------------------------------------------- */

/* The address, if it is in a tensor. */
static void add_address(struct um_graph *g, uint64_t addr, enum umadv_access access)
{
	struct um_range r;

	if (um_ranges_find(addr, &r) && um_range_is_managed(r.kind) &&
	    um_vec_push(&g->found, ((struct um_graph_use){addr, access})))
		g->unread = 1;
}

static void add_use(struct um_graph *g, const struct um_graph_use *a)
{
	struct um_range r;

	if (!um_ranges_find(a->at, &r))
		return;
	for (size_t i = 0; i < g->use.n; i++) {
		struct um_graph_use *was = &g->use.at[i];

		if (was->at - r.at >= r.bytes)
			continue;
		was->access |= a->access;
		if (a->at < was->at)
			was->at = a->at;
		return;
	}
	g->bytes += r.bytes;
	if (um_vec_push(&g->use, *a))
		g->unread = 1;
}

void um_graph_join(struct um_graph *g)
{
	um_vec_clear(&g->use);
	g->bytes = 0;
	for (size_t i = 0; i < g->node.n; i++)
		for (size_t k = 0; k < g->node.at[i].n && !g->node.at[i].disabled; k++)
			add_use(g, &g->found.at[g->node.at[i].first + k]);
	g->changed = 0;
}

/* --- parameters of a node ----------------------------------------------------------------------------------------- */

typedef int (*param_info)(void *, size_t, size_t *, size_t *);

/* The function that tells the layout of the parameters: the handle is of a function or of a kernel. NULL: there is
 * none, or nothing to tell. */
static param_info info_of(void *handle, int *none)
{
	size_t offset, bytes;
	int of_function = 801, of_kernel = 801;

	if (um_real.cuFuncGetParamInfo)
		of_function = um_real.cuFuncGetParamInfo(handle, 0, &offset, &bytes);
	if (!of_function)
		return um_real.cuFuncGetParamInfo;
	if (um_real.cuKernelGetParamInfo)
		of_kernel = um_real.cuKernelGetParamInfo(handle, 0, &offset, &bytes);
	*none = of_function == 1 || of_kernel == 1;
	return of_kernel ? NULL : um_real.cuKernelGetParamInfo;
}

/* Copies the parameters that the driver has for a kernel node to a buffer. 0: their layout is not known. */
static int keep_params(struct um_graph_node *n, void *handle, void **params)
{
	size_t offset, bytes;
	int none = 0;
	param_info info = info_of(handle, &none);
	char *more;

	for (size_t i = 0; info && params && !info(handle, i, &offset, &bytes); i++) {
		more = realloc(n->buffer, offset + bytes);
		if (!more)
			return 0;
		n->buffer = more;
		if (offset > n->bytes)
			memset(more + n->bytes, 0, offset - n->bytes);
		memcpy(more + offset, params[i], bytes);
		n->bytes = offset + bytes;
	}
	return info ? params != NULL : none;
}

static void read_kernel(struct um_graph *g, struct um_graph_node *n, const struct um_graph_kernel *p)
{
	void *handle = p->function ? p->function : p->kernel;
	struct um_inject_uses uses;

	um_inject_uses_init(&uses);
	if (!um_launch_scan(&uses, handle ? um_function_find(handle) : NULL, p->params, p->extra, 0) || uses.left_out)
		g->unread = 1;
	for (unsigned i = 0; i < uses.n; i++)
		add_address(g, (uintptr_t)uses.at[i].ptr, uses.at[i].access);
	memcpy(&n->launch.kernel, p, offsetof(struct um_graph_kernel, more)); /* the program's may end there */
	n->launch.kernel.function = handle;
	if (!handle || (p->context && p->context != g->context) || p->extra || !keep_params(n, handle, p->params))
		g->whole = 1;
}

/* Would a launch with the node's parameters alone be another one? */
static int has_attributes(void *node)
{
	static const enum attribute ids[] = {COOPERATIVE, CLUSTER, PREFERRED_CLUSTER, DEVICE_UPDATABLE};

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		unsigned value[16] = {0}; /* CUlaunchAttributeValue */
		int cluster = ids[i] == CLUSTER || ids[i] == PREFERRED_CLUSTER;
		int err = um_real.cuGraphKernelNodeGetAttribute
				  ? um_real.cuGraphKernelNodeGetAttribute(node, (int)ids[i], value)
				  : UM_CUDA_SYMBOL_MISSING;

		if (err && ids[i] == COOPERATIVE)
			return 1;
		if (err) /* unknown to this driver or device */
			continue;
		if (cluster ? value[0] > 1 || value[1] > 1 || value[2] > 1 : value[0] != 0)
			return 1;
	}
	return 0;
}

/* Copies of host memory and of arrays are left to the graph. */
static int is_on_device(int type, uint64_t at)
{
	struct um_range r;

	return (type == 2 || type == 4) && um_ranges_find(at, &r);
}

static void read_copy(struct um_graph *g, struct um_graph_node *n, const struct um_copy_3d *p)
{
	add_address(g, p->to_device ? p->to_device : (uintptr_t)p->to_host, UMADV_ACCESS_UPDATE);
	add_address(g, p->from_device ? p->from_device : (uintptr_t)p->from_host, UMADV_ACCESS_READ);
	n->launch.copy = *p;
	if (!is_on_device(p->to_type, p->to_device) || !is_on_device(p->from_type, p->from_device))
		g->whole = 1;
}

static void read_set(struct um_graph *g, struct um_graph_node *n, const struct um_graph_set *p)
{
	add_address(g, p->at, UMADV_ACCESS_UPDATE);
	n->launch.set = *p;
}

static void read_params(struct um_graph *g, struct um_graph_node *n, const void *params)
{
	if (n->type == UM_GRAPH_KERNEL)
		read_kernel(g, n, params);
	else if (n->type == UM_GRAPH_COPY)
		read_copy(g, n, params);
	else
		read_set(g, n, params);
}

/* Reads what the node does now, but not the nodes of a graph in it. */
static void read_node(struct um_graph *g, struct um_graph_node *n, void *node)
{
	union {
		struct um_graph_kernel kernel;
		struct um_graph_set set;
		struct um_copy_3d copy;
	} params = {0};
	int (*ask)(void *, void *) = NULL;

	n->type = -1;
	if (!um_real.cuGraphNodeGetType || um_real.cuGraphNodeGetType(node, &n->type))
		n->type = -1;
	if (n->type == UM_GRAPH_KERNEL)
		ask = um_real.cuGraphKernelNodeGetParams;
	else if (n->type == UM_GRAPH_COPY)
		ask = um_real.cuGraphMemcpyNodeGetParams;
	else if (n->type == UM_GRAPH_SET)
		ask = um_real.cuGraphMemsetNodeGetParams;
	else if (n->type != UM_GRAPH_EMPTY && n->type != UM_GRAPH_CHILD)
		g->whole = 1;
	if (ask && !ask(node, &params))
		read_params(g, n, &params);
	else if (ask || n->type < 0 || n->type > UM_GRAPH_FREE) /* conditional nodes and others */
		g->unread = 1;
	if (n->type == UM_GRAPH_KERNEL && has_attributes(node))
		g->whole = 1;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* What was found from `first` on are the addresses of that node. */
static void add_node(struct um_graph *g, struct um_graph_node *n, const void *handle, size_t first)
{
	n->handle = handle;
	n->first = first;
	n->n = n->room = g->found.n - first;
	if (um_vec_push(&g->node, *n)) {
		g->unread = 1;
		free(n->buffer);
	}
}

/* NULL: it cannot be read, or has no nodes. The caller frees the list. */
static void **nodes_of(struct um_graph *g, void *graph, size_t *n)
{
	void **nodes = NULL;
	int ok = um_real.cuGraphGetNodes && !um_real.cuGraphGetNodes(graph, NULL, n);

	if (ok && *n) {
		nodes = malloc(*n * sizeof *nodes);
		ok = nodes && !um_real.cuGraphGetNodes(graph, nodes, n);
	}
	if (ok)
		return nodes;
	g->unread = 1;
	*n = 0;
	free(nodes);
	return NULL;
}

/* The graph inside of a node. NULL: it cannot be read. */
static void *child_of(struct um_graph *g, void *node)
{
	void *child = NULL;

	if (um_real.cuGraphChildGraphNodeGetGraph && !um_real.cuGraphChildGraphNodeGetGraph(node, &child))
		return child;
	g->unread = 1;
	return NULL;
}

struct place {
	const void *node;
	size_t at;
};

static int by_node(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

static size_t place_of(const struct place *places, size_t n, const void *node)
{
	const struct place key = {node, 0}, *found = bsearch(&key, places, n, sizeof *places, by_node);

	return found ? found->at : SIZE_MAX;
}

/* Does each edge lead to a later one of the nodes? An edge with data is an error of this form of the call. */
static int is_in_order(void *graph, void **nodes, size_t n)
{
	size_t n_edges = 0;
	void **from = NULL;
	struct place *places = NULL;
	int ok = um_real.cuGraphGetEdges && !um_real.cuGraphGetEdges(graph, NULL, NULL, &n_edges);

	if (!ok || !n_edges)
		return ok;
	from = malloc(n_edges * 2 * sizeof *from);
	places = malloc(n * sizeof *places);
	ok = from && places && !um_real.cuGraphGetEdges(graph, from, from + n_edges, &n_edges);
	for (size_t i = 0; ok && i < n; i++)
		places[i] = (struct place){nodes[i], i};
	if (ok)
		qsort(places, n, sizeof *places, by_node);
	for (size_t i = 0; ok && i < n_edges; i++)
		ok = place_of(places, n, from[i]) < place_of(places, n, from[n_edges + i]);
	free(from);
	free(places);
	return ok;
}

static void read_graph(struct um_graph *g, void *graph, int depth)
{
	size_t n = 0;
	void **nodes = depth < DEEPEST && graph ? nodes_of(g, graph, &n) : NULL;

	for (size_t i = 0; i < n; i++) {
		struct um_graph_node node = {0};
		size_t first = g->found.n;

		read_node(g, &node, nodes[i]);
		if (node.type == UM_GRAPH_CHILD)
			read_graph(g, child_of(g, nodes[i]), depth + 1);
		else
			add_node(g, &node, nodes[i], first);
	}
	if (depth == DEEPEST)
		g->unread = 1;
	if (n && !g->whole && !is_in_order(graph, nodes, n))
		g->whole = 1;
	free(nodes);
}

struct um_graph *um_graph_new(const void *handle, void *graph, unsigned long long flags)
{
	struct um_graph *g = calloc(1, sizeof *g);

	if (!g)
		return NULL;
	g->handle = handle;
	g->flags = flags;
	g->whole = (flags & DEVICE_LAUNCH) != 0;
	if (!um_real.cuCtxGetCurrent || um_real.cuCtxGetCurrent(&g->context))
		g->whole = 1;
	read_graph(g, graph, 0);
	um_graph_join(g);
	return g;
}

void um_graph_free(struct um_graph *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->node.n; i++)
		free(g->node.at[i].buffer);
	um_vec_fini(&g->found);
	um_vec_fini(&g->node);
	um_vec_fini(&g->use);
	free(g);
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static struct um_graph_node *find_node(struct um_graph *g, const void *handle)
{
	for (size_t i = 1; i <= g->node.n; i++) {
		size_t at = (g->latest + i) % g->node.n;

		if (g->node.at[at].handle == handle) {
			g->latest = at;
			return &g->node.at[at];
		}
	}
	return NULL;
}

/* A node by that handle does what `is` says; what was found from `first` on are its addresses. After an update by
 * another graph the handle may be unknown: which node it is cannot be said. */
static void replace(struct um_graph *g, const void *handle, struct um_graph_node *is, size_t first)
{
	struct um_graph_node *was = find_node(g, handle);
	size_t n = g->found.n - first;

	g->changed = 1;
	if (!was) {
		g->whole = 1;
		add_node(g, is, handle, first);
		return;
	}
	free(was->buffer);
	was->buffer = is->buffer;
	was->bytes = is->bytes;
	was->launch = is->launch;
	if (n > was->room) {
		was->first = first;
		was->n = was->room = n;
	} else {
		if (n)
			memcpy(&g->found.at[was->first], &g->found.at[first], n * sizeof *g->found.at);
		was->n = n;
		g->found.n = first;
	}
}

/* The nodes of the graph `was` do what those of `is` do: both have the same nodes in the same order. */
static void replace_graph(struct um_graph *g, void *was, void *is, int depth)
{
	size_t n_was = 0, n_is = 0;
	void **from = was && depth < DEEPEST ? nodes_of(g, was, &n_was) : NULL;
	void **to = is && depth < DEEPEST ? nodes_of(g, is, &n_is) : NULL;

	for (size_t i = 0; i < n_was && i < n_is; i++) {
		struct um_graph_node node = {0};
		size_t first = g->found.n;

		read_node(g, &node, to[i]);
		if (node.type == UM_GRAPH_CHILD)
			replace_graph(g, child_of(g, from[i]), child_of(g, to[i]), depth + 1);
		else
			replace(g, from[i], &node, first);
	}
	free(from);
	free(to);
}

void um_graph_change(struct um_graph *g, void *node, int type, const void *params)
{
	struct um_graph_node is = {.type = type};
	size_t first = g->found.n;

	if (type == UM_GRAPH_CHILD) {
		replace_graph(g, child_of(g, node), (void *)(uintptr_t)params, 0);
	} else if (type >= UM_GRAPH_KERNEL && type <= UM_GRAPH_SET) {
		read_params(g, &is, params);
		replace(g, node, &is, first);
	}
}

void um_graph_enable(struct um_graph *g, const void *node, int on)
{
	struct um_graph_node *n = find_node(g, node);

	if (n)
		n->disabled = !on;
	else
		g->whole = 1;
	g->changed = 1;
}
