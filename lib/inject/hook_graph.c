/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_graph.c - launches of graphs as ops
 *
 * When a graph is instantiated, its nodes are read, however they came into the graph: captured or added. Their
 * addresses are kept by node, since a program may change the parameters of one (XLA does in each step, as its buffers
 * are others); a launch is one op that uses the tensors that lie there then.
 */
#include "inject/driver.h"
#include "inject/launch.h"

#include "base/vec.h"

#include <pthread.h>
#include <stdlib.h>

/* CUgraphNodeType; nodes of WAIT to FREE use no memory of the program. */
enum node_type { KERNEL, COPY, SET, HOST, GRAPH, EMPTY, WAIT, RECORD, SIGNAL, AWAIT, ALLOCATE, FREE };
#define DEEPEST 16 /* graphs inside of graphs */

struct kernel_params { /* CUDA_KERNEL_NODE_PARAMS_v2 and _v3 */
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context;
	void *more[4];
};

struct set_params { /* CUDA_MEMSET_NODE_PARAMS */
	uint64_t at;
	size_t pitch;
	unsigned value, size;
	size_t width, rows;
};

struct um_node_params { /* CUgraphNodeParams */
	int type, reserved[3];
	union {
		struct kernel_params kernel;
		struct set_params set;
		void *child;
		struct {
			int flags, reserved;
			void *context;
			struct um_copy_3d params;
		} copy;
	} of;
};

struct address {
	uint64_t at;
	enum umadv_access access;
};

/* A node, of the graph or of one inside of it, and where its addresses are. */
struct node {
	const void *handle;
	size_t first, n, room;
	int disabled;
};

