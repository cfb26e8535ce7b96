/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_exec.h - instantiated graphs of the stand-in driver
 *
 * in    graphs
 * out   their work, as items in lanes
 * owns  references to the works' kernels and events; streams and events of the simulator
 *
 * Guarded by um_standin_lock(), except while a graph is launched: the program must not change it then.
 */
#ifndef UM_STANDIN_GRAPH_EXEC_H
#define UM_STANDIN_GRAPH_EXEC_H

#include "standin/graph.h"

#define UM_LANES_MAX 16u

struct um_item {
	const struct um_node *origin; /* in the instantiated graph; an identity */
	UM_VEC(struct um_work) work; /* references */
	UM_VEC(uint32_t) after; /* items */
	uint32_t lane;
	int waited; /* from another lane, or the last of its own */
	int disabled; /* its work is left out */
	um_event_handle event; /* event, if another lane waits for it */
};

struct um_exec {
	struct um_graph *graph; /* a copy, for launches into a capture */
	UM_VEC(struct um_item) item;
	uint32_t lanes;
	uint32_t last[UM_LANES_MAX]; /* items */
	um_stream stream[UM_LANES_MAX]; /* but the first */
	um_event_handle begun, done; /* of a launch */
	unsigned long long flags;
	struct um_standin *of; /* its device: the one where it was instantiated */
};

void um_item_clear(struct um_item *it); /* of its works */

/* Not locked. CUDA error code. */
int um_exec_new(struct um_exec **out, const struct um_graph *g, unsigned long long flags);
void um_exec_free(struct um_exec *x);

#endif
