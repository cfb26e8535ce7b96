/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.h - the births and frees of a played workload
 *
 * in    activities in the order of the program: tensors and their ends, ops, ranges of iterations
 * out   calls, their tensors, and the window of calls that repeats
 * owns  the arrays
 *
 * A sink for the player. Pools are compared on the same calls; the addresses that the library chose are kept, too.
 */
#ifndef UM_POOL_CALLS_H
#define UM_POOL_CALLS_H

#include "base/tree.h"
#include "base/vec.h"
#include "model/activity.h"

#define UM_POOL_NEVER UINT32_MAX

struct um_pool_tensor {
	uint64_t bytes, addr; /* addr: chosen by the library */
	uint32_t birth, death; /* calls; UM_POOL_NEVER: not freed */
};

struct um_pool_call {
	uint32_t tensor;
	uint32_t op; /* ops before it */
	int is_free;
};

/* Calls [from, to). */
struct um_pool_window {
	uint32_t from, to;
};

struct um_pool_calls {
	struct um_activity_sink sink;
	UM_VEC(struct um_pool_tensor) tensors;
	UM_VEC(struct um_pool_call) calls;
	UM_VEC(uint32_t) ends; /* of iterations: calls before it */
	struct um_tree live; /* by address */
	uint32_t ops;
};

/* Ranges named `domain` (borrowed) end iterations. */
void um_pool_calls_init(struct um_pool_calls *c);
void um_pool_calls_fini(struct um_pool_calls *c);

/* The last `period` iterations, and those before them. 0; -ENODATA: there are fewer than that. */
int um_pool_calls_windows(const struct um_pool_calls *c, size_t period, struct um_pool_window *before,
			  struct um_pool_window *last);

#endif