/* An instantiated graph. */
struct exec {
	struct exec *next;
	const void *handle;
	UM_VEC(struct address) found; /* of the nodes */
	UM_VEC(struct node) node; /* in the graph's order */
	size_t latest; /* the node that was changed last: programs change them in their order */
	UM_VEC(struct address) use; /* the lowest address of each tensor, with all accesses */
	int changed; /* `use` is not up to date */
	int unread; /* some nodes could not be read */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and its members */
static struct exec *execs;

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The address, if it is in a tensor. */
static void add_address(struct exec *e, uint64_t addr, enum umadv_access access)
{
	struct um_range r;

	if (um_ranges_find(addr, &r) && um_range_is_managed(r.kind) &&
	    um_vec_push(&e->found, ((struct address){addr, access})))
		e->unread = 1;
}

static void add_use(struct exec *e, const struct address *a)
{
	struct um_range r;

	if (!um_ranges_find(a->at, &r))
		return;
	for (size_t i = 0; i < e->use.n; i++) {
		struct address *was = &e->use.at[i];

		if (was->at - r.at >= r.bytes)
			continue;
		was->access |= a->access;
		if (a->at < was->at)
			was->at = a->at;
		return;
	}
	if (um_vec_push(&e->use, *a))
		e->unread = 1;
}

static void join_uses(struct exec *e)
{
	um_vec_clear(&e->use);
	for (size_t i = 0; i < e->node.n; i++)
		for (size_t k = 0; k < e->node.at[i].n && !e->node.at[i].disabled; k++)
			add_use(e, &e->found.at[e->node.at[i].first + k]);
	e->changed = 0;
}

static void read_kernel(struct exec *e, const struct kernel_params *p)
{
	void *handle = p->function ? p->function : p->kernel;
	struct um_inject_uses uses;

	um_inject_uses_init(&uses);
	if (!um_launch_scan(&uses, handle ? um_function_find(handle) : NULL, p->params, p->extra, 0) || uses.left_out)
		e->unread = 1;
	for (unsigned i = 0; i < uses.n; i++)
		add_address(e, (uintptr_t)uses.at[i].ptr, uses.at[i].access);
}

static void read_copy(struct exec *e, const struct um_copy_3d *p)
{
	add_address(e, p->to_device ? p->to_device : (uintptr_t)p->to_host, UMADV_ACCESS_UPDATE);
	add_address(e, p->from_device ? p->from_device : (uintptr_t)p->from_host, UMADV_ACCESS_READ);
}

/* The addresses of a node, whose type is returned; those of a graph's nodes are left out. */
static int read_params(struct exec *e, void *node)
{
	struct kernel_params kernel = {0};
	struct um_copy_3d copy = {0};
	struct set_params set = {0};
	int type = -1, ok = 1;

	if (!um_real.cuGraphNodeGetType || um_real.cuGraphNodeGetType(node, &type)) {
		ok = 0;
	} else if (type == KERNEL) {
		ok = um_real.cuGraphKernelNodeGetParams && !um_real.cuGraphKernelNodeGetParams(node, &kernel);
		if (ok)
			read_kernel(e, &kernel);
	} else if (type == COPY) {
		ok = um_real.cuGraphMemcpyNodeGetParams && !um_real.cuGraphMemcpyNodeGetParams(node, &copy);
		if (ok)
			read_copy(e, &copy);
	} else if (type == SET) {
		ok = um_real.cuGraphMemsetNodeGetParams && !um_real.cuGraphMemsetNodeGetParams(node, &set);
		if (ok)
			add_address(e, set.at, UMADV_ACCESS_UPDATE);
	} else if (type > FREE) {
		ok = 0; /* conditional nodes and others */
	}
	if (!ok)
		e->unread = 1;
	return type;
}

/* What was found from `first` on are the addresses of that node. */
static void add_node(struct exec *e, const void *handle, size_t first)
{
	size_t n = e->found.n - first;

	if (um_vec_push(&e->node, ((struct node){handle, first, n, n, 0})))
		e->unread = 1;
}

/* NULL: it cannot be read, or has no nodes. The caller frees the list. */
static void **nodes_of(struct exec *e, void *graph, size_t *n)
{
	void **nodes = NULL;
	int ok = um_real.cuGraphGetNodes && !um_real.cuGraphGetNodes(graph, NULL, n);

	if (ok && *n) {
		nodes = malloc(*n * sizeof *nodes);
		ok = nodes && !um_real.cuGraphGetNodes(graph, nodes, n);
	}
	if (ok)
		return nodes;
	e->unread = 1;
	*n = 0;
	free(nodes);
	return NULL;
}

/* The graph inside of a node. NULL: it cannot be read. */
static void *child_of(struct exec *e, void *node)
{
	void *child = NULL;

	if (um_real.cuGraphChildGraphNodeGetGraph && !um_real.cuGraphChildGraphNodeGetGraph(node, &child))
		return child;
	e->unread = 1;
	return NULL;
}

static void read_graph(struct exec *e, void *graph, int depth)
{
	size_t n = 0;
	void **nodes = depth < DEEPEST && graph ? nodes_of(e, graph, &n) : NULL;

	for (size_t i = 0; i < n; i++) {
		size_t first = e->found.n;

		if (read_params(e, nodes[i]) == GRAPH)
			read_graph(e, child_of(e, nodes[i]), depth + 1);
		else
			add_node(e, nodes[i], first);
	}
	if (depth == DEEPEST)
		e->unread = 1;
	free(nodes);
}

/* --- instantiated graphs ------------------------------------------------------------------------------------------ */

static struct exec **find(const void *handle)
{
	struct exec **e = &execs;

