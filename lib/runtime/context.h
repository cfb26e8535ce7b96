/* SPDX-License-Identifier: Apache-2.0
 *
 * context.h - learning or replaying: feeds each event to whoever listens, and hands values from room to room
 *
 * in    what happens (through api.c, which holds the lock)
 * out   addresses, and hints issued behind the scenes
 * owns  everything of a context
 *
 *     alloc, free, op --> recorder --(iter)--> learner --> planner --> program
 *                    \--> cursor ("left the schedule") --> executor --> table
 *
 * Nothing here thinks: what is kept, learned, planned and issued are matters of the rooms. A failure of one of them is
 * counted and means no hints.
 */
#ifndef UM_RUNTIME_CONTEXT_H
#define UM_RUNTIME_CONTEXT_H

#include "runtime/checking.h"
#include "runtime/arena_pool.h"
#include "learn/learn.h"
#include "model/plan.h"
#include "model/profile.h"
#include "runtime/options.h"
#include "record/recorder.h"
#include "record/registry.h"
#include "replay/cursor.h"
#include "replay/executor.h"
#include "replay/on_use.h"
#include "replay/compiled_plan.h"
#include "runtime/log_sink.h"
#include "runtime/op_timer.h"
#include "runtime/activity_source.h"
#include "runtime/trace_sink.h"

#include <pthread.h>

#define UM_MAX_REPLANS 3 /* of one schedule, as what is known of it grows */

/* How to launch an op again; the argument is our copy. */
struct um_closure {
	void (*fn)(void *arg, void *stream); /* NULL: must not be launched again */
	void *arg;
	size_t bytes, cap;
};

/* What the program named here when it was looked up last, and what that was: the uses of an op lie one after the other,
 * so that they need not be looked up, nor written down again. */
struct um_known_uses {
	UM_VEC(struct umadv_use) given; /* by use of the plan's schedule */
	UM_VEC(struct um_use) found; /* likewise; id 0: not known */
};

enum um_warned {
	UM_WARN_POINTER = 1,
	UM_WARN_PLAN = 2,
	UM_WARN_TRACE = 4,
	UM_WARN_LOST = 8,
	UM_WARN_CAPTURE = 16,
	UM_WARN_GATES = 32,
	UM_WARN_RUN_LOG = 64,
	UM_WARN_COUNTERS = 128,
	UM_WARN_FREED = 256,
	UM_WARN_RANGE = 512,
	UM_WARN_STREAM = 1024,
	UM_WARN_OUTSIDE = 2048,
	UM_WARN_LONG = 4096,
	UM_WARN_RESERVED = 8192
};

struct umadv {
	pthread_mutex_t lock; /* guards everything below */
	struct um_options options;
	unsigned warned; /* enum um_warned: each cause is said once */

	struct umadv *next_context, *next_tracer; /* process.c */
	unsigned generation;

	struct um_gpu *gpu;
	int simulated; /* the simulated GPU of this process: what umadv_sim_* work on */
	int real; /* time is real: ops are measured */
	int cuda; /* opened by um_device_open: errors may be sticky */
	struct um_profile profile;
	int profile_ignored; /* what UMADVISE_PROFILE names cannot be read */
	uint64_t budget;

	struct um_registry registry;
	struct um_arena_pool pool;
	struct um_recorder recorder;
	struct um_trace_sink tracing; /* the umtrace that is written */
	struct um_activity_source telling; /* who else listens */
	struct um_log_sinks reporting; /* the own log */
	struct um_op_timer stopwatch; /* of the plan's ops, on a real device */
	uint64_t stopwatch_signature; /* whose ops it measures, or has measured */
	int timed; /* the plan was made from measured times, or they are as was assumed */
	uint64_t (*wall_ms)(void); /* the clock that limits planning; NULL: CLOCK_MONOTONIC */
	size_t late_ops; /* ops of the shortest schedule that no plan was found for in time; 0: none */
	struct um_iteration last; /* the finished iteration */
	struct um_learner learner;

	struct um_plan plan; /* the one followed; sched.ops.n == 0: none */
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_executor *executor; /* NULL: no hints */
	struct um_on_use on_use; /* the strategy prefetch-on-use */
	uint32_t laps, lap; /* iterations that the plan's schedule holds; and how many of them are over */
	int confirmed; /* the plan's schedule was followed to its end, or seen twice, or saved by an earlier run */
	int adopt; /* take the program up at the first op of the iteration */
	int fresh; /* the plan has not been followed to its end yet */
	unsigned replans;
	uint64_t last_signature;
	uint64_t misplaced; /* births of this iteration that do not lie where planned */
	struct um_plan warm; /* loaded, not yet bound to tensors; sched.ops.n == 0: none */

