/* SPDX-License-Identifier: Apache-2.0
 *
 * context.h - the context behind the API: passes each call to its members, and values between them
 *
 * in    API calls (from api.c, which holds the lock)
 * out   addresses of tensors; hints to the device
 * owns  its members
 *
 *     alloc, free, op --> iterations --(iter)--> replan: learner --> planner --> program
 *                    \--> replan: cursor ("left the schedule") --> executor --> table
 *
 * Each member is a struct of the file with its name. The functions of a member take that member and further values,
 * never the context. Includes and calls go one way: api -> context* -> members. A member reports upwards by return
 * values and callbacks. A failure of a member is counted and means no hints.
 *
 * doc/locks.md lists the locks, their order, and the device calls that are made with the context's lock held.
 */
#ifndef UM_RUNTIME_CONTEXT_H
#define UM_RUNTIME_CONTEXT_H

#include "base/debug.h"
#include "gpu/nvtx_listen.h"
#include "replay/horizon.h"
#include "replay/on_use.h"
#include "runtime/checking.h"
#include "runtime/chosen_device.h"
#include "runtime/content_check.h"
#include "runtime/fork_exit.h"
#include "runtime/iterations.h"
#include "runtime/joint.h"
#include "runtime/notices.h"
#include "runtime/op_state.h"
#include "runtime/options.h"
#include "runtime/pending_launches.h"
#include "runtime/replan.h"
#include "runtime/sharing.h"
#include "runtime/sinks.h"
#include "runtime/tensors.h"

/* The workspaces that a thread has offered for its next op, or for the one that it has announced. */
struct um_offer {
	uint64_t thread;
	uint64_t addr; /* of the chosen workspace; 0: it needs none */
	struct um_tensor_id id; /* likewise */
	int announced; /* its op was */
	uint32_t n;
	struct um_workspace ws[UMADV_MOST_WORKSPACES];
};

struct umadv {
	pthread_mutex_t lock; /* guards everything below but fork_exit */
#if UM_DEBUG
	pthread_t holder; /* the thread that has locked it, while `held` */
	int held;
#endif
	struct um_fork_exit fork_exit;
	struct um_options options;
	struct um_notices notices;
	struct um_chosen_device device;
	struct um_tensors tensors;
	struct um_iterations iterations;
	struct um_op_state op;
	struct um_pending_launches pending;
	UM_VEC(struct um_offer) offers; /* of umadv_workspace, until the thread's first call after the launch */
	struct um_replan replan;
	struct um_sharing sharing; /* of the device, with other contexts */
	struct {
		int entered, context; /* its number among the contexts that share memory, once it has one */
		unsigned seen; /* um_joint_news that it knows */
		int due; /* the budget could not change: the next iteration tries again */
		int somewhere; /* ops name ranges larger than what they access */
	} joint; /* memory that contexts of other devices use, too */
	struct um_on_use on_use; /* the strategy prefetch-on-use; with lookahead, in an iteration that begins a plan */
	struct um_predictor predictor; /* with lookahead, while no plan is followed; as the horizon */
	struct um_horizon horizon; /* capacity 0: none */
	struct um_sinks sinks;
	struct um_checking checking; /* of kernels on the simulated GPU */
	struct um_content_check contents; /* likewise, of relaunches, while that is on */
	uint64_t relaunching; /* number of the thread that launches an op again, without the lock; 0: none */
	int no_relaunches; /* nothing is launched again any more */
	int content_lost; /* a relaunch failed again and again: the next op says so */
	uint64_t n_relaunches, n_relaunch_errors; /* launched again; launches of them that failed */
	uint64_t births_wait_from; /* number of the iteration from which on births wait for their places */
	int left_behind; /* a helper thread is in a call of the device: neither is closed */
};

/* An announced op waits for its hints, and then begins: this holds what both need without the lock. */
struct um_op_wait {
	struct um_executor_wait hints;
	int begins; /* something comes before its launch: */
	enum um_op_prefetches prefetches; /* as in um_op_state */
	int64_t timed;
	uint64_t serial; /* number of ops announced with this one */
};

static inline void um_context_lock(struct umadv *adv)
{
	pthread_mutex_lock(&adv->lock);
#if UM_DEBUG
	adv->holder = pthread_self();
	adv->held = 1;
#endif
}

static inline void um_context_unlock(struct umadv *adv)
{
#if UM_DEBUG
	adv->held = 0;
#endif
	pthread_mutex_unlock(&adv->lock);
}

/* Asserts that the caller holds the lock; for functions called by api.c. */
#if UM_DEBUG
#define um_assert_locked(adv) um_assert((adv)->held &&pthread_equal((adv)->holder, pthread_self()))
#else
#define um_assert_locked(adv) (void)(adv)
#endif

/* Takes ownership of `gpu` (closed at the end, also on failure); NULL: the device of the options. `profile`: of the
 * device; NULL: the profile of the options. 0, -ENOMEM, -EINVAL, -ENODEV. */
