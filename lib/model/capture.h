/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.h - metadata of a recording: processes, devices, missing tables, library counters
 *
 * Filled by the reader of the recording; owns its strings. The absences tell whether a zero means "none happened" or
 * "not recorded".
 */
#ifndef UM_MODEL_CAPTURE_H
#define UM_MODEL_CAPTURE_H

#include <stdint.h>

#include "base/vec.h"

enum um_absence_state {
	UM_ABSENT_UNKNOWN, /* not recorded, or none happened: the recording does not tell */
	UM_ABSENT_NOT_RECORDED,
	UM_ABSENT_NONE /* recorded, and none happened */
};

#define UM_ABSENCE_MIGRATIONS "(migrations)" /* instead of a table: the system cannot trace migrations */

struct um_absence {
	const char *table; /* static */
	const char *what; /* description; static */
	const char *option; /* option of `nsys profile` that records it; static */
	enum um_absence_state state;
	const char *file; /* with several files: the file that lacks it; NULL: all lack it. Borrowed */
};

/* Place of a process in a job of several ranks. */
struct um_capture_rank {
	int is; /* the recording has it */
	uint64_t rank, ranks, local_rank, local_ranks; /* of the job (`ranks` 0: not known) and of the node */
	char host[64]; /* the node's name; empty: unknown */
};

struct um_capture_process {
	uint64_t process; /* as in activities */
	uint64_t pid;
	char *name;
	const char *file; /* with several files: its file; NULL: only one file. Borrowed */
	struct um_capture_rank rank;
	/* Of a run log: bytes that hints asked for in an iteration, on average, and its time with unlimited memory. */
	uint64_t prefetch_bytes, evict_bytes, in_core_ns;
};

struct um_capture_device {
	int32_t device;
	char *name;
	char driver[32]; /* version; empty: unknown */
	uint64_t memory_bytes; /* 0: unknown */
	const char *file; /* as in um_capture_process */
};

/* Counters of libumadvise during the run and values at its end, from the run log. */
enum um_library_count {
	UM_LIBRARY_OPS,
	UM_LIBRARY_ISSUED, /* hints */
	UM_LIBRARY_REFUSED,
	UM_LIBRARY_DROPPED,
	UM_LIBRARY_PREFETCH, /* bytes requested */
	UM_LIBRARY_EVICT,
	UM_LIBRARY_DISCARD,
	UM_LIBRARY_PLANS, /* adopted */
	UM_LIBRARY_LEFT, /* iterations that departed from the schedule */
	UM_LIBRARY_UNKNOWN, /* uses outside every tensor */
	UM_LIBRARY_CAPTURED, /* ops on a capturing stream */
	UM_LIBRARY_ERRORS,
	UM_LIBRARY_SCHEDULED, /* hints issued, by source */
	UM_LIBRARY_PREDICTED,
	UM_LIBRARY_ANNOUNCED,
	UM_LIBRARY_SCHEDULED_BYTES, /* prefetched, by source */
	UM_LIBRARY_PREDICTED_BYTES,
	UM_LIBRARY_ANNOUNCED_BYTES,
	UM_LIBRARY_KEPT, /* bytes of planned discards that were copied instead */
	UM_LIBRARY_LIMITED, /* iterations with fewer hints, as others did not pay */
	UM_LIBRARY_H2D, /* from here on the driver's counters, with `counters`: bytes */
	UM_LIBRARY_D2H,
	UM_LIBRARY_GPU_FAULTS,
	UM_LIBRARY_CPU_FAULTS,
	UM_LIBRARY_SUMMED, /* driver records known only as sums without a tensor */
	UM_LIBRARY_LOST, /* driver records that were dropped */
	UM_LIBRARY_COUNTS
};

enum um_library_level {
	UM_LIBRARY_PLAN_NS, /* time of an iteration of the current plan; 0: no plan */
	UM_LIBRARY_IN_CORE_NS, /* the same with unlimited memory */
	UM_LIBRARY_PLAN_PEAK, /* bytes */
	UM_LIBRARY_TENSORS,
	UM_LIBRARY_LIVE, /* bytes */
	UM_LIBRARY_LIVE_PEAK,
	UM_LIBRARY_MEASURED, /* ops of the plan with measured times */
	UM_LIBRARY_PLAYED_NS, /* measured time of an iteration of the current plan; 0: not measured */
	UM_LIBRARY_BUDGET, /* bytes, where other contexts use the device, too; 0: none do */
	UM_LIBRARY_LEVELS
};

extern const char *const um_library_count_keys[UM_LIBRARY_COUNTS];
extern const char *const um_library_level_keys[UM_LIBRARY_LEVELS];

struct um_capture_library {
	int is; /* the recording is a run log */
	char version[32], device[64], why[160], strategy[32]; /* why: the reason if no hints are issued, else empty */
	int simulated; /* times are simulated */
	int counters; /* contains the driver's counters of unified memory */
	struct um_capture_rank rank;
	uint64_t pid, capacity_bytes, budget_bytes;
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	uint64_t iterations, kept; /* iterations begun; iterations with events in the log, not only in sums */
	uint64_t left_out; /* events and hints missing from kept iterations */
};

struct um_capture {
	char product[64], schema[64]; /* versions; empty: unknown */
	int64_t end_ns; /* end of the recording; 0: unknown */
	uint64_t rows; /* read */
	unsigned files; /* number of merged files; 0: one recording */
	uint64_t marks_damaged; /* marks of libumadvise's NVTX domain that cannot be parsed */
	UM_VEC(struct um_capture_process) processes;
	UM_VEC(struct um_capture_device) devices;
	UM_VEC(struct um_absence) missing;
	UM_VEC(char *) notes; /* warnings of the profiler */
	int has_cuda; /* at least one table of CUDA activities exists */
	struct um_capture_library library;
};

void um_capture_init(struct um_capture *c);
void um_capture_fini(struct um_capture *c);

/* The system's process id, for a process that is not in the recording's list. */
static inline uint64_t um_capture_pid(uint64_t process)
{
	return process & 0xffffff;
}

/* 0 or -ENOMEM; text is copied. */
int um_capture_note(struct um_capture *c, const char *text);
int um_capture_process(struct um_capture *c, uint64_t process, uint64_t pid, const char *name);
int um_capture_device(struct um_capture *c, int32_t device, const char *name, uint64_t memory_bytes);

#endif
