/* SPDX-License-Identifier: Apache-2.0
 *
 * activity.h - one thing that a run showed: what a profiler records, and the simulated GPU, too
 *
 * Kernels, copies, migrations, faults, API calls, marked ranges, allocations; each a value with a beginning and an end.
 * Whoever listens is an activity sink: the writer of an nsys export (io), the report. Put it first in the listener's
 * struct. A source says whether it feeds in order of `begin`; then, at equal times, a range comes before calls in it, a
 * call before what it enqueued, a kernel before its faults, and faults before the migrations that serve them.
 */
#ifndef UM_MODEL_ACTIVITY_H
#define UM_MODEL_ACTIVITY_H

#include <stdint.h>

enum um_activity_kind {
	UM_ACT_ALLOC,
	UM_ACT_FREE,
	UM_ACT_RANGE, /* the program marked it: NVTX */
	UM_ACT_CALL, /* of the runtime or the driver */
	UM_ACT_KERNEL,
	UM_ACT_FILL,
	UM_ACT_GPU_FAULT, /* the driver serves a group of faults */
	UM_ACT_CPU_FAULT,
	UM_ACT_COPY, /* the program asked for it */
	UM_ACT_MIGRATION, /* of managed memory */
	UM_ACT_KINDS
};

enum um_activity_way { UM_WAY_OTHER, UM_WAY_H2D, UM_WAY_D2H, UM_WAY_D2D };

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

enum um_activity_access { UM_ACCESS_UNKNOWN, UM_ACCESS_READ, UM_ACCESS_WRITE, UM_ACCESS_ATOMIC, UM_ACCESS_PREFETCH };

struct um_activity {
	enum um_activity_kind kind;
	int64_t begin, end; /* ns, on one clock per source; begin <= end */
	uint64_t process; /* equal for the same process only; 0: not said */
	uint64_t thread; /* of CALL, RANGE: equal for the same thread only */
	int32_t device, stream; /* -1: none, or not said */
	uint64_t correlation; /* CALL and what it enqueued, within a process; 0: none */
	const char *name; /* KERNEL, CALL, RANGE: borrowed, never NULL there */
	const char *domain; /* RANGE: borrowed; NULL: the default one */
	uint64_t address, bytes;
	uint64_t faults; /* GPU_FAULT, CPU_FAULT */
	enum um_activity_way way; /* COPY, MIGRATION */
	enum um_activity_cause cause; /* MIGRATION */
	enum um_activity_access access; /* GPU_FAULT */
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
