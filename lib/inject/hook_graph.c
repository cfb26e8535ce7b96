/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_graph.c - launches of graphs as ops
 *
 * When a graph is instantiated, its nodes are read, however they came into the graph: captured or added. A launch is
 * one op with the tensors that they use then; if these are more than the budget, the nodes are launched instead.
 */
#include "inject/driver.h"
#include "inject/graph_launch.h"
#include "inject/session.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and its members */
static struct um_graph *graphs;

/* --- instantiated graphs ------------------------------------------------------------------------------------------ */

static struct um_graph **find(const void *handle)
{
	struct um_graph **e = &graphs;

	while (*e && (*e)->handle != handle)
		e = &(*e)->next;
	return e;
}

/* Takes it out of the list. NULL: it is not there. */
static struct um_graph *take(const void *handle)
{
	struct um_graph **at, *g;

	pthread_mutex_lock(&lock);
	at = find(handle);
	g = *at;
	if (g)
		*at = g->next;
	pthread_mutex_unlock(&lock);
	return g;
}

static void drop(struct um_graph *g)
{
	if (g)
		um_graph_launch_end(g);
	um_graph_free(g);
}

/* The graph was instantiated. */
static int keep(int err, const void *handle, void *graph, unsigned long long flags)
{
	struct um_graph *g;

	if (err || !um_session_active())
		return err;
	drop(take(handle));
	g = um_graph_new(handle, graph, flags);
	if (!g)
		return 0;
	pthread_mutex_lock(&lock);
	g->next = graphs;
	graphs = g;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* An instantiated graph was updated by another graph. */
static int update(int err, const void *handle, void *graph)
{
	struct um_graph *was, *g;

	if (err || !um_session_active())
		return err;
	was = take(handle);
	g = um_graph_new(handle, graph, was ? was->flags : 0);
	if (was && g) {
		g->done = was->done;
		g->by_nodes = was->by_nodes;
		g->unmarked = was->unmarked;
		was->done = NULL;
	}
	drop(was);
	if (!g)
		return 0;
	pthread_mutex_lock(&lock);
	g->next = graphs;
	graphs = g;
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuGraphInstantiate(void **exec, void *graph, void **node, char *log, size_t size)
{
	int err = UM_PASS(cuGraphInstantiate, (exec, graph, node, log, size));

	return keep(err, err ? NULL : *exec, graph, 0);
}

int cuGraphInstantiate_v2(void **exec, void *graph, void **node, char *log, size_t size)
{
	int err = UM_PASS(cuGraphInstantiate_v2, (exec, graph, node, log, size));

	return keep(err, err ? NULL : *exec, graph, 0);
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
	int err = UM_PASS(cuGraphInstantiateWithFlags, (exec, graph, flags));

	return keep(err, err ? NULL : *exec, graph, flags);
}

int cuGraphInstantiateWithParams(void **exec, void *graph, void *params)
{
	int err = UM_PASS(cuGraphInstantiateWithParams, (exec, graph, params));

	return keep(err, err ? NULL : *exec, graph, err ? 0 : *(const unsigned long long *)params);
}

int cuGraphInstantiateWithParams_ptsz(void **exec, void *graph, void *params)
{
	int err = UM_PASS(cuGraphInstantiateWithParams_ptsz, (exec, graph, params));

	return keep(err, err ? NULL : *exec, graph, err ? 0 : *(const unsigned long long *)params);
}

int cuGraphExecUpdate(void *exec, void *graph, void **node, int *result)
{
	return update(UM_PASS(cuGraphExecUpdate, (exec, graph, node, result)), exec, graph);
}

int cuGraphExecUpdate_v2(void *exec, void *graph, void *result)
{
	return update(UM_PASS(cuGraphExecUpdate_v2, (exec, graph, result)), exec, graph);
}

int cuGraphExecDestroy(void *exec)
{
	if (um_session_active())
		drop(take(exec));
	return UM_PASS(cuGraphExecDestroy, (exec));
}

/* One node of an instantiated graph has new parameters; those of a graph are a graph. */
static int change(int err, const void *handle, void *node, int type, const void *params)
{
	struct um_graph *g;

	if (err || !params || !um_session_active())
		return err;
	pthread_mutex_lock(&lock);
	g = *find(handle);
	if (g)
		um_graph_change(g, node, type, params);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Parameters of the first form end before `kernel`. */
int cuGraphExecKernelNodeSetParams(void *exec, void *node, const void *params)
{
	int err = UM_PASS(cuGraphExecKernelNodeSetParams, (exec, node, params));
	struct um_graph_kernel p = {0};

	if (err || !params)
		return err;
	memcpy(&p, params, offsetof(struct um_graph_kernel, kernel));
	return change(err, exec, node, UM_GRAPH_KERNEL, &p);
}

int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const void *params)
{
	return change(UM_PASS(cuGraphExecKernelNodeSetParams_v2, (exec, node, params)), exec, node, UM_GRAPH_KERNEL,
		      params);
}

int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const void *params, void *context)
{
	return change(UM_PASS(cuGraphExecMemcpyNodeSetParams, (exec, node, params, context)), exec, node, UM_GRAPH_COPY,
		      params);
}

int cuGraphExecMemsetNodeSetParams(void *exec, void *node, const void *params, void *context)
{
	return change(UM_PASS(cuGraphExecMemsetNodeSetParams, (exec, node, params, context)), exec, node, UM_GRAPH_SET,
		      params);
}

int cuGraphExecChildGraphNodeSetParams(void *exec, void *node, void *graph)
{
	return change(UM_PASS(cuGraphExecChildGraphNodeSetParams, (exec, node, graph)), exec, node, UM_GRAPH_CHILD,
		      graph);
}

int cuGraphExecNodeSetParams(void *exec, void *node, struct um_node_params *p)
{
	int err = UM_PASS(cuGraphExecNodeSetParams, (exec, node, p));

	if (err || !p)
		return err;
	return change(0, exec, node, p->type,
		      p->type == UM_GRAPH_CHILD	 ? p->of.child
		      : p->type == UM_GRAPH_COPY ? (const void *)&p->of.copy.params
						 : (const void *)&p->of);
}

int cuGraphNodeSetEnabled(void *exec, void *node, unsigned on)
{
	int err = UM_PASS(cuGraphNodeSetEnabled, (exec, node, on));
	struct um_graph *g;

	if (err || !um_session_active())
		return err;
	pthread_mutex_lock(&lock);
	g = *find(exec);
	if (g)
		um_graph_enable(g, node, on != 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* The launch as one op. */
static void announce(const struct um_graph *g, void *stream)
{
	struct um_inject_uses uses;

	um_inject_uses_init(&uses);
	if (!um_inject_uses_here(&uses))
		return;
	for (size_t i = 0; g && i < g->use.n; i++)
		um_inject_use(&uses, g->use.at[i].at, g->use.at[i].access);
	if (!g || g->unread) {
		atomic_fetch_add_explicit(&um_inject_counts.launches_unseen, 1, memory_order_relaxed);
		atomic_fetch_or(&um_inject_reasons, UM_REASON_GRAPH);
	}
	if (uses.left_out)
		atomic_fetch_add_explicit(&um_inject_counts.partial, 1, memory_order_relaxed);
	if (uses.n)
		um_session_op(uses.device, stream, "graph", uses.at, uses.n);
}

/* `whole`: the driver's function; `named`: the stream as other functions know it. */
static int launch(int (*whole)(void *exec, void *stream), void *exec, void *stream, void *named)
{
	struct um_graph *g;
	int err;

	if (!um_driver_ready() || !whole)
		return UM_CUDA_SYMBOL_MISSING;
	if (!um_session_active() || um_session_captures(named))
		return whole(exec, stream);
	/* A program does not launch a graph while another thread changes it, or ends it. */
	pthread_mutex_lock(&lock);
	g = *find(exec);
	pthread_mutex_unlock(&lock);
	if (!um_session_pressed()) {
		atomic_fetch_add_explicit(&um_inject_counts.launches, 1, memory_order_relaxed);
		if (g)
			g->unmarked = 1;
		return whole(exec, stream);
	}
	if (g && g->changed)
		um_graph_join(g);
	if (g && um_graph_launch_nodes(g, named, &err))
		return err;
	atomic_fetch_add_explicit(&um_inject_counts.launches, 1, memory_order_relaxed);
	announce(g, named);
	if (g)
		um_graph_launch_begins(g, named);
	err = whole(exec, stream);
	if (g)
		um_graph_launch_ends(g, named);
	return err;
}

int cuGraphLaunch(void *exec, void *stream)
{
	return launch(um_driver_ready() ? um_real.cuGraphLaunch : NULL, exec, stream, stream);
}

int cuGraphLaunch_ptsz(void *exec, void *stream)
{
	return launch(um_driver_ready() ? um_real.cuGraphLaunch_ptsz : NULL, exec, stream, stream ? stream : (void *)2);
}
