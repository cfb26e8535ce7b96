/* SPDX-License-Identifier: Apache-2.0
 *
 * umadvise.h - let iterative CUDA programs outgrow GPU memory
 *
 * All tensors live in managed memory. The program announces its allocations, its operations with the tensors that they
 * read and write, and the beginning of each iteration. The library learns one iteration, plans the next ones, and
 * issues prefetch, eviction and discard hints so that pages are on the device before an operation needs them. Hints
 * never change results.
 *
 *     struct umadv *adv;
 *     umadv_open(&adv, NULL);
 *     umadv_alloc(adv, (void **)&w, bytes, "conv1.weight", UMADV_PARAM);
 *     for (int step = 0; step < steps; step++) {
 *             umadv_iter(adv, NULL);
 *             umadv_op(adv, stream, "conv1", UMADV_USES(UMADV_READ(x), UMADV_READ(w), UMADV_WRITE(y)));
 *             conv1<<<grid, block, 0, stream>>>(x, w, y);
 *     }
 *     umadv_close(adv);
 *
 * Errors: functions return 0 or a negative errno value and set outputs only on success; umadv_strerror() describes the
 * value. Functions that return int give -EINVAL for a NULL context or argument that must not be NULL. A failure of the
 * library's own work (a refused hint, no memory to learn) is not returned but counted in the statistics; the program
 * continues as with plain managed memory.
 *
 * Ownership: the caller keeps all strings and arrays that it passes; the library copies what it needs before the call
 * returns. The context owns memory of umadv_alloc; adopted memory stays the program's.
 *
 * Threads: every function may be called from any thread; one lock guards a context. Calls for one stream must come in
 * launch order.
 *
 * Units: sizes are in bytes, times in nanoseconds, unless a comment says otherwise.
 *
 * Cost classes. *Op path*: O(uses x log tensors); once an iteration has been learned, no allocation on the calling
 * thread, and a system call only to wait for the op's data or to wake a helper thread. *Iteration path*: linear in the
 * operations of the iteration; without a planning thread, plans are made here. *Start path*: may open files and call
 * the driver.
 *
 * No CUDA header is needed: a stream is passed as the pointer that cudaStream_t is (NULL: the default stream).
 * umadvise(7), section "CUDA", describes per-thread default streams, destroyed streams, stream capture, fork, exit and
 * CUDA errors.
 */
#ifndef UMADVISE_H
#define UMADVISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

#define UMADV_VERSION_MAJOR 0
#define UMADV_VERSION_MINOR 1
#define UMADV_VERSION_PATCH 0

#if defined(__GNUC__)
#define UMADV_API __attribute__((visibility("default")))
#else
#define UMADV_API
#endif

struct umadv; /* a context; a program has one for each device that it uses */

/* Purpose of a tensor. It guides the planner as long as only one iteration is known; UMADV_OTHER is always valid. */
enum umadv_role {
	UMADV_OTHER,
	UMADV_PARAM,
	UMADV_GRAD,
	UMADV_OPTIM,
	UMADV_ACT,
	UMADV_INPUT,
	UMADV_WORKSPACE,
	UMADV_COMM /* for MPI or NCCL: plain device memory (cudaMalloc), never managed, no hints. Where the budget is
		      the device's memory, plans leave room for it: allocate it before the first iteration */
};

/* --- open, close ------------------------------------------------------------------------------------------------ */

enum umadv_device {
	UMADV_DEVICE_AUTO, /* the current CUDA device of the process; without one as UMADV_DEVICE_NONE. A driver before
			      CUDA 12.0 gets no hints, and gives managed memory */
	UMADV_DEVICE_NONE, /* every call succeeds and does nothing; allocations are host memory */
	UMADV_DEVICE_SIM /* the simulated GPU described by `profile` */
};

enum umadv_log_level { UMADV_LOG_ERROR, UMADV_LOG_WARN, UMADV_LOG_INFO, UMADV_LOG_DEBUG };

