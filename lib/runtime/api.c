/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c - the public functions: check arguments, take the lock, call the context
 */
#include "runtime/context.h"
#include "runtime/environment.h"
#include "runtime/fork_exit.h"
#include "runtime/kernel_copy.h"
#include "runtime/mistakes.h"

#include "io/file_name.h"
#include "io/plan_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert((int)UMADV_OTHER == (int)UM_ROLE_OTHER && (int)UMADV_PARAM == (int)UM_ROLE_PARAM &&
		       (int)UMADV_GRAD == (int)UM_ROLE_GRAD && (int)UMADV_OPTIM == (int)UM_ROLE_OPTIM &&
		       (int)UMADV_ACT == (int)UM_ROLE_ACT && (int)UMADV_INPUT == (int)UM_ROLE_INPUT &&
		       (int)UMADV_WORKSPACE == (int)UM_ROLE_WORKSPACE && (int)UMADV_COMM == (int)UM_ROLE_COMM,
	       "roles have the same numbers outside and inside");
_Static_assert((int)UMADV_ACCESS_READ == (int)UM_READ && (int)UMADV_ACCESS_WRITE == (int)UM_WRITE, "so have accesses");

/* Calls `fn` with the file's name as it is for this process. */
static int name_plan(struct umadv *adv, const char *pattern, int (*fn)(struct umadv *, const char *path))
{
	char *path = um_file_name(pattern);
	int err = path ? fn(adv, path) : -ENOMEM;

	free(path);
	return err;
}

static int load_plan(struct umadv *adv, const char *path)
{
	struct um_plan plan;
	struct um_diag diag;
	char line[800], why[256];
	int err;

	um_plan_init(&plan);
	um_diag_init(&diag, path);
	err = um_plan_read(path, &plan, &diag);
	if (err) {
		um_diag_line(&diag, line, sizeof line);
		um_notices_log(&adv->notices, UMADV_LOG_ERROR, "plan %s", line);
		goto out;
	}
	err = um_plan_check(&plan, NULL, why, sizeof why);
	if (err) {
		um_notices_log(&adv->notices, UMADV_LOG_ERROR, "plan %s is not sound: %s", path, why);
		goto out;
	}
	if (plan.scratch.n) {
		err = -EINVAL;
		um_notices_log(&adv->notices, UMADV_LOG_ERROR,
			       "plan %s launches operations again in scratch memory, which the library does not: "
			       "expected a plan of umadv_save_plan, or one made with --no-recompute",
			       path);
		goto out;
	}
	err = um_context_warm(adv, &plan);
out:
	um_plan_fini(&plan);
	return err;
}

/* A plan that cannot be used is an error if the program names it, and is ignored if UMADVISE_PLAN names it. */
static int open_plan(struct umadv *adv)
{
	const char *path = adv->options.pub.plan;
	char line[400];
	int err = path ? name_plan(adv, path, load_plan) : 0;

	if (!err || err == -ENOMEM || !um_variable_is("UMADVISE_PLAN", path))
		return err;
	um_variable_ignored("UMADVISE_PLAN", line, sizeof line);
	um_notices_log(&adv->notices, UMADV_LOG_WARN, "%s", line);
	return 0;
}

/* Makes dropped content anew before the plan ends. */
static void restore(struct umadv *adv)
{
	if (um_fork_exit_is_dead(&adv->fork_exit))
		return;
	um_context_lock(adv);
	um_context_await_relaunch(adv);
	um_context_restore(adv);
	um_context_unlock(adv);
}

int umadv_open(struct umadv **out, const struct umadv_options *options)
{
	struct umadv *adv;
	int err;

	if (!out)
		return -EINVAL;
	err = um_context_open(&adv, options, NULL, NULL);
	if (err)
		return err;
	err = open_plan(adv);
	if (err) {
		um_context_close(adv);
		return err;
	}
	*out = adv;
	return 0;
}

void umadv_close(struct umadv *adv)
{
	um_context_close(adv);
}

/* `dead`: what a context that was open before a fork returns in the child. */
#define LOCKED(adv, dead, expr)                                                                                        \
	do {                                                                                                           \
		int locked_err;                                                                                        \
		if (um_fork_exit_is_dead(&(adv)->fork_exit))                                                           \
			return (dead);                                                                                 \
		um_context_lock(adv);                                                                                  \
		locked_err = (expr);                                                                                   \
		um_context_unlock(adv);                                                                                \
		return locked_err;                                                                                     \
	} while (0)

/* Before and after an event, where the plan launches ops again. `ptr`: the start of a tensor that ends, or changes. */
static inline void before_event(struct umadv *adv, const void *ptr)
{
	if (um_context_relaunches(adv))
		um_context_before_end(adv, ptr);
}

