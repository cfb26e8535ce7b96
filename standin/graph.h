/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h - CUDA graphs of the stand-in driver: nodes with work and their dependencies
 *
 * in    nodes added by calls or by a capture
 * out   graphs that can be launched
 * owns  references to the works' kernels and events; a child graph is a copy of the given one
 *
 * Guarded by um_standin_lock(), except while a graph is launched: the program must not change it then.
 */
#ifndef UM_STANDIN_GRAPH_H
#define UM_STANDIN_GRAPH_H

#include "standin/work.h"

/* CUgraphNodeType */
enum um_node_type {
	UM_NODE_KERNEL,
	UM_NODE_COPY,
	UM_NODE_SET,
	UM_NODE_HOST,
	UM_NODE_GRAPH,
	UM_NODE_EMPTY,
	UM_NODE_WAIT,
	UM_NODE_RECORD
};

struct um_graph;

struct um_node {
	enum um_node_type type;
	struct um_graph *graph; /* graph of the node */
	struct um_graph *child; /* GRAPH: owned */
	const struct um_node *origin; /* in a copy: the original node; an identity, not dereferenced */
	UM_VEC(struct um_work) work; /* one after the other */
	UM_VEC(struct um_node *) after;
	size_t index; /* scratch: its index in an order */
};

struct um_graph {
	UM_VEC(struct um_node *) node;
};

struct um_graph *um_graph_new(void);
void um_graph_free(struct um_graph *g);
struct um_graph *um_graph_copy(const struct um_graph *g); /* NULL: no memory */

/* A node that comes after `n` others. NULL: no memory, or one of them is not of this graph. */
struct um_node *um_node_add(struct um_graph *g, enum um_node_type type, struct um_node *const *after, size_t n);
/* Takes the work's references, also on failure. 0 or -ENOMEM. */
int um_node_work(struct um_node *n, const struct um_work *work);
void um_node_clear(struct um_node *n); /* of its works */
int um_node_after(struct um_node *n, struct um_node *before); /* one more dependency; 0 or -ENOMEM */
void um_node_apart(struct um_node *n, const struct um_node *before); /* one less */
void um_node_remove(struct um_node *n); /* removes it from its graph and frees it */

struct um_node_params { /* CUgraphNodeParams */
	int type, reserved[3];
	union {
		char any[232]; /* of kernels, sets, host functions */
		struct {
			int flags, reserved;
			void *context;
			char params[208]; /* CUDA_MEMCPY3D */
		} copy;
		struct um_graph *child;
	} of;
	long long reserved_end;
};

/* graph_node.c: sets and queries a node's work by CUDA's structs of parameters. CUDA error codes. */
int um_kernel_node_set_1(struct um_node *n, const void *params);
int um_kernel_node_set_2(struct um_node *n, const void *params);
int um_copy_node_set(struct um_node *n, const void *params);
int um_set_node_set(struct um_node *n, const void *params);
int um_host_node_set(struct um_node *n, const void *params);

/* Nodes in topological order: 0, -ENOMEM, or -EINVAL: a circle. */
int um_graph_order(struct um_graph *g, struct um_node ***out);

/* copy.c: the works of a copy of up to three dimensions: `each` is called for every plane. CUDA error code. */
int um_copy_planes(const void *params, int (*each)(void *arg, const struct um_work *work), void *arg);
/* The parameters that `n` works of a copy, one for each plane, were made from. */
void um_copy_describe(const struct um_work *plane, size_t n, void *params);

#endif
