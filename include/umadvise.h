/* SPDX-License-Identifier: Apache-2.0
 *
 * umadvise.h - let iterative CUDA programs outgrow GPU memory
 *
 * All tensors live in managed memory. Tell the library what is allocated, what each operation reads and writes, and
 * where an iteration begins; it learns one iteration, plans the next ones, and issues prefetch, eviction and discard
 * hints so that pages are on the device before an operation needs them. Hints never change results.
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
 * Errors: functions return 0 or a negative errno value and set outputs only on success; umadv_strerror() puts it in
 * words. A failure of the library itself (a hint refused, no memory to learn) is counted in the statistics, not
 * returned: the program runs on as with plain managed memory.
 *
 * Fork, exit, stream capture, errors of CUDA: umadvise(7), "CUDA".
 *
 * Threads: every function may be called from any thread; a context is guarded by one lock. Calls on one stream must
 * come in launch order.
 *
 * Units: sizes are bytes, times nanoseconds. Cost class *op path*: O(uses x log tensors), and once an iteration has
 * been learned no allocation and no system call on the calling thread.
 *
 * No CUDA header is needed: a stream is passed as the pointer that cudaStream_t is (NULL: the default stream).
 * Per-thread default streams, streams that are destroyed: umadvise(7), "CUDA".
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

struct umadv; /* one context per device */

/* What a tensor is for. Helps where one iteration alone does not tell; OTHER is always right. */
enum umadv_role {
	UMADV_OTHER,
	UMADV_PARAM,
	UMADV_GRAD,
	UMADV_OPTIM,
	UMADV_ACT,
	UMADV_INPUT,
	UMADV_WORKSPACE,
	UMADV_COMM /* handed to MPI or NCCL: plain device memory, never managed, no hints */
};

/* --- open, close ------------------------------------------------------------------------------------------------ */

enum umadv_device {
	UMADV_DEVICE_AUTO, /* the current CUDA device of the process; where there is none: none */
	UMADV_DEVICE_NONE, /* succeeds and does nothing: allocations are host memory */
	UMADV_DEVICE_SIM /* the simulated GPU of `profile` */
};

enum umadv_log_level { UMADV_LOG_ERROR, UMADV_LOG_WARN, UMADV_LOG_INFO, UMADV_LOG_DEBUG };

/* Marks for a profiler that is attached by NVTX: see umadvise(7). */
enum umadv_nvtx { UMADV_NVTX_ALL, UMADV_NVTX_ITERATIONS, UMADV_NVTX_OFF };

/* Eviction policy in steady iterations. LIBRARY prefetches blocks to the host ahead of the need for room; DRIVER lets
 * the driver evict them when room is needed; AUTO takes the policy that the costs in the device profile make faster. */
enum umadv_evict { UMADV_EVICT_AUTO, UMADV_EVICT_LIBRARY, UMADV_EVICT_DRIVER };

/* Checks of the program's promises, on the simulated GPU alone. DISCARDS poisons discarded content, so that a wrong
 * promise shows as a wrong number. ON also logs what the host code of kernels touches and their ops do not declare, or
 * write and declare read; it hashes pages, so kernels take several times as long. */
enum umadv_check { UMADV_CHECK_OFF, UMADV_CHECK_ON, UMADV_CHECK_DISCARDS };

/* Called with one line without a newline, under the context's lock: must not call back. */
typedef void (*umadv_log_fn)(void *user, enum umadv_log_level level, const char *line);

/* Grows at the end; struct_size tells which. Fill with umadv_options_init, then change. Strings are copied. */
struct umadv_options {
	size_t struct_size;
	enum umadv_device device; /* UMADVISE_DEVICE=auto|none|sim */
	uint64_t budget; /* bytes of device memory to keep to; below 2 MiB there are no hints; 0: what the
			    device has (of a CUDA device, 95 % of what is free when the context is opened).
			    UMADVISE_BUDGET=BYTES[KiB|MiB|GiB] */
	const char *strategy; /* "lookahead" (default), or another of umadvise(7). UMADVISE_STRATEGY */
	const char *profile; /* device profile, a built-in name or a file. UMADVISE_PROFILE, default "v100" on `sim` */
	const char *plan; /* a saved plan to start warm from, or NULL. UMADVISE_PLAN=FILE */
	const char *trace; /* write what happens as a umtrace, or NULL. UMADVISE_TRACE=FILE */
	umadv_log_fn log; /* NULL: warnings and errors to stderr, each cause once */
	void *log_user;
	enum umadv_log_level log_level; /* default WARN. UMADVISE_LOG=error|warn|info|debug */
	enum umadv_check check; /* UMADVISE_CHECK=on|off|discards */
	unsigned plan_ms; /* go on looking for a better plan for so long, in umadv_iter; 0: the usual effort, some 50 ms
			     for 2,000 ops, the same plan for the same program each time. UMADVISE_PLAN_TIME */
	const char *run_log; /* write what the library sees and does for `umadvise report`, or NULL; %p: the process's
				number. UMADVISE_RUN_LOG=FILE */
	uint64_t run_log_bytes; /* maximum size of that file; 0: 64 MiB. UMADVISE_RUN_LOG_SIZE=BYTES[KiB|MiB|GiB] */
	enum umadv_nvtx nvtx; /* UMADVISE_NVTX=all|iterations|off */
	int counters; /* add the driver's own counters, by CUPTI, to `run_log`. UMADVISE_COUNTERS=on|off */
	enum umadv_evict evict; /* with a budget below what the device has, always LIBRARY.
				   UMADVISE_EVICT=auto|library|driver */
};

