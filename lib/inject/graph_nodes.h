/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_nodes.h - an instantiated graph: its nodes, what they use, and how to launch each of them
 *
 * in    a graph of the driver when it is instantiated; changes of single nodes
 * out   addresses in tensors, by node and together; copies of the nodes' parameters, in an order to launch them
 * owns  the copies
 *
 * Addresses are kept by node, since a program may change the parameters of one (XLA does in each step, as its buffers
 * are others). Not thread-safe: neither is an instantiated graph.
 */
#ifndef UM_INJECT_GRAPH_NODES_H
#define UM_INJECT_GRAPH_NODES_H

#include "inject/hooks.h"

#include "base/vec.h"
#include "umadvise.h"

/* CUgraphNodeType; nodes of WAIT to FREE use no memory of the program. */
enum um_graph_type {
	UM_GRAPH_KERNEL,
	UM_GRAPH_COPY,
	UM_GRAPH_SET,
	UM_GRAPH_HOST,
	UM_GRAPH_CHILD,
	UM_GRAPH_EMPTY,
	UM_GRAPH_FREE = 11
};

struct um_graph_kernel { /* CUDA_KERNEL_NODE_PARAMS_v2 and _v3 */
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context;
	void *more[4];
};

struct um_graph_set { /* CUDA_MEMSET_NODE_PARAMS */
	uint64_t at;
	size_t pitch;
	unsigned value, size;
	size_t width, rows;
};

struct um_node_params { /* CUgraphNodeParams */
	int type, reserved[3];
	union {
		struct um_graph_kernel kernel;
		struct um_graph_set set;
		void *child;
		struct {
			int flags, reserved;
			void *context;
			struct um_copy_3d params;
		} copy;
	} of;
};

struct um_graph_use {
	uint64_t at;
	enum umadv_access access;
};

/* A node, of the graph or of one inside of it, and where its addresses are. */
struct um_graph_node {
	const void *handle;
	size_t first, n, room;
	int disabled;
	int type;
	union { /* to launch it */
		struct um_graph_kernel kernel; /* its parameters are a buffer: `extra` */
		struct um_graph_set set;
		struct um_copy_3d copy;
	} launch;
	char *buffer; /* owned; of a kernel */
	size_t bytes; /* of it */
};

struct um_graph {
	struct um_graph *next; /* of the caller */
	const void *handle; /* CUgraphExec */
	unsigned long long flags; /* of its instantiation */
	void *context; /* CUcontext, likewise */
	UM_VEC(struct um_graph_use) found; /* of the nodes */
	UM_VEC(struct um_graph_node) node; /* in the graph's order */
	size_t latest; /* the node that was changed last: programs change them in their order */
	UM_VEC(struct um_graph_use) use; /* the lowest address of each tensor, with all accesses */
	uint64_t bytes; /* of these tensors */
	int changed; /* `use` and `bytes` are not up to date */
	int unread; /* some nodes could not be read */
	int whole; /* its nodes cannot be launched one after the other */
	int by_nodes; /* they were */
	int unmarked; /* its latest launch is not followed by `done` */
	void *done; /* CUevent; of the caller, as these two */
};

/* The graph was instantiated. NULL: no memory. */
struct um_graph *um_graph_new(const void *handle, void *graph, unsigned long long flags);
void um_graph_free(struct um_graph *g);

/* A node has new parameters; those of a graph are a graph. */
void um_graph_change(struct um_graph *g, void *node, int type, const void *params);
void um_graph_enable(struct um_graph *g, const void *node, int on);

/* Brings `use` and `bytes` up to date. */
void um_graph_join(struct um_graph *g);

#endif
