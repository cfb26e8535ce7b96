/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.h - what a recording says of itself, besides its activities
 *
 * Filled by whoever reads it; owns its strings. Absences are what makes a zero mean "none happened" or "nobody looked".
 */
#ifndef UM_MODEL_CAPTURE_H
#define UM_MODEL_CAPTURE_H

#include <stdint.h>

#include "base/vec.h"

enum um_absence_state {
	UM_ABSENT_UNKNOWN, /* not recorded, or none happened: the recording does not say */
	UM_ABSENT_NOT_RECORDED,
	UM_ABSENT_NONE /* recorded, and none happened */
};

#define UM_ABSENCE_MIGRATIONS "(migrations)" /* in place of a table: the system cannot trace them */

struct um_absence {
	const char *table; /* static */
	const char *what; /* in words; static */
	const char *option; /* of `nsys profile`, that records it; static */
	enum um_absence_state state;
	const char *file; /* of several: that it is missing in; NULL: in all. Borrowed */
};

struct um_capture_process {
	uint64_t process; /* as in activities */
	uint64_t pid;
	char *name;
	const char *file; /* of several: that it is in; NULL: there is one. Borrowed */
};

struct um_capture_device {
	int32_t device;
	char *name;
	char driver[32]; /* its version; empty: not said */
	uint64_t memory_bytes; /* 0: not said */
	const char *file; /* as of a process */
};

/* What libumadvise counted while it ran, and what held when it ended: in its own log. */
enum um_library_count {
	UM_LIBRARY_OPS,
	UM_LIBRARY_ISSUED, /* hints */
	UM_LIBRARY_REFUSED,
	UM_LIBRARY_DROPPED,
	UM_LIBRARY_PREFETCH, /* bytes asked for */
	UM_LIBRARY_EVICT,
	UM_LIBRARY_DISCARD,
	UM_LIBRARY_PLANS, /* adopted */
	UM_LIBRARY_LEFT, /* iterations that left the schedule */
	UM_LIBRARY_UNKNOWN, /* uses of no known tensor */
	UM_LIBRARY_CAPTURED, /* ops on a stream that was being captured */
	UM_LIBRARY_ERRORS,
	UM_LIBRARY_H2D, /* from here on what the driver counts, where `counters`: bytes */
	UM_LIBRARY_D2H,
	UM_LIBRARY_GPU_FAULTS,
	UM_LIBRARY_CPU_FAULTS,
	UM_LIBRARY_SUMMED, /* of its records: so many are known in sum alone, of no tensor */
	UM_LIBRARY_LOST, /* were never told */
	UM_LIBRARY_COUNTS
};

enum um_library_level {
	UM_LIBRARY_PLAN_NS, /* an iteration of the plan that is followed; 0: there is none */
	UM_LIBRARY_IN_CORE_NS, /* the same with unlimited memory */
	UM_LIBRARY_PLAN_PEAK, /* bytes */
	UM_LIBRARY_TENSORS,
	UM_LIBRARY_LIVE, /* bytes */
	UM_LIBRARY_LIVE_PEAK,
	UM_LIBRARY_MEASURED, /* ops of the plan whose times were measured */
	UM_LIBRARY_LEVELS
};

extern const char *const um_library_count_keys[UM_LIBRARY_COUNTS];
extern const char *const um_library_level_keys[UM_LIBRARY_LEVELS];

struct um_capture_library {
	int is; /* the recording is such a log */
	char version[32], device[64], why[160], strategy[32]; /* why: hints do nothing there; empty: they do */
	int simulated; /* times are */
	int counters; /* what the driver counts of unified memory is in it */
	uint64_t pid, capacity_bytes, budget_bytes;
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	uint64_t iterations, kept; /* begun; and of them, those that the log has, not only in sums */
	uint64_t left_out; /* events and hints that it does not have, though it has their iterations */
};

struct um_capture {
	char product[64], schema[64]; /* versions; empty: not said */
	int64_t end_ns; /* of the recording; 0: not said */
	uint64_t rows; /* read */
	unsigned files; /* that were merged into it; 0: it is of one recording */
	uint64_t marks_damaged; /* marks of libumadvise's domain that say nothing */
	UM_VEC(struct um_capture_process) processes;
	UM_VEC(struct um_capture_device) devices;
	UM_VEC(struct um_absence) missing;
	UM_VEC(char *) notes; /* what the profiler itself warned of */
	int has_cuda; /* some table of CUDA's activities is there */
	struct um_capture_library library;
};

void um_capture_init(struct um_capture *c);
void um_capture_fini(struct um_capture *c);

/* The number that the system gave a process, where the recording's list of them does not have it. */
static inline uint64_t um_capture_pid(uint64_t process)
{
	return process & 0xffffff;
}

/* 0 or -ENOMEM; text is copied. */
int um_capture_note(struct um_capture *c, const char *text);
int um_capture_process(struct um_capture *c, uint64_t process, uint64_t pid, const char *name);
int um_capture_device(struct um_capture *c, int32_t device, const char *name, uint64_t memory_bytes);

#endif