/* Defaults, then the environment: variables that are set, not empty, and accepted. umadv_open logs the others. */
UMADV_API void umadv_options_init(struct umadv_options *options);

/* Opens a context for the current device. `options` NULL: defaults and environment (UMADVISE_DISABLE=1: as DEVICE_NONE,
 * no hints). A value of a variable that is not accepted is logged and the default is used; an option that the program
 * set and that makes no sense is an error. 0; -EINVAL (logged); -ENODEV; -ENOMEM. */
UMADV_API int umadv_open(struct umadv **out, const struct umadv_options *options);

/* Ends the context, in any state and from any thread: drops hints that have not begun, waits for the others and for
 * operations that use memory of umadv_alloc, and frees that memory. Calls of other threads on this context must have
 * returned, and none may follow. A process that exits with a context open ends its hints alone: calls of other threads
 * go on, without hints. NULL is allowed. */
UMADV_API void umadv_close(struct umadv *adv);

/* --- memory ----------------------------------------------------------------------------------------------------- */

/* Allocates `bytes` of managed memory, 512-byte aligned, undefined content. `name` (copied, may be NULL) is what
 * reports and plans call it; equal names are fine. The memory may be that of a tensor freed before: ops may use it at
 * once on any stream, since they run after the ops that used the freed tensor. The CPU may use it after the ops
 * announced so far have finished. 0, -EINVAL, -ENOMEM. Cost O(log tensors), and calls into CUDA where memory was freed
 * with several streams in use; may wait for a hint on that memory that is still under way. */
UMADV_API int umadv_alloc(struct umadv *adv, void **ptr, size_t bytes, const char *name, enum umadv_role role);

/* Ends a tensor. Ops that use it and were launched already may still be running: the memory is used again only
 * after them. Cost O(log tensors), and an event recorded on each stream that ops came on. NULL is allowed. 0, or
 * -EINVAL (not a tensor's start, or tensors inside it still live). */
UMADV_API int umadv_free(struct umadv *adv, void *ptr);

/* Names memory that is the program's own (cudaMallocManaged), or a part of memory adopted before: frameworks carve
 * tensors out of one allocation. Part of the same memory must nest. 0, -EINVAL, -EEXIST (overlaps in part), -ENOMEM.
 * umadv_disown before the memory is freed. */
UMADV_API int umadv_adopt(struct umadv *adv, void *ptr, size_t bytes, const char *name, enum umadv_role role);
UMADV_API int umadv_disown(struct umadv *adv, void *ptr, size_t bytes);

/* The content of this tensor is never read in an iteration before that iteration has written it (scratch, activations
 * that are kept allocated): between iterations it is dead and may be discarded. A promise: wrong, it changes results.
 * Only ops write it, not the CPU. */
UMADV_API int umadv_transient(struct umadv *adv, void *ptr);

/* The content of this tensor, as of the ops announced so far, will not be read again. A promise, as above; the next to
 * write it is an op. */
UMADV_API int umadv_dead(struct umadv *adv, void *ptr);

/* --- what runs -------------------------------------------------------------------------------------------------- */

enum umadv_access {
	UMADV_ACCESS_READ = 1,
	UMADV_ACCESS_WRITE = 2, /* alone: overwritten as a whole; what the range held before is dead */
	UMADV_ACCESS_UPDATE = 3
};

/* One range that an op touches. ptr may point into a tensor. The reserved members are zero: the macros below and
 * designated initialisers see to that. An op with any other value in them, of a later release of this header, is
 * refused. */
