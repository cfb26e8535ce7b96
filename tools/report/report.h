/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - sums of a run's memory activity: by operation, by iteration, by cause
 *
 * in    activities in order of time (model/activity.h): it is a sink
 * out   sums; report/tables.h presents them
 * owns  its rows and copies of the names
 *
 * Memory grows with different names and with iterations, not with activities. Rules of assignment:
 *     a kernel, copy or fill belongs to the iteration whose calls enqueued it, by correlation; where calls were not
 *     recorded, to the iteration that the CPU was in when it began
 *     faults of the GPU and migrations belong to the kernel of their process and device that runs when they begin (the
 *     last to have begun), and to its iteration; between kernels, to the iteration of what runs next there
 *     of migrations, a kernel is charged with what its faults brought (demand, speculative), and with evictions that
 *     begin while faults are being served
 *     faults of the CPU belong to the iteration that the CPU is in
 *     what happens on the GPU to an address belongs to the tensor that lay there when that kernel was launched; faults
 *     of the CPU to the one that lies there (report/tensors.h)
 * So the sum over iterations plus activities outside of all is the sum over the activities.
 */
#ifndef UM_REPORT_REPORT_H
#define UM_REPORT_REPORT_H

#include "base/vec.h"
#include "model/activity.h"
#include "model/capture.h"
#include "report/declared_ops.h"
#include "report/causes.h"
#include "report/findings.h"
#include "report/iteration_spans.h"
#include "report/index.h"
#include "report/tensors.h"
#include "report/views.h"
#include "report/window.h"

#define UM_REPORT_DOMAIN "umadvise" /* ranges of this domain are iterations by default */
#define UM_REPORT_NONE UINT32_MAX

/* Sums over kernels. */
struct um_report_work {
	uint64_t launches, ns;
	uint64_t faults, fault_ns; /* part with faults being served */
	uint64_t h2d_bytes, d2h_bytes; /* migrated by its faults; evicted for them */
	uint64_t wait_ns; /* idle time of their device for a prefetch before them */
};

struct um_report_moves {
	uint64_t bytes, n, ns;
};

struct um_report_sums {
	struct um_report_work work;
	uint64_t fault_groups, cpu_faults;
	struct um_report_moves moves[UM_DIR_D2D + 1][UM_CAUSES]; /* migrations */
};

struct um_report_op {
	char *name;
	struct um_report_work work;
};

/* Kernels of collectives (model/collective.h). */
struct um_report_collectives {
	uint64_t ns; /* their times added up; also in um_report_work */
	uint64_t alone_ns; /* time in which nothing else of the process ran */
};

enum um_report_mark {
	UM_MARK_NONE,
	UM_MARK_COLD, /* odd and slow, like all previous ones */
	UM_MARK_ODD, /* far from the median */
	UM_MARK_UNFINISHED /* the recording ended in it: not compared */
};

struct um_report_iteration {
	uint32_t process; /* row */
	uint32_t n; /* of its process, from 0 */
	char *name;
	int64_t begin, end; /* of the range, on the CPU */
	int64_t gpu_begin, gpu_end; /* of its work */
	int has_gpu, has_calls;
	uint64_t first_call, last_call; /* correlations */
	uint64_t ns; /* compared time: on the GPU; without work there, on the CPU */
	enum um_report_mark mark;
	struct um_report_sums sums;
	struct um_report_collectives collectives;
};

struct um_report_cell { /* an op in an iteration */
	uint32_t op, iteration; /* rows; UM_REPORT_NONE: outside of all */
	struct um_report_work work;
};

struct um_report_range { /* NVTX names, with final numbers written as '*' */
	char *name, *domain; /* domain NULL: the default one */
	uint64_t n, ns, unfinished;
};

/* Work of a process on all devices that began until `at`. */
struct um_report_sweep {
	int64_t at, work_end, collective_end; /* the latest ends, of collectives and of other work */
	uint32_t iteration; /* of the collective that ends last */
};

