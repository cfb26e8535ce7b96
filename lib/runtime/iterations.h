/* SPDX-License-Identifier: Apache-2.0
 *
 * iterations.h - which iteration is this, what was announced in it, what the one before was
 *
 * in    events
 * out   the finished iteration
 * owns  the recorder, copies of what launches ops again
 *
 * Op path: no allocation once an iteration of this length was recorded. Not thread-safe: the caller holds the context's
 * lock.
 */
#ifndef UM_RUNTIME_ITERATIONS_H
#define UM_RUNTIME_ITERATIONS_H

#include "base/vec.h"
#include "learn/iteration_period.h"
#include "record/recorder.h"
#include "runtime/iteration_finder.h"
#include "runtime/notices.h"

/* How to launch an op again; the argument is our copy. */
struct um_closure {
	void (*fn)(void *arg, void *stream); /* NULL: must not be launched again */
	void *arg;
	size_t bytes, cap;
};

struct um_iterations {
	struct um_recorder recorder;
	struct um_iteration last; /* the finished iteration */
	UM_VEC(struct um_closure) closures; /* of the iteration's ops, as last announced */
	struct um_iteration_period period; /* of marks: several may make up what is recorded as one iteration */
	struct um_iteration_finder finder; /* as long as the program marks none */
	uint64_t n; /* iterations begun so far, marked or found */
	uint64_t marked; /* of those */
	uint64_t nvtx_marks; /* number of the last NVTX range that was taken as a mark or ignored */
	int by_program; /* it marks by umadv_iter: NVTX ranges are no marks */
	uint64_t op_serial; /* ops announced so far */
	uint32_t ops; /* of those in what is recorded */
	int hinted; /* hints were issued in this iteration */
	uint64_t n_hinted, first_hinted; /* iterations with hints; the first of them, UINT64_MAX: none */
};

int um_iterations_init(struct um_iterations *it); /* 0 or -ENOMEM */
/* Iterations are searched for in the ops. */
void um_iterations_search(struct um_iterations *it);
void um_iterations_fini(struct um_iterations *it);

/* To the recorder; what fails is counted and logged. */
void um_iterations_feed(struct um_iterations *it, const struct um_event *e, struct um_notices *notices);

int um_iterations_add_closure(struct um_iterations *it, const struct umadv_op_info *info);

/* Keeps the closure of the op that is announced, in the memory of the one that stood there before. 0 or -ENOMEM. */
static inline int um_iterations_keep_closure(struct um_iterations *it, const struct umadv_op_info *info)
{
	if (it->ops >= it->closures.n || info->relaunch)
		return um_iterations_add_closure(it, info);
	it->closures.at[it->ops].fn = NULL;
	return 0;
}

/* The number of ops announced before this iteration began. */
static inline uint64_t um_iterations_before(const struct um_iterations *it)
{
	return it->op_serial - it->ops;
}

/* The program marks iterations: none is searched for. */
void um_iterations_are_marked(struct um_iterations *it);
/* Ops are announced that are in no iteration. */
static inline int um_iterations_outside(const struct um_iterations *it)
{
	return it->finder.on ? !um_op_period_length(&it->finder.period) : !it->n;
}

/* A mark. 1: what is recorded ends here; 0: it goes on with the next iteration. */
int um_iterations_mark(struct um_iterations *it);
/* What was recorded becomes `last`. */
void um_iterations_end(struct um_iterations *it);
/* `last` was another one; its content is taken. */
void um_iterations_replace(struct um_iterations *it, struct um_iteration *last);
/* The next one begins. */
void um_iterations_begin(struct um_iterations *it);

void um_iterations_stats(const struct um_iterations *it, struct umadv_stats *out);

#endif
