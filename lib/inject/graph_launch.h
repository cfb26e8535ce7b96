/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_launch.h - launches the nodes of a graph one after the other, where the graph needs more than the budget
 *
 * in    graphs whose nodes have been read
 * out   the same work in the stream of the launch, each node an op
 * owns  an event for each graph
 *
 * Launches of a graph come one after the other, in any streams. Op path. Thread-safe for different graphs.
 */
#ifndef UM_INJECT_GRAPH_LAUNCH_H
#define UM_INJECT_GRAPH_LAUNCH_H

#include "inject/graph_nodes.h"

/* Launches its nodes: 1, with the result; 0: the graph has to be launched as it is. */
int um_graph_launch_nodes(struct um_graph *g, void *stream, int *err);

/* Around its launch as it is. */
void um_graph_launch_begins(struct um_graph *g, void *stream);
void um_graph_launch_ends(struct um_graph *g, void *stream);

void um_graph_launch_end(struct um_graph *g); /* it is not launched any more */

#endif