/* NVTX marks for an attached profiler, see umadvise(7): everything, the ranges of iterations, or nothing. */
enum umadv_nvtx { UMADV_NVTX_ALL, UMADV_NVTX_ITERATIONS, UMADV_NVTX_OFF };

/* Eviction policy in steady iterations. LIBRARY: the library prefetches blocks to the host before their room is needed.
 * DRIVER: the driver evicts when room is needed, and the library prefetches blocks that must stay once more. AUTO: the
 * faster of both by the driver costs in the device profile. */
enum umadv_evict { UMADV_EVICT_AUTO, UMADV_EVICT_LIBRARY, UMADV_EVICT_DRIVER };

/* Checks of the program's promises, on the simulated GPU only. DISCARDS poisons discarded content, so that a wrong
 * promise gives wrong results. ON also logs accesses of a kernel's host code that its op does not declare, and writes
 * that its op declares as reads; it hashes pages, so kernels take several times as long in real time. It compares the
 * content of tensors before and after a relaunch, and launches an op that made other content not again. */
enum umadv_check { UMADV_CHECK_OFF, UMADV_CHECK_ON, UMADV_CHECK_DISCARDS };

/* Where plans are made. ON: by a helper thread of low priority, while the program runs on; the plan is followed some
 * iterations later. OFF: in umadv_iter, which returns when the plan is made. AUTO: OFF in simulated time, where equal
 * programs get equal hints, and otherwise ON. */
enum umadv_plan_thread { UMADV_PLAN_THREAD_AUTO, UMADV_PLAN_THREAD_ON, UMADV_PLAN_THREAD_OFF };

/* What happens where measured iterations are faster with fewer hints. ON: these hints stop, and are tried again later.
 * It is measured by a few iterations with fewer hints, now and then, which cost less than 1 % of the time. Only where
 * the budget is the device's memory. OFF: hints are not compared. */
enum umadv_referee { UMADV_REFEREE_ON, UMADV_REFEREE_OFF };

/* Receives one line without a newline. Called under the context's lock: it must not call functions of this library. */
typedef void (*umadv_log_fn)(void *user, enum umadv_log_level level, const char *line);

/* Options of a context. Fill with umadv_options_init, then change. The struct grows at its end; struct_size says which
 * version the caller has. Strings are copied by umadv_open. The environment variable of an option is its default. */
#define UMADV_SHARE_OFF (-1)