static inline int after_event(struct umadv *adv, int err)
{
	if (um_context_relaunches(adv) && um_context_after_event(adv))
		adv->content_lost = 1; /* the next op says so */
	return err;
}

static inline void end_offers(struct umadv *adv)
{
	if (__builtin_expect(adv->offers.n != 0, 0))
		um_context_end_offers(adv);
}

/* LOCKED for an event. An NVTX range before the event begins its iteration first. */
#define EVENT(adv, dead, ptr, expr)                                                                                    \
	LOCKED(adv, dead,                                                                                              \
	       (end_offers(adv), before_event(adv, ptr), um_pending_launches_call(&(adv)->pending),                    \
		atomic_load_explicit(&um_nvtx_marks, memory_order_relaxed) != (adv)->iterations.nvtx_marks             \
			? um_context_take_mark(adv)                                                                    \
			: (void)0,                                                                                     \
		after_event(adv, (expr))))

int umadv_alloc(struct umadv *adv, void **ptr, size_t bytes, const char *name, enum umadv_role role)
{
	if (!adv || !ptr || !bytes || bytes > SIZE_MAX / 2 || (unsigned)role > UMADV_COMM)
		return -EINVAL;
	EVENT(adv, -ENODEV, NULL, um_context_alloc(adv, bytes, name, (enum um_role)role, ptr));
}

int umadv_free(struct umadv *adv, void *ptr)
{
	if (!adv)
		return -EINVAL;
	if (!ptr)
		return 0;
	EVENT(adv, 0, ptr, um_context_free(adv, ptr));
}

int umadv_alloc_async(struct umadv *adv, void **ptr, size_t bytes, const char *name, enum umadv_role role, void *stream)
{
	if (!adv || !ptr || !bytes || bytes > SIZE_MAX / 2 || (unsigned)role > UMADV_COMM)
		return -EINVAL;
	EVENT(adv, -ENODEV, NULL, um_context_alloc_async(adv, bytes, name, (enum um_role)role, stream, ptr));
}

int umadv_free_async(struct umadv *adv, void *ptr, void *stream)
{
	if (!adv)
		return -EINVAL;
	if (!ptr)
		return 0;
	EVENT(adv, 0, ptr, um_context_free_async(adv, ptr, stream));
}

static int adopt(struct umadv *adv, void *ptr, size_t bytes, const char *name, enum um_role role)
{
	EVENT(adv, 0, ptr, um_context_adopt(adv, ptr, bytes, name, role));
}

int umadv_adopt(struct umadv *adv, void *ptr, size_t bytes, const char *name, enum umadv_role role)
{
	int err;

	if (!adv || !ptr || !bytes || bytes > SIZE_MAX / 2 || (unsigned)role > UMADV_COMM)
		return -EINVAL;
	err = adopt(adv, ptr, bytes, name, (enum um_role)role);
	if (!err)
		um_context_join(adv, ptr, bytes);
	return err;
}

int umadv_disown(struct umadv *adv, void *ptr, size_t bytes)
{
	if (!adv || !ptr || !bytes)
		return -EINVAL;
	EVENT(adv, 0, ptr, um_context_disown(adv, ptr, bytes));
}

int umadv_transient(struct umadv *adv, void *ptr)
{
	if (!adv || !ptr)
		return -EINVAL;
	LOCKED(adv, 0, um_context_transient(adv, ptr));
}

int umadv_dead(struct umadv *adv, void *ptr)
{
	if (!adv || !ptr)
		return -EINVAL;
	EVENT(adv, 0, ptr, um_context_dead(adv, ptr));
}

/* Unlocks the context after an op, where the plan launches ops again. */
static int __attribute__((cold, noinline)) end_op(struct umadv *adv, int err)
{
	struct um_op_wait wait;
	int waits = um_context_take_wait(adv, &wait), lost = err ? um_context_restore(adv) : um_context_after_op(adv);

	um_context_unlock(adv);
	if (waits) {
		um_context_wait(adv, &wait);
		um_context_lock(adv);
		lost |= um_context_after_wait(adv); /* the plan may have been left meanwhile */
		um_context_unlock(adv);
	}
	return err ? err : lost;
}

/* EVENT for an op, which waits for its hints without the lock. */
#define OP(adv, expr)                                                                                                  \
	do {                                                                                                           \
		struct um_op_wait op_wait;                                                                             \
		int op_err, waits;                                                                                     \
		if (um_fork_exit_is_dead(&(adv)->fork_exit))                                                           \
			return 0;                                                                                      \
		um_context_lock(adv);                                                                                  \
		end_offers(adv);                                                                                       \
		if (um_context_relaunches(adv)) {                                                                      \
			um_context_before_op(adv);                                                                     \
			op_err = (expr);                                                                               \
			return end_op(adv, op_err);                                                                    \
		}                                                                                                      \
		(adv)->op.thread = um_pending_launches_call(&(adv)->pending);                                          \
		if (atomic_load_explicit(&um_nvtx_marks, memory_order_relaxed) != (adv)->iterations.nvtx_marks)        \
			um_context_take_mark(adv);                                                                     \
		op_err = (expr);                                                                                       \
		waits = um_context_take_wait(adv, &op_wait);                                                           \
		um_context_unlock(adv);                                                                                \
		if (waits)                                                                                             \
			um_context_wait(adv, &op_wait);                                                                \
		return op_err;                                                                                         \
	} while (0)