struct umadv_use {
	const void *ptr;
	size_t bytes; /* 0: from ptr to the tensor's end */
	size_t touched; /* bytes really touched, scattered over the range (look-ups in a table); 0: all */
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

/* Two arguments: an array and its length, alive until the call returns. */
#ifdef __cplusplus
#define UMADV_USES(...)                                                                                                \
	(std::initializer_list<umadv_use>{__VA_ARGS__}).begin(), (std::initializer_list<umadv_use>{__VA_ARGS__}).size()
#else
#define UMADV_USES(...)                                                                                                \
	(const struct umadv_use[]){__VA_ARGS__},                                                                       \
		(sizeof((const struct umadv_use[]){__VA_ARGS__}) / sizeof(struct umadv_use))
#endif

/* "What I launch next on `stream` reads these and writes these." Call just before the launch. Where threads share a
 * context, an op counts as announced once it is launched, too: umadv_iter, umadv_free and umadv_dead of another thread,
 * and ops that depend on it, come after its launch. Op path. `uses` is borrowed for the call. Pointers outside every
 * known tensor are ignored, counted, and logged once. 0; -EINVAL, logged once: a range beyond the end of its tensor, a
 * use that neither reads nor writes, or one with a reserved member that is not zero. */
UMADV_API int umadv_op(struct umadv *adv, void *stream, const char *name, const struct umadv_use *uses, size_t n_uses);

/* The same with all that may be said. Zero is "not said". */
struct umadv_op_info {
	size_t struct_size;
	const struct umadv_use *uses;
	size_t n_uses;
	double flops, bytes; /* cost: floating-point operations, device-memory traffic. Both 0 and `ns` 0: each byte of
				the uses is moved once */
	uint64_t ns; /* cost: measured time */
	/* Relaunch: calling fn(arg, stream) launches the op again: with the same content in what it reads it makes the
	 * same content in `relaunch_outs` (pointers out of its writes) again and touches nothing else. `arg` is copied.
	 * Kept and recorded; nothing is computed again yet. */
	void (*relaunch)(void *arg, void *stream);
	const void *relaunch_arg;
	size_t relaunch_arg_bytes;
	const void *const *relaunch_outs;
	size_t n_relaunch_outs;
	char phase; /* 'f' forward, 'b' backward, 'o' optimizer */
};

UMADV_API int umadv_op_ex(struct umadv *adv, void *stream, const char *name, const struct umadv_op_info *info);

/* An iteration begins. `name` (train, eval, a bucket) may be NULL. Iteration path: learning and planning happen here.
 */
UMADV_API int umadv_iter(struct umadv *adv, const char *name);
/* An iteration of more than UMADV_MOST_OPS ops, or of more ranges or tensors than umadvise(7) says, gets no plan. */
#define UMADV_MOST_OPS (1u << 20)

/* --- what it saw ------------------------------------------------------------------------------------------------ */

struct umadv_stats {
	size_t struct_size;
	uint64_t iterations, ops, tensors_live, bytes_live, bytes_live_peak;
	uint64_t unknown_pointers; /* uses that hit no tensor */
	uint64_t plans, divergences; /* plans adopted; iterations that left the schedule */
	uint64_t hinted_iterations;
	uint64_t first_hinted_iteration; /* counted from 0; UINT64_MAX: none yet */
	uint64_t hints_issued, hints_refused, hints_dropped; /* dropped: planned, not issued (queue full, diverged,
								beyond the budget) */
	uint64_t prefetch_bytes, evict_bytes, discard_bytes; /* asked for */
	uint64_t errors; /* allocations and device calls of the library's own that failed */
	uint64_t plan_ns; /* predicted steady iteration, 0 without a plan */
	uint64_t in_core_ns; /* the same with unlimited memory */
	uint64_t budget_bytes, plan_peak_bytes;
	uint64_t captured; /* ops announced on a stream that was being captured: ignored */
	uint64_t measured; /* ops of the current plan whose times were measured on the device */
};

UMADV_API int umadv_stats_get(struct umadv *adv, struct umadv_stats *stats); /* set struct_size first */

struct umadv_caps {
	size_t struct_size;
	int managed; /* prefetch, eviction and oversubscription work */
	int discard;
	int gate; /* ops wait for prefetches on the device (stream values) */
	int simulated;
	uint64_t capacity; /* bytes */
	char device[64];
	char why[160]; /* one reason where hints do nothing, else empty */
};

UMADV_API int umadv_caps_get(struct umadv *adv, struct umadv_caps *caps); /* set struct_size first */

/* Writes the current plan as a umplan; -ENODATA if there is none yet. Reads one and starts warm: it is followed from
 * the first iteration that fits it. -EINVAL with a logged reason if the file is refused or the plan is not sound. */
UMADV_API int umadv_save_plan(struct umadv *adv, const char *path);
UMADV_API int umadv_load_plan(struct umadv *adv, const char *path);

UMADV_API const char *umadv_strerror(int err); /* static string; takes what functions return */
UMADV_API const char *umadv_version(void); /* "0.1.0" */

/* --- the simulated GPU (UMADV_DEVICE_SIM) --------------------------------------------------------------------------
 */

/* Stands for a kernel launch: fn(arg) is run on the host when simulated time reaches the kernel; what it touches, and
 * its cost, are those of the umadv_op call just before it on this stream. options.check logs what else fn touches. fn
 * NULL: memory and time only. -ENODEV elsewhere. */
UMADV_API int umadv_sim_run(struct umadv *adv, void *stream, void (*fn)(void *arg), void *arg);

/* Waits for everything enqueued; the app's simulated clock then stands there. Content computed by kernels may be read.
 */
UMADV_API int umadv_sim_sync(struct umadv *adv);
UMADV_API uint64_t umadv_sim_now(struct umadv *adv);

#ifdef __cplusplus
}
#endif

#endif
