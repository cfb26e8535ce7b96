/* SPDX-License-Identifier: Apache-2.0
 *
 * activity.h - one thing that a run showed: what a profiler records, and the simulated GPU, too
 *
 * Kernels, copies, migrations, faults, API calls, marked ranges, allocations; and what libumadvise, or a program that
 * marks as it does, says of tensors, operations and hints. Each is a value with a beginning and an end.
 * Whoever listens is an activity sink: the writer of an nsys export (io), the report. Put it first in the listener's
 * struct. A source says whether it feeds in order of `begin`; then, at equal times, things come in the order of their
 * kinds: a range before what is said in it, an op before its uses, a call before what it enqueued, a kernel before its
 * faults, and faults before the migrations that serve them.
 */
#ifndef UM_MODEL_ACTIVITY_H
#define UM_MODEL_ACTIVITY_H

#include <stdint.h>

#include "model/plan.h"

enum um_activity_kind {
	UM_ACT_ALLOC,
	UM_ACT_FREE,
	UM_ACT_RANGE, /* the program marked it: NVTX */
	UM_ACT_TENSOR_END, /* what began at `address` is no tensor any more */
	UM_ACT_TENSOR, /* from here on, these addresses are called so; part of another: the innermost one counts */
	UM_ACT_OP, /* announced: the next launches of its thread are this op's */
	UM_ACT_USE, /* of the op announced last by that number */
	UM_ACT_HINT, /* given to the driver */
	UM_ACT_CALL, /* of the runtime or the driver */
	UM_ACT_KERNEL,
	UM_ACT_FILL,
	UM_ACT_GPU_FAULT, /* the driver serves a group of faults */
	UM_ACT_CPU_FAULT,
	UM_ACT_COPY, /* the program asked for it */
	UM_ACT_MIGRATION, /* of managed memory */
	UM_ACT_KINDS
};

enum um_activity_dir { UM_DIR_OTHER, UM_DIR_H2D, UM_DIR_D2H, UM_DIR_D2D };

/* Why managed memory moved: CUPTI's numbers. */
enum um_activity_cause {
	UM_CAUSE_UNKNOWN,
	UM_CAUSE_PREFETCH, /* the program asked */
	UM_CAUSE_DEMAND, /* a page fault */
	UM_CAUSE_SPECULATIVE, /* the driver added it to one */
	UM_CAUSE_EVICTION, /* to make room */
	UM_CAUSE_COUNTERS, /* access counters */
	UM_CAUSES
};

enum um_activity_access {
	UM_ACCESS_UNKNOWN,
	UM_ACCESS_READ,
	UM_ACCESS_WRITE,
	UM_ACCESS_ATOMIC,
	UM_ACCESS_PREFETCH,
	UM_ACCESS_UPDATE /* of a USE: read and written; WRITE there: overwritten, not read */
};

#define UM_ACT_NO_OP UINT64_MAX

#define UM_RANGE_MAX (1ull << 40) /* bytes of a USE, a HINT or a MIGRATION; readers take more for damage */

struct um_activity {
	enum um_activity_kind kind;
	int64_t begin, end; /* ns, on one clock per source; begin <= end */
	uint64_t process; /* equal for the same process only; 0: not said */
	uint64_t thread; /* of CALL, RANGE, OP: equal for the same thread only */
	int32_t device, stream; /* -1: none, or not said */
	uint64_t correlation; /* CALL and what it enqueued, within a process; 0: none */
	const char *name; /* KERNEL, CALL, RANGE, TENSOR, OP: borrowed, never NULL there; ALLOC, CPU_FAULT: or NULL */
	const char *domain; /* RANGE: borrowed; NULL: the default one; CPU_FAULT: the module of that code, or NULL */
	uint64_t shape; /* KERNEL: equal for equal grids and blocks; 0: not said */
	uint64_t address, bytes;
	uint64_t faults; /* GPU_FAULT, CPU_FAULT */
	uint64_t records; /* MIGRATION, GPU_FAULT, CPU_FAULT: 0: a profiler tells of it; else the driver has counted
			     so many for the library's log, where no kernels are told: more than one, those of the
			     tensor at `address`; 0: of any */
	enum um_activity_dir way; /* COPY, MIGRATION */
	enum um_activity_cause cause; /* MIGRATION */
	enum um_activity_access access; /* GPU_FAULT, USE */
	uint64_t op; /* OP, USE: its number, counted over the run; HINT: of the op that it is for, or UM_ACT_NO_OP */
	enum um_hint_kind hint; /* HINT */
	int error; /* CALL, HINT: what the call returned; 0: done */
	int managed; /* ALLOC, FREE: managed memory */
	int unfinished; /* RANGE: still open when recording ended, which its `end` is then */
};

struct um_activity_sink {
	int (*feed)(struct um_activity_sink *sink, const struct um_activity *activity); /* 0 or -errno */
};

static inline int um_activity_feed(struct um_activity_sink *sink, const struct um_activity *activity)
{
	return sink->feed(sink, activity);
}

#endif