int um_context_open(struct umadv **out, const struct umadv_options *options, struct um_gpu *gpu,
		    const struct um_profile *profile);
void um_context_close(struct umadv *adv);

/* From now on `sink` (borrowed) receives tensors, ops, uses and hints. It must be the activity sink of the context's
 * own simulated device. Call it just after opening. 0 or -ENOMEM. */
int um_context_watch(struct umadv *adv, struct um_activity_sink *sink);
/* The same, for any other sink. */
int um_context_listen(struct umadv *adv, struct um_activity_sink *sink);

/* Opens what makes hints, as the strategy needs (context_hints.c). 0 or -ENOMEM. */
int um_context_open_hints(struct umadv *adv);
/* The device's budget has changed: the plan and all that depends on the budget begin anew. 0; -EAGAIN or -ENOMEM: the
 * plan was left, and the rest is as before. */
int um_context_change_budget(struct umadv *adv);
/* Makes a hint call of prefetch-on-use, on_use.h. */
void um_context_issue_hint(void *user, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream);

/* Says once that evicted data take more than the host's memory. */
void um_context_warn_host(struct umadv *adv);
/* Makes a prefetch of memory that contexts share. */
void um_context_prefetch_joint(struct umadv *adv, uint64_t addr, uint64_t bytes, um_stream stream);

/* Memory of the program that other contexts use, too (context_joint.c). Adopted: which of them have it? Without the
 * lock. */
void um_context_join(struct umadv *adv, void *ptr, uint64_t bytes);
void um_context_part(struct umadv *adv, const struct um_tensor *t); /* ended: the others have it for themselves */
void um_context_take_joint(struct umadv *adv); /* something has changed in who shares what */
void um_context_use_joint(struct umadv *adv, um_stream stream); /* before the op at hand, or access of the CPU */

static inline int um_context_joint_changed(const struct umadv *adv)
{
	return __builtin_expect(atomic_load_explicit(&um_joint_news, memory_order_relaxed) != adv->joint.seen, 0);
}

/* Other contexts on the device: takes the budget that they leave, or leaves them theirs (context_share.c). At the end
 * of an iteration, or while no op has been announced yet. */
void um_context_share(struct umadv *adv);

int um_context_alloc(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, void **ptr);
int um_context_free(struct umadv *adv, void *ptr);
int um_context_alloc_async(struct umadv *adv, uint64_t bytes, const char *name, enum um_role role, um_stream stream,
			   void **ptr);
int um_context_free_async(struct umadv *adv, void *ptr, um_stream stream);
/* Memory of umadv_alloc around `ptr` that no call has returned so far, and that no tensor was in before. Its bytes. */
uint64_t um_context_new_memory(struct umadv *adv, const void *ptr, uint64_t *from);
int um_context_adopt(struct umadv *adv, void *ptr, uint64_t bytes, const char *name, enum um_role role);
int um_context_disown(struct umadv *adv, void *ptr, uint64_t bytes);
int um_context_op(struct umadv *adv, um_stream stream, const char *name, const struct umadv_op_info *info);
void um_context_announce(struct umadv *adv, const struct um_cost *cost); /* the op at hand to device and checks */
/* The program will destroy the stream: no more events on it. Then, when its work is complete: its number is free. */
void um_context_end_stream(struct umadv *adv, um_stream stream);
void um_context_forget_stream(struct umadv *adv, um_stream stream);
/* Every stream is forgotten before it is destroyed. Call it just after opening. */
void um_context_know_stream_ends(struct umadv *adv);
int um_context_host(struct umadv *adv, const char *name, const struct umadv_use *uses, size_t n_uses);
/* Which uses of the plan's op are prefetched just before it. */
enum um_op_prefetches um_context_find_prefetches(const struct umadv *adv);
/* The op at hand has tensors that no slot of the plan had: each takes the memory of the one whose slot it got. 0, or
 * -EAGAIN: leave the plan. */
int um_context_replace(struct umadv *adv);
/* With the lock: copies what begins the op, or begins it at once if it does not wait. */
void um_context_take_begin(struct umadv *adv, struct um_op_wait *out, int waits);
/* Without the lock, after the op has waited: does it. */
void um_context_begin_op(struct umadv *adv, const struct um_op_wait *w);
/* A discard that must come before an op is late: drops those that have not begun, so that only calls in progress are
 * waited for. Called without the lock. */
void um_context_wait_again(struct umadv *adv, const struct um_executor_wait *w);

/* The last announced op, or access of the CPU, has to wait for hints: um_context_wait must be called without the lock
 * before the launch. */
static inline int um_context_take_wait(struct umadv *adv, struct um_op_wait *out)
{
	int waits = adv->replan.executor && um_executor_take_wait(adv->replan.executor, adv->op.stream, &out->hints);

	out->begins = adv->op.begins;
	if (out->begins)
		um_context_take_begin(adv, out, waits);
	return waits;
}