struct umadv_options {
	size_t struct_size;
	enum umadv_device device; /* UMADVISE_DEVICE=auto|none|sim */
	uint64_t budget; /* maximum of device memory in use, bytes; at least 2 MiB, otherwise no hints. 0: the memory of
			    the device (on a CUDA device 95 % of what is free when the context is opened).
			    UMADVISE_BUDGET=BYTES[KiB|MiB|GiB] */
	const char *strategy; /* "lookahead" (default) or another one of umadvise(7). UMADVISE_STRATEGY */
	const char *profile; /* device profile: built-in name or file; default "v100" with `sim`. UMADVISE_PROFILE */
	const char *plan; /* saved plan to start from, or NULL. UMADVISE_PLAN=FILE */
	const char *trace; /* umtrace to write, or NULL. UMADVISE_TRACE=FILE */
	umadv_log_fn log; /* NULL: stderr; each cause is logged once */
	void *log_user;
	enum umadv_log_level log_level; /* default WARN. UMADVISE_LOG=error|warn|info|debug */
	enum umadv_check check; /* UMADVISE_CHECK=on|off|discards */
	unsigned plan_ms; /* time to search for a better plan, in ms; 0: a fixed effort, some 50 ms for 2,000 ops, so
			     that equal programs get equal plans. UMADVISE_PLAN_TIME */
	const char *run_log; /* run log to write, for `umadvise report`, or NULL. In it, in `plan` and in `trace`, %p
				becomes the process id and %r the rank, see umadvise(7). UMADVISE_RUN_LOG=FILE */
	uint64_t run_log_bytes; /* maximum size of the run log; 0: 64 MiB. UMADVISE_RUN_LOG_SIZE=BYTES[KiB|MiB|GiB] */
	enum umadv_nvtx nvtx; /* UMADVISE_NVTX=all|iterations|off */
	int counters; /* add the driver's own counters (CUPTI) to the run log. UMADVISE_COUNTERS=on|off */
	enum umadv_evict evict; /* always LIBRARY with a budget below the device's memory.
				   UMADVISE_EVICT=auto|library|driver */
	enum umadv_plan_thread plan_thread; /* UMADVISE_PLAN_THREAD=auto|on|off */
	enum umadv_referee referee; /* UMADVISE_REFEREE=on|off */
	/* Host memory that hints may use for evicted data, bytes, of this process alone. 0: DETECT on a CUDA device,
	 * NONE on the simulated GPU. UMADV_HOST_MEMORY_DETECT: when the context is opened, the least of the available
	 * memory and of what the limits of its cgroups leave, divided among the ranks of the node. For
	 * lookahead, and for prefetch-on-use with a budget below the device's memory.
	 * UMADVISE_HOST_MEMORY=BYTES[KiB|MiB|GiB]|detect|none */
	uint64_t host_memory;
	int share; /* weight of this context among those of the user's processes that share the device, 1 to 1000;
		      0: 1; UMADV_SHARE_OFF: it takes no part, and the others know nothing of it.
		      UMADVISE_SHARE=off|WEIGHT */
	int host_node; /* NUMA node of the host for evicted data, on a CUDA device. 0: the nearest to the device, where
			  the host has memory on several; UMADV_HOST_NODE(n): node n; UMADV_HOST_NODE_OFF: any. Where
			  the driver refuses the node, one log line says so, and it is any. UMADVISE_HOST_NODE=N|off */
};

#define UMADV_HOST_NODE_OFF (-1)
#define UMADV_HOST_NODE(n) ((n) + 1)
#define UMADV_HOST_MEMORY_NONE UINT64_MAX
#define UMADV_HOST_MEMORY_DETECT (UINT64_MAX - 1)

/* Sets defaults, then the values of environment variables that are valid. umadv_open logs invalid values. Strings point
 * into the environment. Start path. */
UMADV_API void umadv_options_init(struct umadv_options *options);

/* Opens a context for the current device and stores it in `out`; end it with umadv_close. A program has a context for
 * each device that it uses: memory, streams and operations of one are not passed to another. Its functions may be
 * called whatever device is current. `options` NULL: defaults and
 * environment (UMADVISE_DISABLE=1: no hints). An invalid value of a variable is logged and the
 * default is used; an invalid option of the program is an error. 0; -EINVAL (the log says why); -ENODEV; -ENOMEM; with
 * `plan`, the errors of umadv_load_plan. Start path. */
UMADV_API int umadv_open(struct umadv **out, const struct umadv_options *options);

/* Ends the context, in any state and from any thread: drops hints that have not begun, waits for the others and for
 * operations that use memory of umadv_alloc, and frees that memory. Calls of other threads on this context must have
 * returned, and none may follow. If the process exits with an open context, only its hints end: calls of other threads
 * continue without hints. NULL is allowed. */
UMADV_API void umadv_close(struct umadv *adv);

/* --- memory ----------------------------------------------------------------------------------------------------- */

/* Allocates `bytes` of managed memory, 512-byte aligned, content undefined. Reports and plans show `name` (may be NULL;
 * names need not be unique). The memory may be that of a freed tensor: ops may use it at once on any stream, because
 * they run after the ops that used the freed tensor; the CPU may use it after the ops announced so far have finished.
 * 0; -EINVAL; -ENOMEM; -ENODEV in a forked child. Cost O(log tensors), plus CUDA calls if memory was freed with several
 * streams in use; may wait for a hint on that memory, and under a plan for the ops that used it. Before it takes more
 * memory from CUDA, it waits for the device (cudaDeviceSynchronize) if freed memory may be in use on a stream that has
 * had no op since; not after an op was announced on a stream that captures. */