int umadv_op(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses, size_t n_uses)
{
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .n_uses = n_uses};

	if (!adv || (n_uses && !uses))
		return -EINVAL;
	OP(adv, um_context_op(adv, stream, name, &info));
}

int umadv_workspace(struct umadv *adv, const size_t *sizes, const uint64_t *times, size_t n, size_t *choice,
		    void **memory)
{
	if (!adv || !sizes || !times || !choice || !memory || !n || n > UMADV_MOST_WORKSPACES)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (sizes[i] > SIZE_MAX / 2 || !times[i])
			return -EINVAL;
	EVENT(adv, -ENODEV, NULL, um_context_workspace(adv, sizes, times, n, choice, memory));
}

/* The fields of a caller that was compiled with another version of the struct. NULL: it is none. */
static const struct umadv_op_info *__attribute__((cold))
convert(const struct umadv_op_info *given, struct umadv_op_info *to)
{
	if (given->struct_size < offsetof(struct umadv_op_info, flops) || given->struct_size > 4096)
		return NULL;
	memset(to, 0, sizeof *to);
	memcpy(to, given, given->struct_size < sizeof *to ? given->struct_size : sizeof *to);
	return to;
}

int umadv_op_ex(struct umadv *adv, void *stream, const char *name, const struct umadv_op_info *info)
{
	struct umadv_op_info converted;

	if (!adv || !info)
		return -EINVAL;
	if (info->struct_size != sizeof *info)
		info = convert(info, &converted);
	if (!info || (info->n_uses && !info->uses) || (info->n_relaunch_outs && !info->relaunch_outs) ||
	    (info->relaunch_arg_bytes && !info->relaunch_arg) || !(info->flops >= 0) || !(info->bytes >= 0))
		return -EINVAL;
	OP(adv, um_context_op(adv, stream, name, info));
}

int umadv_launch(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses, size_t n_uses,
		 umadv_launch_fn launch, const void *arg, size_t arg_bytes)
{
	const struct umadv_op_info info = {.struct_size = sizeof info,
					   .uses = uses,
					   .n_uses = n_uses,
					   .relaunch = launch,
					   .relaunch_arg = arg,
					   .relaunch_arg_bytes = arg_bytes};
	int err;

	if (!adv || !launch || (n_uses && !uses) || (arg_bytes && !arg))
		return -EINVAL;
	err = umadv_op_ex(adv, stream, name, &info);
	return launch((void *)(uintptr_t)arg, stream) ? -EIO : err;
}

static void note_kernel(struct umadv *adv, const char *name, int err, int code)
{
	if (um_fork_exit_is_dead(&adv->fork_exit))
		return;
	um_context_lock(adv);
	if (err == -ENOMEM)
		adv->notices.errors++;
	else
		um_mistake_kernel(&adv->notices, name ? name : "op", code);
	um_context_unlock(adv);
}

int umadv_launch_kernel(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses, size_t n_uses,
			const struct umadv_kernel *kernel)
{
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .n_uses = n_uses};
	struct um_kernel_copy copy;
	int err, code;

	if (!adv || !kernel || kernel->struct_size < sizeof *kernel || !kernel->launch || (n_uses && !uses))
		return -EINVAL;
	err = um_kernel_copy_init(&copy, kernel, &code);
	if (err) {
		note_kernel(adv, name, err, code);
	} else {
		info.relaunch = um_kernel_copy_launch;
		info.relaunch_arg = copy.block;
		info.relaunch_arg_bytes = copy.bytes;
	}
	err = umadv_op_ex(adv, stream, name, &info);
	um_kernel_copy_fini(&copy);
	return kernel->launch(kernel, stream) ? -EIO : err;
}

/* Waits without the lock: work of the stream may need another thread's call. */
int umadv_forget_stream(struct umadv *adv, void *stream)
{
	struct um_gpu *gpu;
	int code;

	if (!adv)
		return -EINVAL;
	if (um_fork_exit_is_dead(&adv->fork_exit))
		return 0;
	restore(adv);
	um_context_lock(adv);
	um_context_end_stream(adv, stream);
	gpu = adv->device.gpu;
	um_context_unlock(adv);
	code = gpu->api->cudaStreamSynchronize(gpu, stream);
	if (code && code != UM_CUDA_INVALID_HANDLE && code != UM_CUDA_LOST)
		return code == UM_CUDA_CAPTURING ? -EBUSY : -EIO;
	um_context_lock(adv);
	um_context_forget_stream(adv, stream);
	um_context_unlock(adv);
	return 0;
}