struct um_report_process {
	uint64_t process;
	uint64_t thread; /* that marks its iterations */
	const struct um_iteration_spans_process *found; /* its repetition; NULL: ranges are iterations, or none are */
	const char *iterations_by; /* as um_report_iterations_by */
	size_t opened; /* of `found`: its iterations so far */
	UM_VEC(uint32_t) iterations; /* rows, in order of time */
	uint64_t kernels, median_ns, mad_ns;
	/* Of its finished iterations that are not cold: their number, and sums. */
	uint64_t steady, steady_ns;
	struct um_report_work work;
	struct um_report_collectives collectives;
	struct um_report_sweep sweep;
	uint64_t managed_bytes, managed_peak_bytes, managed_allocs;
	unsigned file; /* of files that were fed one after the other, from 0 */
};

enum um_report_seek { /* definition of iterations */
		      UM_SEEK_AUTO, /* ranges of UM_REPORT_DOMAIN; without any, the survey's result */
		      UM_SEEK_PATTERN, /* ranges that `iteration` matches */
		      UM_SEEK_REPETITION, /* repetitions found by a survey */
		      UM_SEEK_NONE /* no iterations */
};

struct um_report_options {
	enum um_report_seek seek;
	const char *iteration; /* shell pattern over NAME and DOMAIN:NAME, borrowed */
	int64_t from, to; /* ns: activity before `from` or from `to` on is left out; both 0: none */
	const char *within; /* shell pattern of ranges: only activity that begins in one; NULL: all. Borrowed */
	const struct um_iteration_spans *found; /* iterations of a survey, exclusively; NULL: no survey. Borrowed */
	const struct um_capture *capture; /* devices, filled before activities are fed; or NULL. Borrowed */
	int views; /* also keep series over time */
};

struct um_report_lane;

struct um_report {
	struct um_activity_sink sink; /* first */
	struct um_report_options o;
	struct um_report_sums all, outside; /* all; part outside of iterations */
	uint64_t copies[UM_DIR_D2D + 1]; /* bytes copied by the program */
	uint64_t activities; /* of this file */
	int64_t first_ns, last_ns; /* of counted activity in this file */
	uint64_t longest_ns, together_ns; /* of earlier files: from the first to the last counted activity */
	unsigned file; /* current file, from 0 */
	UM_VEC(struct um_report_op) ops;
	UM_VEC(struct um_report_iteration) iterations;
	UM_VEC(struct um_report_cell) cells;
	UM_VEC(struct um_report_range) ranges;
	UM_VEC(struct um_report_process) processes;
	UM_VEC(struct um_report_lane) lanes;
	UM_VEC(uint32_t) by_pace; /* rows of processes with such iterations, the slowest first; likewise */
	int by_own; /* all of these have collectives: compared by the time of an iteration without `alone_ns` */
	UM_VEC(uint32_t) by_cost; /* rows of ops, the most expensive first; after um_report_finish */
	struct um_index op_index, cell_index, range_index;
	struct um_report_tensors tensors;
	struct um_declared_ops announced;
	struct um_causes causes;
	struct um_finding_list findings; /* after um_report_finish */
	uint64_t median_ns, mad_ns; /* of all finished iterations */
	uint64_t ranges_skipped; /* matching ranges inside an iteration, on another thread, or beyond the limit */
	uint64_t cells_skipped, by_time; /* cells: launches beyond the limit; by_time: work assigned by time */
	int has_calls;
	struct um_views views; /* if requested */
	struct um_window window; /* of `o` */
	uint32_t last_process, last_lane; /* looked up last */
};

void um_report_init(struct um_report *r, const struct um_report_options *options);
void um_report_fini(struct um_report *r);
void um_report_reset(struct um_report *r); /* back to the state after init */

/* Begins another recording, with its own clock and new processes. 0 or -ENOMEM.
 */
int um_report_next_file(struct um_report *r);

/* After the last activity: compares iterations, sorts. 0 or -ENOMEM. */
int um_report_finish(struct um_report *r);

/* Source of iterations: "marked" in the library's domain, "asked" for by a pattern, by likely "ranges", or by
 * "repetition"; "mixed": different sources in different processes; NULL: no iterations. */
const char *um_report_iterations_by(const struct um_report *r);

/* Bytes that migrated one way, whatever the cause. */
uint64_t um_report_moved(const struct um_report_sums *s, enum um_activity_dir dir);

/* From the first to the last activity: of the longest file, and the sum over all files. */
uint64_t um_report_longest(const struct um_report *r);
static inline uint64_t um_report_together(const struct um_report *r)
{
	return (uint64_t)r->last_ns - (uint64_t)r->first_ns + r->together_ns;
}

#endif