UMADV_API int umadv_alloc(struct umadv *adv, void **ptr, size_t bytes, const char *name, enum umadv_role role);

/* Ends a tensor of umadv_alloc. Ops that use it may still be running: the memory is reused only after them. NULL is
 * allowed. 0; -EINVAL: not the start of a tensor, or tensors inside it are still alive. Cost O(log tensors), plus an
 * event recorded on each default stream that has had ops now, and on each other one before its next op. */
UMADV_API int umadv_free(struct umadv *adv, void *ptr);

/* The same in stream order, as cudaMallocAsync and cudaFreeAsync: `stream` may use the memory from the call on, others
 * once they are ordered after it; the work on `stream` so far, with what that is ordered after, is the last to use the
 * freed memory. Where several streams are in use, memory is reused sooner than with umadv_free. On a stream that
 * captures they are umadv_alloc and umadv_free. Results and cost as those. */
UMADV_API int umadv_alloc_async(struct umadv *adv, void **ptr, size_t bytes, const char *name, enum umadv_role role,
				void *stream);
UMADV_API int umadv_free_async(struct umadv *adv, void *ptr, void *stream);

/* umadv_adopt announces memory that the program allocated itself (cudaMallocManaged), or a part of a known tensor:
 * frameworks carve tensors out of one allocation. Ranges may nest, but must not overlap in part. umadv_disown takes the
 * same start and size; call it before the memory is freed. Contexts of several devices may adopt the same memory: while
 * several of them use it, no plan holds it, and each op prefetches what another device has taken (doc/devices.md). 0;
 * -EINVAL; -EEXIST: overlaps in part; -ENOMEM. Cost O(log tensors); times the number of open contexts if there are
 * several. */
UMADV_API int umadv_adopt(struct umadv *adv, void *ptr, size_t bytes, const char *name, enum umadv_role role);
UMADV_API int umadv_disown(struct umadv *adv, void *ptr, size_t bytes);

/* Promises that in each iteration this tensor is written before it is read (scratch, activations that stay allocated):
 * between iterations its content is dead and may be discarded. A wrong promise changes results. Only ops may write the
 * tensor, not the CPU. 0; -EINVAL: not the start of a tensor. */
UMADV_API int umadv_transient(struct umadv *adv, void *ptr);

/* Promises that the tensor's content, as of the ops announced so far, is not read again. A wrong promise changes
 * results. The next write must be an op's, or one after umadv_host. 0; -EINVAL: not the start of a tensor. */
UMADV_API int umadv_dead(struct umadv *adv, void *ptr);

/* --- operations and iterations ------------------------------------------------------------------------------------ */

enum umadv_access {
	UMADV_ACCESS_READ = 1,
	UMADV_ACCESS_WRITE = 2, /* without READ: the whole range is overwritten, its previous content is dead */
	UMADV_ACCESS_UPDATE = 3
};

/* One range that an op uses. `ptr` may point into a tensor. The reserved members are zero, as the macros below and
 * designated initialisers make them; an op with another value in them is refused. */
struct umadv_use {
	const void *ptr;
	size_t bytes; /* 0: from `ptr` to the end of the tensor */
	size_t touched; /* bytes actually read or written, scattered over the range (look-ups in a table); 0: all */
	unsigned access; /* enum umadv_access */
	unsigned reserved;
	const void *reserved_more;
};

static inline struct umadv_use umadv_use_(const void *ptr, size_t bytes, size_t touched, unsigned access)
{
	struct umadv_use u;

	u.ptr = ptr;
	u.bytes = bytes;
	u.touched = touched;
	u.access = access;
	u.reserved = 0;
	u.reserved_more = NULL;
	return u;
}

