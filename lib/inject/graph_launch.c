/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the nodes is one that their edges allow, and the work of a stream is done in order, so that results are
 * those of the graph. Nodes that could run at the same time run one after the other. The hooks of this library are
 * called, so that each node is an op as if the program had launched it.
 */
#include "inject/graph_launch.h"

#include "inject/driver.h"
#include "inject/session.h"
#include "inject/settings.h"

#define NO_TIMING 2u

/* NULL: there is no event yet, and it cannot be created now. */
static void *event_of(struct um_graph *g)
{
	if (!g->done && !atomic_load(&um_session_state.captures) && um_real.cuEventCreate &&
	    um_real.cuEventCreate(&g->done, NO_TIMING))
		g->done = NULL;
	return g->done;
}

/* What the driver orders by itself when it launches a graph: that a launch comes after the previous one of this graph,
 * also in another stream. A launch as it is comes after all of them, and is followed by the event. */
void um_graph_launch_begins(struct um_graph *g, void *stream)
{
	if (g->done && um_real.cuStreamWaitEvent && um_real.cuStreamWaitEvent(stream, g->done, 0))
		g->whole = 1;
}

void um_graph_launch_ends(struct um_graph *g, void *stream)
{
	if (!g->done && (g->whole || !event_of(g)))
		return;
	g->unmarked = !um_real.cuEventRecord || um_real.cuEventRecord(g->done, stream);
}

/* The driver ends a graph and what it retains after its launches: nodes that were launched are waited for. */
void um_graph_launch_end(struct um_graph *g)
{
	if (g->done && g->by_nodes && !atomic_load(&um_session_state.captures) && um_real.cuEventSynchronize)
		um_real.cuEventSynchronize(g->done);
	if (g->done && um_real.cuEventDestroy)
		um_real.cuEventDestroy(g->done);
	g->done = NULL;
}

/* Does the thread's device have less memory than the graph uses? */
static int is_too_large(const struct um_graph *g)
{
	struct um_inject_uses uses;

	um_inject_uses_init(&uses);
	return um_inject_uses_here(&uses) && g->bytes > atomic_load(&uses.device->budget);
}

static int is_by_nodes(struct um_graph *g)
{
	void *context = NULL;

	if (g->whole || g->unread || g->unmarked || !um_settings_launches_nodes() ||
	    (um_session_asks() & UM_SESSION_SEVERAL) || !is_too_large(g))
		return 0;
	return !um_real.cuCtxGetCurrent(&context) && context && context == g->context && event_of(g);
}

static int launch_kernel(const struct um_graph_node *n, void *stream)
{
	const struct um_graph_kernel *k = &n->launch.kernel;
	size_t bytes = n->bytes;
	void *extra[] = {(void *)1, n->buffer, (void *)2, &bytes, NULL};

	return cuLaunchKernel(k->function, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2],
			      k->shared, stream, NULL, n->buffer ? extra : NULL);
}

static int launch_copy(const struct um_graph_node *n, void *stream)
{
	const struct um_copy_3d *c = &n->launch.copy;

	if (c->height > 1 || c->depth > 1 || c->from_y || c->from_z || c->to_y || c->to_z)
		return cuMemcpy3DAsync_v2(c, stream);
	return cuMemcpyDtoDAsync_v2(c->to_device + c->to_x, c->from_device + c->from_x, c->width, stream);
}

static int launch_set(const struct um_graph_node *n, void *stream)
{
	const struct um_graph_set *s = &n->launch.set;

	if (s->rows > 1) {
		if (s->size == 1)
			return cuMemsetD2D8Async(s->at, s->pitch, (unsigned char)s->value, s->width, s->rows, stream);
		if (s->size == 2)
			return cuMemsetD2D16Async(s->at, s->pitch, (unsigned short)s->value, s->width, s->rows, stream);
		return cuMemsetD2D32Async(s->at, s->pitch, s->value, s->width, s->rows, stream);
	}
	if (s->size == 1)
		return cuMemsetD8Async(s->at, (unsigned char)s->value, s->width, stream);
	if (s->size == 2)
		return cuMemsetD16Async(s->at, (unsigned short)s->value, s->width, stream);
	return cuMemsetD32Async(s->at, s->value, s->width, stream);
}

static int launch_node(const struct um_graph_node *n, void *stream)
{
	switch (n->type) {
	case UM_GRAPH_KERNEL:
		return launch_kernel(n, stream);
	case UM_GRAPH_COPY:
		return launch_copy(n, stream);
	case UM_GRAPH_SET:
		return launch_set(n, stream);
	default:
		return 0; /* an empty node */
	}
}

int um_graph_launch_nodes(struct um_graph *g, void *stream, int *err)
{
	int launched = 0;

	if (!is_by_nodes(g))
		return 0;
	um_graph_launch_begins(g, stream);
	for (size_t i = 0; i < g->node.n && !g->whole; i++) {
		const struct um_graph_node *n = &g->node.at[i];

		if (n->disabled || n->type == UM_GRAPH_EMPTY)
			continue;
		*err = launch_node(n, stream);
		if (*err)
			g->whole = 1;
		else
			launched = g->by_nodes = 1;
	}
	if (g->whole && !launched)
		return 0;
	um_graph_launch_ends(g, stream);
	if (launched && !g->whole)
		*err = 0;
	return launched;
}