int umadv_host(struct umadv *adv, const char *name, const struct umadv_use *uses, size_t n_uses)
{
	if (!adv || (n_uses && !uses))
		return -EINVAL;
	OP(adv, um_context_host(adv, name, uses, n_uses));
}

/* Only where the program marks iterations is it known that one ends. */
static int begin_iteration(struct umadv *adv, const char *name)
{
	if (um_context_relaunches(adv))
		um_context_before_iter(adv);
	um_replan_may_relaunch(&adv->replan, !adv->no_relaunches && !adv->pending.shared &&
						     adv->iterations.period.length == 1 &&
						     adv->options.strategy == UM_STRATEGY_LOOKAHEAD);
	return um_context_iter(adv, name);
}

int umadv_iter(struct umadv *adv, const char *name)
{
	if (!adv)
		return -EINVAL;
	LOCKED(adv, 0,
	       (end_offers(adv), um_pending_launches_call(&adv->pending), adv->iterations.by_program = 1,
		begin_iteration(adv, name)));
}

int umadv_stats_get(struct umadv *adv, struct umadv_stats *stats)
{
	struct umadv_stats all;
	size_t size = stats ? stats->struct_size : 0;

	if (!adv || size < sizeof size || size > 4096)
		return -EINVAL;
	if (um_fork_exit_is_dead(&adv->fork_exit))
		return -ENODEV;
	um_context_lock(adv);
	um_context_stats(adv, &all);
	um_context_unlock(adv);
	memcpy(stats, &all, size < sizeof all ? size : sizeof all);
	stats->struct_size = size;
	return 0;
}

int umadv_caps_get(struct umadv *adv, struct umadv_caps *caps)
{
	size_t size = caps ? caps->struct_size : 0;

	if (!adv || size < sizeof size || size > 4096)
		return -EINVAL;
	const struct um_gpu_caps *c = &adv->device.gpu->caps;
	struct umadv_caps all = {.managed = c->concurrent_managed,
				 .discard = c->discard,
				 .simulated = c->virtual_time,
				 .capacity = c->capacity};

	memcpy(all.device, c->name, sizeof all.device);
	memcpy(all.why, c->why, sizeof all.why);
	memcpy(caps, &all, size < sizeof all ? size : sizeof all);
	caps->struct_size = size;
	return 0;
}

static int save_plan(struct umadv *adv, const char *path)
{
	const struct um_plan *plan = um_replan_latest(&adv->replan);
	struct um_diag diag;
	char line[800];
	int err;

	if (!plan)
		return -ENODATA;
	um_diag_init(&diag, path);
	err = um_plan_write(path, plan, &diag);
	if (err) {
		um_diag_line(&diag, line, sizeof line);
		um_notices_log(&adv->notices, UMADV_LOG_ERROR, "plan %s", line);
	}
	return err;
}

/* Waits for the first plan if it is being made, without the lock: other threads go on. */
static void wait_for_plan(struct umadv *adv)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int makes = !um_fork_exit_is_dead(&adv->fork_exit);

	while (makes) {
		um_context_lock(adv);
		makes = !um_replan_latest(&adv->replan) && um_planning_poll(&adv->replan.planning) == UM_PLANNING_MAKES;
		um_context_unlock(adv);
		if (makes)
			nanosleep(&ms, NULL);
	}
}

int umadv_save_plan(struct umadv *adv, const char *path)
{
	if (!adv || !path)
		return -EINVAL;
	wait_for_plan(adv);
	LOCKED(adv, -ENODEV, name_plan(adv, path, save_plan));
}

int umadv_load_plan(struct umadv *adv, const char *path)
{
	if (!adv || !path)
		return -EINVAL;
	restore(adv);
	LOCKED(adv, -ENODEV, name_plan(adv, path, load_plan));
}

int umadv_sim_run(struct umadv *adv, void *stream, void (*fn)(void *arg), void *arg)
{
	if (!adv)
		return -EINVAL;
	LOCKED(adv, -ENODEV, um_context_run(adv, stream, fn, arg));
}

int umadv_sim_sync(struct umadv *adv)
{
	if (!adv)
		return -EINVAL;
	LOCKED(adv, -ENODEV, um_context_finish(adv));
}

uint64_t umadv_sim_now(struct umadv *adv)
{
	uint64_t now = 0;

	if (!adv || um_fork_exit_is_dead(&adv->fork_exit))
		return 0;
	um_context_lock(adv);
	if (adv->device.simulated)
		now = adv->device.gpu->api->now(adv->device.gpu);
	um_context_unlock(adv);
	return now;
}