#define UMADV_READ(ptr) umadv_use_((ptr), 0, 0, UMADV_ACCESS_READ)
#define UMADV_WRITE(ptr) umadv_use_((ptr), 0, 0, UMADV_ACCESS_WRITE)
#define UMADV_UPDATE(ptr) umadv_use_((ptr), 0, 0, UMADV_ACCESS_UPDATE)
#define UMADV_READ_RANGE(ptr, bytes) umadv_use_((ptr), (bytes), 0, UMADV_ACCESS_READ)
#define UMADV_WRITE_RANGE(ptr, bytes) umadv_use_((ptr), (bytes), 0, UMADV_ACCESS_WRITE)
#define UMADV_UPDATE_RANGE(ptr, bytes) umadv_use_((ptr), (bytes), 0, UMADV_ACCESS_UPDATE)
#define UMADV_LOOKUP(ptr, touched) umadv_use_((ptr), 0, (touched), UMADV_ACCESS_READ)

/* Expands to two arguments, an array and its length; the array lives until the call returns. */
#ifdef __cplusplus
#define UMADV_USES(...)                                                                                                \
	(std::initializer_list<umadv_use>{__VA_ARGS__}).begin(), (std::initializer_list<umadv_use>{__VA_ARGS__}).size()
#else
#define UMADV_USES(...)                                                                                                \
	(const struct umadv_use[]){__VA_ARGS__},                                                                       \
		(sizeof((const struct umadv_use[]){__VA_ARGS__}) / sizeof(struct umadv_use))
#endif

/* Announces the next launch on `stream` (cudaStream_t) with the ranges that it reads and writes. Call just before the
 * launch, after all waits of the stream for other streams: content that the op overwrites may be discarded from this
 * call on. Where threads share a context, call umadv_iter, umadv_free and umadv_dead, and announce dependent ops, only
 * after the launch. A pointer outside every known tensor is ignored, counted and logged once. 0; -EINVAL, logged once:
 * a range exceeds its tensor or is memory of another context (of another device), a use neither reads nor writes, or a
 * reserved member is not zero. Op path. */
UMADV_API int umadv_op(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses, size_t n_uses);

/* Launches an op on `stream`. 0, or an error: nothing was launched. */
typedef int (*umadv_launch_fn)(void *arg, void *stream);

/* Announces an op as umadv_op does, launches it by launch(arg, stream), and registers that call as the op's relaunch
 * with all that the op writes: the library may drop what it wrote, and call launch(copy of arg, stream) on the same
 * stream to make it anew before an op uses it, until the next umadv_iter. The program promises that
 *
 *   - launched again with the same content of what it reads, the op writes the same: one that draws random numbers or
 *     adds to memory that it does not declare needs umadv_op instead;
 *   - the launch uses `arg_bytes` of `arg`, which are copied, and what pointers in them point to, until the next
 *     umadv_iter; it calls no function of this library but umadv_sim_run;
 *   - until the next umadv_iter only announced ops use what the op writes, and write what it reads: the CPU only after
 *     umadv_host, and no captured work.
 *
 * The op is launched also if the announcement is refused. A relaunch that returns an error is repeated, and is the last
 * one. Relaunches need a program that calls umadv_iter and this library from one thread, ops on one stream, and
 * tensors of umadv_alloc that such ops write: one as a whole, and others may then update it in place. 0; as umadv_op;
 * -EIO: the launch returned an error, or a relaunch did so each time and content is lost. C++ programs may pass a
 * lambda: umadvise.hpp. Op path. */
UMADV_API int umadv_launch(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses,
			   size_t n_uses, umadv_launch_fn launch, const void *arg, size_t arg_bytes);

/* A launch of a kernel; umadvise_cuda.h fills it from the arguments of cudaLaunchKernel. */
struct umadv_kernel {
	size_t struct_size;
	const void *kernel; /* as `launch` and `param` take it */
	unsigned grid[3], block[3];
	void **args; /* pointers to the parameters */
	size_t shared_bytes;
	/* Launches the kernel. 0, or an error: nothing was launched. */
	int (*launch)(const struct umadv_kernel *kernel, void *stream);
	/* Stores offset and size of a parameter, as cudaFuncGetParamInfo does. 0; 1 (cudaErrorInvalidValue): there are
	 * fewer; another error, or NULL: they are not known. */
	int (*param)(const void *kernel, size_t index, size_t *offset, size_t *bytes);
};

