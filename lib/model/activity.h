/* SPDX-License-Identifier: Apache-2.0
 *
 * activity.h - one recorded event of a run, as a profiler or the simulated GPU reports it
 *
 * Kernels, copies, migrations, faults, API calls, NVTX ranges and allocations; and tensors, operations and hints as
 * libumadvise, or a program with its own marks, announces them. Each is a value with a beginning and an end. A receiver
 * is an activity sink: the writer of an nsys export (io), the report. Put struct um_activity_sink first in the
 * receiver's struct. The header of a source states whether it feeds in order of `begin`; at equal times the order is
 * then that of the kinds: a range before the marks inside it, an op before its uses, a call before the work that it
 * enqueued, a kernel before its faults, and faults before the migrations that serve them.
 */
#ifndef UM_MODEL_ACTIVITY_H
#define UM_MODEL_ACTIVITY_H

#include <stdint.h>

#include "model/plan.h"

enum um_activity_kind {
	UM_ACT_ALLOC,
	UM_ACT_FREE,
	UM_ACT_RANGE, /* NVTX range of the program */
	UM_ACT_TENSOR_END, /* the tensor that began at `address` ends */
	UM_ACT_TENSOR, /* names these addresses from now on; of nested tensors the innermost counts */
	UM_ACT_OP, /* announced: the next launches of its thread belong to this op */
	UM_ACT_USE, /* of the last op announced with that number */
	UM_ACT_HINT, /* a hint call to the driver */
	UM_ACT_CALL, /* a call of the runtime or the driver */
	UM_ACT_KERNEL,
	UM_ACT_FILL,
	UM_ACT_GPU_FAULT, /* a group of faults that the driver serves together */
	UM_ACT_CPU_FAULT,
	UM_ACT_COPY, /* a copy of the program */
	UM_ACT_MIGRATION, /* a migration of managed memory */
	UM_ACT_KINDS
};

enum um_activity_dir { UM_DIR_OTHER, UM_DIR_H2D, UM_DIR_D2H, UM_DIR_D2D };

/* Cause of a migration, in CUPTI's numbers. */
enum um_activity_cause {
	UM_CAUSE_UNKNOWN,
	UM_CAUSE_PREFETCH, /* requested by the program */
	UM_CAUSE_DEMAND, /* a page fault */
	UM_CAUSE_SPECULATIVE, /* added by the driver to a page fault */
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
	UM_ACCESS_UPDATE /* of a USE: read and written; WRITE there: overwritten without being read */
};

#define UM_ACT_NO_OP UINT64_MAX

#define UM_RANGE_MAX (1ull << 40) /* bytes of a USE, a HINT or a MIGRATION; readers treat more as damage */

struct um_activity {
	enum um_activity_kind kind;
	int64_t begin, end; /* ns, on one clock per source; begin <= end */
	uint64_t process; /* equal for the same process only; 0: unknown */
	uint64_t thread; /* of CALL, RANGE, OP: equal for the same thread only */
	int32_t device, stream; /* -1: none or unknown */
	uint64_t correlation; /* connects a CALL and the work that it enqueued, within a process; 0: none */
	const char *name; /* KERNEL, CALL, RANGE, TENSOR, OP: borrowed, never NULL there; ALLOC, CPU_FAULT: or NULL */
	const char *domain; /* RANGE: borrowed; NULL: the default one; CPU_FAULT: the module of the faulting code, or
			       NULL */
	uint64_t shape; /* KERNEL: equal for equal grids and blocks; 0: unknown */
	uint64_t address, bytes;
	uint64_t faults; /* GPU_FAULT, CPU_FAULT */
	uint64_t records; /* MIGRATION, GPU_FAULT, CPU_FAULT: 0: one event of a profiler; otherwise the number of driver
			     records that this activity of the run log (which has no kernels) sums up: if more than one,
			     those of the tensor at `address`, or of any tensor if that is 0 */
	enum um_activity_dir dir; /* COPY, MIGRATION */
	enum um_activity_cause cause; /* MIGRATION */
	enum um_activity_access access; /* GPU_FAULT, USE */
	uint64_t op; /* OP, USE: its number, counted over the run; HINT: that a prefetch is for, or UM_ACT_NO_OP */
	enum um_hint_kind hint; /* HINT */
	int error; /* CALL, HINT: result of the call; 0: success */
	int managed; /* ALLOC, FREE: managed memory */
	int unfinished; /* RANGE: open at the end of the recording, which is its `end` */
};

struct um_activity_sink {
	int (*feed)(struct um_activity_sink *sink, const struct um_activity *activity); /* 0 or -errno */
};

static inline int um_activity_feed(struct um_activity_sink *sink, const struct um_activity *activity)
{
	return sink->feed(sink, activity);
}

#endif