	while (*e && (*e)->handle != handle)
		e = &(*e)->next;
	return e;
}

static void drop(const void *handle)
{
	struct exec **at, *e;

	pthread_mutex_lock(&lock);
	at = find(handle);
	e = *at;
	if (e)
		*at = e->next;
	pthread_mutex_unlock(&lock);
	if (e) {
		um_vec_fini(&e->found);
		um_vec_fini(&e->node);
		um_vec_fini(&e->use);
	}
	free(e);
}

/* The graph was instantiated, or an instantiated one updated by it. */
static int keep(int err, const void *handle, void *graph)
{
	struct exec *e;

	if (err || !um_session_active())
		return err;
	drop(handle);
	e = calloc(1, sizeof *e);
	if (!e)
		return 0;
	e->handle = handle;
	read_graph(e, graph, 0);
	join_uses(e);
	pthread_mutex_lock(&lock);
	e->next = execs;
	execs = e;
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuGraphInstantiate(void **exec, void *graph, void **node, char *log, size_t size)
{
	int err = UM_PASS(cuGraphInstantiate, (exec, graph, node, log, size));

	return keep(err, err ? NULL : *exec, graph);
}

int cuGraphInstantiate_v2(void **exec, void *graph, void **node, char *log, size_t size)
{
	int err = UM_PASS(cuGraphInstantiate_v2, (exec, graph, node, log, size));

	return keep(err, err ? NULL : *exec, graph);
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
	int err = UM_PASS(cuGraphInstantiateWithFlags, (exec, graph, flags));

	return keep(err, err ? NULL : *exec, graph);
}

int cuGraphInstantiateWithParams(void **exec, void *graph, void *params)
{
	int err = UM_PASS(cuGraphInstantiateWithParams, (exec, graph, params));

	return keep(err, err ? NULL : *exec, graph);
}

int cuGraphInstantiateWithParams_ptsz(void **exec, void *graph, void *params)
{
	int err = UM_PASS(cuGraphInstantiateWithParams_ptsz, (exec, graph, params));

	return keep(err, err ? NULL : *exec, graph);
}

int cuGraphExecUpdate(void *exec, void *graph, void **node, int *result)
{
	return keep(UM_PASS(cuGraphExecUpdate, (exec, graph, node, result)), exec, graph);
}

int cuGraphExecUpdate_v2(void *exec, void *graph, void *result)
{
	return keep(UM_PASS(cuGraphExecUpdate_v2, (exec, graph, result)), exec, graph);
}

int cuGraphExecDestroy(void *exec)
{
	if (um_session_active())
		drop(exec);
	return UM_PASS(cuGraphExecDestroy, (exec));
}

static struct node *find_node(struct exec *e, const void *handle)
{
	for (size_t i = 1; i <= e->node.n; i++) {
		size_t at = (e->latest + i) % e->node.n;

		if (e->node.at[at].handle == handle) {
			e->latest = at;
			return &e->node.at[at];
		}
	}
	return NULL;
}

/* What was found from `first` on are the addresses of that node now. */
static void replace(struct exec *e, const void *handle, size_t first)
{
	struct node *was = find_node(e, handle);
	size_t n = e->found.n - first;

	e->changed = 1;
	if (!was) {
		add_node(e, handle, first);
	} else if (n > was->room) {
		was->first = first;
		was->n = was->room = n;
	} else {
		if (n)
			memcpy(&e->found.at[was->first], &e->found.at[first], n * sizeof *e->found.at);
		was->n = n;
		e->found.n = first;
	}
}

/* The nodes of the graph `was` have the parameters of those of `is`: both have the same nodes in the same order. */
static void replace_graph(struct exec *e, void *was, void *is, int depth)
{
	size_t n_was = 0, n_is = 0;
	void **from = was && depth < DEEPEST ? nodes_of(e, was, &n_was) : NULL;
	void **to = is && depth < DEEPEST ? nodes_of(e, is, &n_is) : NULL;

	for (size_t i = 0; i < n_was && i < n_is; i++) {
		size_t first = e->found.n;

		if (read_params(e, to[i]) == GRAPH)
			replace_graph(e, child_of(e, from[i]), child_of(e, to[i]), depth + 1);
		else
			replace(e, from[i], first);
	}
	free(from);
	free(to);
}

/* One node of an instantiated graph has new parameters; those of a graph are a graph. */
static int change(int err, const void *handle, void *node, int type, const void *params)
{
	struct exec *e;
	size_t first;

	if (err || !params || type > GRAPH || type == HOST || !um_session_active())
		return err;
	pthread_mutex_lock(&lock);
	e = *find(handle);
	first = e ? e->found.n : 0;
	if (e && type == KERNEL)
		read_kernel(e, params);
	else if (e && type == COPY)
		read_copy(e, params);
	else if (e && type == SET)
		add_address(e, ((const struct set_params *)params)->at, UMADV_ACCESS_UPDATE);
	else if (e)
		replace_graph(e, child_of(e, node), (void *)(uintptr_t)params, 0);
	if (e && type != GRAPH)
		replace(e, node, first);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Parameters of the first form end before `kernel`. */
int cuGraphExecKernelNodeSetParams(void *exec, void *node, const void *params)
{
	int err = UM_PASS(cuGraphExecKernelNodeSetParams, (exec, node, params));
	struct kernel_params p = {0};

	if (err || !params)
		return err;
	memcpy(&p, params, offsetof(struct kernel_params, kernel));
	return change(err, exec, node, KERNEL, &p);
}

int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const void *params)
{
	return change(UM_PASS(cuGraphExecKernelNodeSetParams_v2, (exec, node, params)), exec, node, KERNEL, params);
}

int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const void *params, void *context)
{
	return change(UM_PASS(cuGraphExecMemcpyNodeSetParams, (exec, node, params, context)), exec, node, COPY, params);
}

int cuGraphExecMemsetNodeSetParams(void *exec, void *node, const void *params, void *context)
{
	return change(UM_PASS(cuGraphExecMemsetNodeSetParams, (exec, node, params, context)), exec, node, SET, params);
}

int cuGraphExecChildGraphNodeSetParams(void *exec, void *node, void *graph)
{
	return change(UM_PASS(cuGraphExecChildGraphNodeSetParams, (exec, node, graph)), exec, node, GRAPH, graph);
}

int cuGraphExecNodeSetParams(void *exec, void *node, struct um_node_params *p)
{
	int err = UM_PASS(cuGraphExecNodeSetParams, (exec, node, p));

	if (err || !p)
		return err;
	return change(0, exec, node, p->type,
		      p->type == GRAPH	? p->of.child
		      : p->type == COPY ? (const void *)&p->of.copy.params
					: (const void *)&p->of);
}

int cuGraphNodeSetEnabled(void *exec, void *node, unsigned on)
{
	int err = UM_PASS(cuGraphNodeSetEnabled, (exec, node, on));
	struct exec *e;
	struct node *n;

	if (err || !um_session_active())
		return err;
	pthread_mutex_lock(&lock);
	e = *find(exec);
	n = e ? find_node(e, node) : NULL;
	if (n) {
		n->disabled = !on;
		e->changed = 1;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static void announce(const void *handle, void *stream)
{
	struct address at[UM_INJECT_USES];
	struct um_inject_uses uses;
	struct exec *e;
	size_t n = 0;
	int unread;

	if (!um_driver_ready() || !um_session_active() || um_session_captures(stream))
		return;
	atomic_fetch_add_explicit(&um_inject_counts.launches, 1, memory_order_relaxed);
	if (!um_session_pressed())
		return;
	um_inject_uses_init(&uses);
	if (!um_inject_uses_here(&uses))
		return;
	pthread_mutex_lock(&lock);
	e = *find(handle);
	if (e && e->changed)
		join_uses(e);
	unread = !e || e->unread;
	for (; e && n < e->use.n && n < UM_INJECT_USES; n++)
		at[n] = e->use.at[n];
	uses.left_out = e && n < e->use.n;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < n; i++)
		um_inject_use(&uses, at[i].at, at[i].access);
	if (unread) {
		atomic_fetch_add_explicit(&um_inject_counts.launches_unseen, 1, memory_order_relaxed);
		atomic_fetch_or(&um_inject_reasons, UM_REASON_GRAPH);
	}
	if (uses.left_out)
		atomic_fetch_add_explicit(&um_inject_counts.partial, 1, memory_order_relaxed);
	if (uses.n)
		um_session_op(uses.device, stream, "graph", uses.at, uses.n);
}

int cuGraphLaunch(void *exec, void *stream)
{
	announce(exec, stream);
	return UM_PASS(cuGraphLaunch, (exec, stream));
}

int cuGraphLaunch_ptsz(void *exec, void *stream)
{
	announce(exec, stream ? stream : (void *)2);
	return UM_PASS(cuGraphLaunch_ptsz, (exec, stream));
}