/* As umadv_launch, for one kernel: the parameters are copied, so that the program need not keep them. Where they are
 * not known (CUDA before 12.4), the op is launched and not registered, which is logged once. `kernel` is borrowed until
 * the call returns. 0; as umadv_launch. Op path, plus two calls of `param` for each parameter; allocates if parameters
 * exceed some 2 KB. */
UMADV_API int umadv_launch_kernel(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses,
				  size_t n_uses, const struct umadv_kernel *kernel);

/* Offers `n` algorithms of the op that the calling thread announces next: sizes[i] bytes of workspace, which may be 0,
 * and the op's time with it in ns. Stores the index of one in `choice`: the one that the plan keeps room for, so that
 * the iteration is shortest; without a plan the fastest that fits beside all that is alive, or the smallest. `memory`
 * receives its workspace, managed memory with undefined content, NULL if it needs none. The op is launched with both:
 *
 *     umadv_workspace(adv, sizes, times, n, &i, &memory);
 *     umadv_op(adv, stream, "conv1", UMADV_USES(UMADV_READ(x), UMADV_READ(w), UMADV_WRITE(y)));
 *     cudnnConvolutionForward(..., algorithms[i], memory, sizes[i], ...);
 *
 * The library adds the workspace to what the op writes. Its memory ends with the calling thread's first call after the
 * launch that is an allocation, a free, an op, or the begin of an iteration; it is not for umadv_free or for captured
 * work. So workspaces and tensors share memory, and a buffer of the program for all workspaces is not needed. Offer the
 * same sizes in each iteration. An op with a workspace is not launched again, see umadv_launch. 0; -EINVAL: no
 * algorithm or more than UMADV_MOST_WORKSPACES, or a time of 0; -ENOMEM: not even the smallest workspace can be
 * allocated. Op path. */
UMADV_API int umadv_workspace(struct umadv *adv, const size_t *sizes, const uint64_t *times, size_t n, size_t *choice,
			      void **memory);
#define UMADV_MOST_WORKSPACES 64

/* umadv_op with all details. Set struct_size; zero means "not given". */
struct umadv_op_info {
	size_t struct_size;
	const struct umadv_use *uses;
	size_t n_uses;
	double flops, bytes; /* cost: floating-point operations, bytes of device-memory traffic. If both and `ns` are 0,
				each byte of the uses is moved once. An op above the budget whose `bytes` are at most
				1.5 times those of its uses, with at most 16 `flops` for each, may access a part of
				them on the host, over the link */
	uint64_t ns; /* cost: measured time */
	/* Relaunch: calling relaunch(relaunch_arg, stream) launches the op again, and returns 0, or an error if nothing
	 * was launched. With the same content of its inputs the op produces the same content in `relaunch_outs`
	 * (pointers among its writes; NULL: all of them) and touches no other memory. The argument is copied. The
	 * promises of umadv_launch hold. */
	umadv_launch_fn relaunch;
	const void *relaunch_arg;
	size_t relaunch_arg_bytes;
	const void *const *relaunch_outs;
	size_t n_relaunch_outs;
	char phase; /* 'f' forward, 'b' backward, 'o' optimizer */
	char collective; /* 1: the op runs until other processes have joined it (an all-reduce of NCCL), so that its
			    time is not the device's own. The same in each iteration. It is not launched again. An op
			    named as a kernel of NCCL, ncclDevKernel_..., is a collective without this */
};

UMADV_API int umadv_op_ex(struct umadv *adv, void *stream, const char *name, const struct umadv_op_info *info);

