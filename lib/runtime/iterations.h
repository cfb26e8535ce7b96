/* SPDX-License-Identifier: Apache-2.0
 *
 * iterations.h - counts and records iterations
 *
 * in    events
 * out   the finished iteration
 * owns  the recorder; copies of the functions and arguments that relaunch ops
 *
 * Op path: no allocation after an iteration of this length was recorded. Not thread-safe: the caller holds the
 * context's lock.
 */
#ifndef UM_RUNTIME_ITERATIONS_H
#define UM_RUNTIME_ITERATIONS_H

#include "base/vec.h"
#include "learn/iteration_period.h"
#include "record/recorder.h"
#include "runtime/iteration_finder.h"
#include "runtime/notices.h"

/* Function that launches an op again, and a copy of its argument. */
struct um_closure {
	umadv_launch_fn fn; /* NULL: must not be launched again */
	void *arg;
	size_t bytes, cap;
};

struct um_iterations {
	struct um_recorder recorder;
	struct um_iteration last; /* the finished iteration */
	UM_VEC(struct um_closure) closures; /* of the iteration's ops, from their last announcement */
	struct um_iteration_period period; /* number of marked iterations that are recorded as one */
	struct um_iteration_finder finder; /* in use until the program's first mark */
	uint64_t n; /* iterations begun so far, marked or found */
	uint64_t marked; /* umadv_iter calls */
	uint64_t nvtx_marks; /* number of the last NVTX range that was taken as a mark or ignored */
	int by_program; /* it marks by umadv_iter: NVTX ranges are no marks */
	uint64_t op_serial; /* ops announced so far, */
	uint64_t began, before; /* as the recorded iteration began, and the one before it */
	uint32_t ops; /* ops announced in the recorded iteration, */
	uint32_t beside; /* and accesses of the CPU in it that are not recorded: context_host.c */
	uint64_t beside_at; /* the latest iteration with an access of the CPU that the plan did not have */
	int is_beside; /* and that is not recorded */
	int hinted; /* hints were issued in this iteration */
	uint64_t n_hinted, first_hinted; /* iterations with hints; the first of them, UINT64_MAX: none */
};

int um_iterations_init(struct um_iterations *it); /* 0 or -ENOMEM */
/* Begins to search the ops for iterations. */
void um_iterations_search(struct um_iterations *it);
void um_iterations_fini(struct um_iterations *it);

/* Passes the event to the recorder; counts and logs failures. */
void um_iterations_feed(struct um_iterations *it, const struct um_event *e, struct um_notices *notices);

int um_iterations_add_closure(struct um_iterations *it, const struct umadv_op_info *info);

/* Stores the closure of the announced op in the memory of the one at the same position. 0 or -ENOMEM. */
static inline int um_iterations_keep_closure(struct um_iterations *it, const struct umadv_op_info *info)
{
	if (it->ops >= it->closures.n || info->relaunch)
		return um_iterations_add_closure(it, info);
	it->closures.at[it->ops].fn = NULL;
	return 0;
}

/* The number of ops announced before this iteration began. An iteration that was found is none of which the program has
 * promised anything: 0, as if it had begun with the program. */
static inline uint64_t um_iterations_before(const struct um_iterations *it)
{
	return it->finder.on ? 0 : it->op_serial - it->ops - it->beside;
}

/* The program marks iterations: ends the search. */
void um_iterations_are_marked(struct um_iterations *it);
/* 1: the announced ops belong to no iteration. */
static inline int um_iterations_outside(const struct um_iterations *it)
{
	return it->finder.on ? !um_op_period_length(&it->finder.period) : !it->n;
}

/* A mark. 1: the recorded iteration ends; 0: it also includes the next marked iteration. */
int um_iterations_mark(struct um_iterations *it);
/* Moves the recording to `last`. */
void um_iterations_end(struct um_iterations *it);
/* Replaces `it->last`; takes the content of `last`. */
void um_iterations_replace(struct um_iterations *it, struct um_iteration *last);
void um_iterations_begin(struct um_iterations *it);

void um_iterations_stats(const struct um_iterations *it, struct umadv_stats *out);

#endif