	uint64_t iteration; /* number of iter events so far */
	int hinted; /* hints were issued in this iteration */
	uint64_t op_serial;
	const char *op_name; /* of the op at hand */
	const struct um_use *uses; /* of the op at hand, */
	uint32_t n_uses;
	UM_VEC(struct um_use) resolved; /* found out for it, or else */
	struct um_known_uses known; /* of an iteration before */
	UM_VEC(struct um_tensor_id) outs; /* relaunch outputs of the op at hand */
	UM_VEC(struct um_closure) closures; /* of the iteration's ops, as last announced */
	uint32_t iter_ops; /* ops announced in this iteration */
	UM_VEC(struct um_touch) touches; /* of the op at hand, for a simulated device */

	struct um_checking checking; /* of kernels on the simulated GPU */

	struct umadv_stats stats;
};

/* `gpu` is taken (closed at the end, also on failure); NULL: what the options say. `profile`: of the
 * device, NULL likewise. 0, -ENOMEM, -EINVAL, -ENODEV. */
int um_context_open(struct umadv **out, const struct umadv_options *options, struct um_gpu *gpu,
		    const struct um_profile *profile);
void um_context_close(struct umadv *adv);

/* `sink` (borrowed) is told from now on of tensors, ops, uses and hints: it is the watcher of the simulated device
 * below. Just after opening. 0 or -ENOMEM. */
int um_context_watch(struct umadv *adv, struct um_activity_sink *sink);
/* The same, of anyone else. */
int um_context_listen(struct umadv *adv, struct um_activity_sink *sink);

int um_context_alloc(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, void **ptr);
int um_context_free(struct umadv *adv, void *ptr);
int um_context_adopt(struct umadv *adv, void *ptr, uint64_t bytes, const char *name, enum um_role role);
int um_context_disown(struct umadv *adv, void *ptr, uint64_t bytes);
int um_context_op(struct umadv *adv, um_stream stream, const char *name, const struct umadv_op_info *info);
int um_context_iter(struct umadv *adv, const char *name);
int um_context_dead(struct umadv *adv, void *ptr);
int um_context_transient(struct umadv *adv, void *ptr);
int um_context_run(struct umadv *adv, um_stream stream, void (*fn)(void *), void *arg);
int um_context_finish(struct umadv *adv);
void um_context_stats(struct umadv *adv, struct umadv_stats *out);
uint64_t um_context_hints(const struct umadv *adv); /* asked for so far, issued or still queued */

/* Takes a plan (read, checked) to start warm from. */
int um_context_warm(struct umadv *adv, struct um_plan *plan);

/* Ends all that works behind the scenes: helper threads, hints, the trace. The context goes on without them. */
void um_context_quiesce(struct umadv *adv);

/* Does the device hold more than the budget that was asked for? Then its driver does not evict in time to keep that. */
int um_context_device_is_larger(const struct umadv *adv);

/* Makes a hint call of prefetch-on-use, on_use.h. */
void um_context_on_use(void *user, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream);

/* Cuts off the ends of a range that are not known to be managed memory. */
void um_context_clip(const struct umadv *adv, uint64_t *addr, uint64_t *bytes);

/* An event to whoever listens: the recorder, and the trace being written. `stream`: of an op. */
void um_context_feed(struct umadv *adv, const struct um_event *e, um_stream stream);
void um_context_trace(struct umadv *adv, const struct um_event *e, um_stream stream); /* to the trace alone */

/* Managed memory that was ever given out, in whole blocks: an array to be freed (NULL: no memory) and its length. */
size_t um_context_used(const struct umadv *adv, struct um_executor_range **out);

/* Every op is looked up once more. */
void um_context_forget_uses(struct umadv *adv);

/* learning.c: an iteration ended; what is followed from now on? */
void um_context_learn(struct umadv *adv);
/* learning.c: the plan's first iteration is about to begin with tensors of a warm start. */
void um_context_start_warm(struct umadv *adv);
/* learning.c: the schedule was left. */
void um_context_leave(struct umadv *adv);

void um_context_log(struct umadv *adv, enum umadv_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, once per cause. */
void um_context_warn(struct umadv *adv, enum um_warned cause, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