/* Waits until the work of a stream that has had ops is complete; from then on the library does not use its handle. Call
 * it when the stream will have no ops for long, and before it is destroyed: CUDA may crash when it is passed the handle
 * of a destroyed stream, and gives the handle to a later stream.
 *
 * Without this call, a stream may be destroyed once its work has completed if the program announces and allocates
 * nothing after that: it calls none of umadv_op, umadv_alloc, their variants, umadv_host and umadv_iter, and begins no
 * NVTX range that marks an iteration. With a strategy that plans (lookahead), these record events on any stream that
 * has had ops. All other functions may be called: a program may destroy its streams, then free its tensors and close
 * the context. Only umadv_close may follow if umadv_launch was called for ops on the stream, since a launch may be
 * repeated by any other call. With the strategies on-demand and prefetch-on-use, which use only the stream at hand, the
 * call may always be left out. A stream that was not forgotten keeps its place: plans distinguish 4 streams at once,
 * memory is reused among 16.
 *
 * 0, also for a stream without ops; -EINVAL; -EBUSY: it captures; -EIO: CUDA refused to wait. Cost: as
 * cudaStreamSynchronize. */
UMADV_API int umadv_forget_stream(struct umadv *adv, void *stream);

/* Announces that the calling thread is about to read or write these ranges on the CPU: a checkpoint, a loss, logging.
 * Call it before the access, at the same point of each iteration: then the content is evicted to the host before the
 * access and prefetched again before the next op that needs it. The call waits for discards and evictions of these
 * ranges that the library has requested. It orders nothing else: the program synchronises with its own ops as CUDA
 * demands. Memory that umadv_dead was called for may be written by the CPU after this call. 0; -EINVAL as umadv_op.
 * Op path. */
UMADV_API int umadv_host(struct umadv *adv, const char *name, const struct umadv_use *uses, size_t n_uses);

/* Begins an iteration. `name` (train, eval, a bucket) may be NULL. 0 or -EINVAL. Iteration path: learning happens here,
 * and planning without a planning thread (enum umadv_plan_thread). Optional: where it was never called, iterations are
 * found in the ops, and umadv_op is on the iteration path where one begins. */
UMADV_API int umadv_iter(struct umadv *adv, const char *name);
/* An iteration of more ops than this gets no plan; umadvise(7) has the limits of ranges and tensors. */
#define UMADV_MOST_OPS (1u << 20)

/* --- statistics and capabilities ---------------------------------------------------------------------------------- */

struct umadv_stats {
	size_t struct_size;
	uint64_t iterations, ops, tensors_live, bytes_live, bytes_live_peak;
	uint64_t unknown_pointers; /* uses outside every tensor */
	uint64_t plans, divergences; /* plans adopted; iterations that departed from the schedule */
	uint64_t hinted_iterations; /* with hints of a plan, or of a strategy without plans */
	uint64_t first_hinted_iteration; /* counted from 0; UINT64_MAX: none yet */
	uint64_t hints_issued, hints_refused, hints_dropped; /* dropped: planned, not issued (queue full, iteration
							        departed from the schedule, budget) */
	uint64_t prefetch_bytes, evict_bytes, discard_bytes; /* requested by hints */
	uint64_t errors; /* failed allocations and device calls of the library itself */
	uint64_t plan_ns; /* predicted time of a steady iteration, with measured waits in collectives; 0: no plan */
	uint64_t in_core_ns; /* the same with unlimited memory */
	uint64_t budget_bytes, plan_peak_bytes;
	uint64_t captured; /* ops announced on a capturing stream: ignored */
	uint64_t measured; /* ops of the current plan with times measured on the device */
	uint64_t host_accesses; /* calls of umadv_host; not among `ops` */
	/* hints_issued and prefetch_bytes by source: the plan, ops that are predicted without one, the op at hand */
	uint64_t hints_scheduled, hints_predicted, hints_announced;
	uint64_t prefetch_scheduled_bytes, prefetch_predicted_bytes, prefetch_announced_bytes;
	uint64_t kept_bytes; /* discards that were replaced by copies: the program might have needed the content */
	uint64_t played_ns; /* measured time of a steady iteration under the current plan; 0: not measured yet */
	uint64_t gates_waited; /* ops whose stream waited for prefetches in flight */
	uint64_t gates_late; /* ops for which the calling thread waited until their prefetches were submitted */
	uint64_t stuck; /* waits that ended because nothing had moved for a while: the op went on */
	uint64_t host_wait_ns; /* time that calling threads waited so */
	/* Tensors born while a plan is followed: at their planned address; and at another one, because their size is
	 * not the planned one or the address was in use */
	uint64_t allocs_planned, allocs_elsewhere;
	uint64_t planning_ns; /* processor time spent on plans; 0 in simulated time */
	uint64_t plans_unused; /* plans that were made and not followed, as the program had changed */
	uint64_t limited_iterations; /* that had fewer hints, as others did not pay, or to measure that */
	uint64_t relaunches, relaunch_errors; /* ops launched again; relaunches that returned an error */
	uint64_t relaunch_mismatches; /* tensors with other content after a relaunch: with UMADVISE_CHECK=1 */
};