static inline void um_context_wait(struct umadv *adv, const struct um_op_wait *w)
{
	if (um_executor_wait(&w->hints))
		um_context_wait_again(adv, &w->hints);
	if (w->begins)
		um_context_begin_op(adv, w);
}
int um_context_iter(struct umadv *adv, const char *name);
/* Begins an iteration after an NVTX range has marked one since the last call. */
void um_context_take_mark(struct umadv *adv);
int um_context_dead(struct umadv *adv, void *ptr);
int um_context_transient(struct umadv *adv, void *ptr);
int um_context_run(struct umadv *adv, um_stream stream, void (*fn)(void *), void *arg);
int um_context_finish(struct umadv *adv);
void um_context_stats(struct umadv *adv, struct umadv_stats *out);
uint64_t um_context_hints(const struct umadv *adv); /* hints so far, issued or still queued */
struct um_hints_by_source um_context_hints_by_source(const struct umadv *adv);

/* Workspaces (context_workspace.c). 0; -EINVAL; -ENOMEM. */
int um_context_workspace(struct umadv *adv, const size_t *sizes, const uint64_t *times, size_t n, size_t *choice,
			 void **memory);
/* The calling thread calls: its ops were launched, and their workspaces end. */
void um_context_end_offers(struct umadv *adv);

/* Relaunches (context_relaunch.c), where the plan has some. They unlock the context and lock it again. */
void um_context_before_op(struct umadv *adv); /* launches what is due before the next op */
int um_context_after_op(struct umadv *adv); /* of an announced op, before its launch. 0; -EIO: content is lost */
int um_context_after_wait(struct umadv *adv); /* the same, after it has waited for its hints */
int um_context_after_event(struct umadv *adv); /* likewise */
void um_context_before_end(struct umadv *adv, const void *ptr); /* a tensor ends, or changes */
void um_context_before_iter(struct umadv *adv);
int um_context_restore(struct umadv *adv); /* makes all content anew that was dropped, and leaves the plan. As above */
void um_context_await_relaunch(struct umadv *adv); /* of another thread */

static inline int um_context_relaunches(const struct umadv *adv)
{
	return __builtin_expect(adv->replan.relaunches.again.n != 0, 0);
}

/* Takes ownership of a plan that was read and checked, for a warm start. */
int um_context_warm(struct umadv *adv, struct um_plan *plan);

/* Ends helper threads, hints and the trace. The context works without them afterwards. */
void um_context_quiesce(struct umadv *adv);

/* --- among the files of the context ------------------------------------------------------------------------------- */

/* The access of the CPU, which is not the schedule's next op, takes its tensors beside the plan. 1: that is all; 0: it
 * is to be processed like any op. */
int um_context_host_beside(struct umadv *adv, const struct umadv_op_info *info);

/* Allocates a workspace: in `slot` of the schedule that is followed, UM_NO_SLOT: anywhere. `*out`: the tensor. 0 or
 * -ENOMEM. */
int um_context_alloc_workspace(struct umadv *adv, uint64_t bytes, uint32_t slot, struct um_tensor **out);
void um_context_free_workspace(struct umadv *adv, uint64_t addr, struct um_tensor_id id);
/* The op that the calling thread announces gets what it has offered. 1: it has offered something. */
int um_context_search_offer(struct umadv *adv);

static inline int um_context_take_offer(struct umadv *adv)
{
	return __builtin_expect(adv->offers.n != 0, 0) && um_context_search_offer(adv);
}

/* Passes an event to the recorder and to the trace writer. `stream`: of an op. */
void um_context_feed(struct umadv *adv, const struct um_event *e, um_stream stream);

/* Begins an iteration. `found`: the iteration that ends, if it differs from the recording; its content is taken. NULL:
 * the recording. */
void um_context_begin(struct umadv *adv, const char *name, struct um_iteration *found);

/* Begins an unmarked iteration with the current op if the iteration finder says so. The uses of the op are resolved.
 * `known`: the op of the schedule that matches it, NULL: none. Returns the same after the call. */
const struct um_sched_op *um_context_find(struct umadv *adv, unsigned stream, const struct umadv_op_info *info,
					  const struct um_sched_op *known);
/* Called after each op for which the iteration finder reported something: begins an iteration after the op if
 * necessary. */
void um_context_find_last(struct umadv *adv);

/* Work on the stream follows, or has just been launched: the stream gets its number, and is ordered after the earlier
 * uses of all memory that was reused. 0; -EBUSY: it captures. */
int um_context_name_stream(struct umadv *adv, um_stream stream, unsigned *number);

/* The program left the schedule. */
static inline void um_context_leave(struct umadv *adv)
{
	um_replan_leave(&adv->replan, adv->iterations.n - 1);
}

/* The uses of every op are resolved again. */
static inline void um_context_forget_uses(struct umadv *adv)
{
	um_recorder_flush(&adv->iterations.recorder);
	um_op_state_forget(&adv->op);
}

#endif