UMADV_API int umadv_stats_get(struct umadv *adv, struct umadv_stats *stats); /* set struct_size first */

struct umadv_caps {
	size_t struct_size;
	int managed; /* prefetch, eviction and oversubscription work */
	int discard;
	int simulated;
	uint64_t capacity; /* device memory for managed data */
	char device[64];
	char why[160]; /* the reason if no hints are issued, else empty */
};

UMADV_API int umadv_caps_get(struct umadv *adv, struct umadv_caps *caps); /* set struct_size first */

/* umadv_save_plan writes the current plan as a umplan; while the first one is made, it waits for it. -ENODATA without
 * a plan. umadv_load_plan reads one: it is followed from the first iteration that fits. In `path`, %p becomes the
 * process id and %r the rank. Both return -EINVAL (logged
 * with the reason) for a file that is not valid or a plan that is not sound, -ENODEV in a forked child, -ENOMEM, or the
 * error of the file operation. Start path. */
UMADV_API int umadv_save_plan(struct umadv *adv, const char *path);
UMADV_API int umadv_load_plan(struct umadv *adv, const char *path);

UMADV_API const char *umadv_strerror(int err); /* static string; accepts both signs */
UMADV_API const char *umadv_version(void); /* "0.1.0" */

/* --- the simulated GPU (UMADV_DEVICE_SIM) ------------------------------------------------------------------------- */

/* Launches a kernel of the simulated GPU: fn(arg) runs on the host when simulated time reaches the kernel. Its accesses
 * and its cost are those of the preceding umadv_op call on this stream. `fn` NULL: memory and time only. `arg` must
 * live until then. 0; -ENODEV: not the simulated GPU; -ENOMEM; -EIO: the simulated device reported an error. */
UMADV_API int umadv_sim_run(struct umadv *adv, void *stream, void (*fn)(void *arg), void *arg);

/* umadv_sim_sync waits for all enqueued work (0, -ENODEV, -EIO); afterwards the CPU may read the results of kernels.
 * umadv_sim_now is the program's simulated clock, 0 elsewhere. */
UMADV_API int umadv_sim_sync(struct umadv *adv);
UMADV_API uint64_t umadv_sim_now(struct umadv *adv);

/* In a program compiled for per-thread default streams, stream NULL is the calling thread's. */
#if defined CUDA_API_PER_THREAD_DEFAULT_STREAM || defined __CUDA_API_PER_THREAD_DEFAULT_STREAM
static inline void *umadv_stream_(void *stream)
{
	return stream ? stream : (void *)2; /* cudaStreamPerThread */
}
#define umadv_op(adv, stream, ...) umadv_op(adv, umadv_stream_(stream), __VA_ARGS__)
#define umadv_launch(adv, stream, ...) umadv_launch(adv, umadv_stream_(stream), __VA_ARGS__)
#define umadv_op_ex(adv, stream, ...) umadv_op_ex(adv, umadv_stream_(stream), __VA_ARGS__)
#define umadv_forget_stream(adv, stream) umadv_forget_stream(adv, umadv_stream_(stream))
#define umadv_sim_run(adv, stream, ...) umadv_sim_run(adv, umadv_stream_(stream), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
