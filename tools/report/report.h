/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - what a run did with its memory: by operation, by iteration, by cause
 *
 * in    activities in order of time (model/activity.h): it is a sink
 * out   sums; who looks at them takes the tables of report/tables.h
 * owns  its rows and copies of the names
 *
 * Memory grows with different names and with iterations, not with activities. What is added where:
 *     a kernel, copy or fill belongs to the iteration whose calls enqueued it, by correlation; where calls were not
 *     recorded, to the iteration that the CPU was in when it began
 *     faults of the GPU and migrations belong to the kernel of their process and device that runs when they begin (the
 *     last to have begun), and to its iteration; between kernels, to the iteration of what runs next there
 *     of migrations, a kernel is charged with what its faults brought (demand, speculative), and with evictions that
 *     begin while faults are being served
 *     faults of the CPU belong to the iteration that the CPU is in
 *     what happens on the GPU to an address belongs to the tensor that lay there when that kernel was launched; faults
 *     of the CPU to the one that lies there (report/tensors.h)
 * So each sum over iterations, with what is outside of all, is the sum over the activities.
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

#define UM_REPORT_DOMAIN "umadvise" /* ranges of this domain are iterations unless something else is asked for */
#define UM_REPORT_NONE UINT32_MAX

/* What kernels did. */
struct um_report_work {
	uint64_t launches, ns;
	uint64_t faults, fault_ns; /* of that time, faults were being served */
	uint64_t h2d_bytes, d2h_bytes; /* brought by its faults; evicted for them */
	uint64_t wait_ns; /* before them, their device stood still until a prefetch had come */
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

enum um_report_mark {
	UM_MARK_NONE,
	UM_MARK_COLD, /* odd, slow, and so are all before it */
	UM_MARK_ODD, /* far from the median */
	UM_MARK_UNFINISHED /* recording ended in it: compared with nothing */
};

struct um_report_iteration {
	uint32_t process; /* row */
	uint32_t n; /* of its process, from 0 */
	char *name;
	int64_t begin, end; /* of the range, on the CPU */
	int64_t gpu_begin, gpu_end; /* of what it enqueued */
	int has_gpu, has_calls;
	uint64_t first_call, last_call; /* correlations */
	uint64_t ns; /* what is compared: on the GPU; without work there, on the CPU */
	enum um_report_mark mark;
	struct um_report_sums sums;
};

struct um_report_cell { /* an op in an iteration */
	uint32_t op, iteration; /* rows; UM_REPORT_NONE: outside of all */
	struct um_report_work work;
};

struct um_report_range { /* NVTX names; numbers at their end are written as '*' */
	char *name, *domain; /* domain NULL: the default one */
	uint64_t n, ns, unfinished;
};

struct um_report_process {
	uint64_t process;
	uint64_t thread; /* that marks its iterations */
	const struct um_iteration_spans_process *found; /* what repeats; NULL: ranges are iterations, or none are */
	const char *iterations_by; /* as um_report_iterations_by */
	size_t opened; /* of `found`: its iterations, so far */
	UM_VEC(uint32_t) iterations; /* rows, in order of time */
	uint64_t kernels, median_ns, mad_ns;
	uint64_t managed_bytes, managed_peak_bytes, managed_allocs;
	unsigned file; /* of those that were fed behind each other, from 0 */
};

enum um_report_seek { /* what iterations are */
		      UM_SEEK_AUTO, /* ranges of UM_REPORT_DOMAIN; without any, what a survey finds */
		      UM_SEEK_PATTERN, /* ranges that `iteration` matches */
		      UM_SEEK_REPETITION, /* what a survey finds to repeat */
		      UM_SEEK_NONE /* nothing is one */
};

struct um_report_options {
	enum um_report_seek seek;
	const char *iteration; /* shell pattern over NAME and DOMAIN:NAME, borrowed */
	int64_t from, to; /* ns: what begins at or after `to`, or before `from`, is left out; both 0: nothing is */
	const char *within; /* shell pattern: only what begins in such a range counts; NULL: all. Borrowed */
	const struct um_iteration_spans
		*found; /* iterations that a survey found: those alone; NULL: none was made. Borrowed */
	const struct um_capture *capture; /* filled before activities are fed: which devices; or NULL. Borrowed */
	int views; /* the course over time is wanted, too */
};

struct um_report_lane;

struct um_report {
	struct um_activity_sink sink; /* first */
	struct um_report_options o;
	struct um_report_sums all, outside; /* all; of it, outside of iterations */
	uint64_t copies[UM_DIR_D2D + 1]; /* bytes of the program's own */
	uint64_t activities; /* of this file */
	int64_t first_ns, last_ns; /* of what counted, in this file */
	uint64_t longest_ns, together_ns; /* of the files before it: from the first to the last of what counted */
	unsigned file; /* that is fed, from 0 */
	UM_VEC(struct um_report_op) ops;
	UM_VEC(struct um_report_iteration) iterations;
	UM_VEC(struct um_report_cell) cells;
	UM_VEC(struct um_report_range) ranges;
	UM_VEC(struct um_report_process) processes;
	UM_VEC(struct um_report_lane) lanes;
	UM_VEC(uint32_t) by_cost; /* rows of ops, the most expensive first; after um_report_finish */
	struct um_index op_index, cell_index, range_index;
	struct um_report_tensors tensors;
	struct um_declared_ops announced;
	struct um_causes causes;
	struct um_finding_list findings; /* after um_report_finish */
	uint64_t median_ns, mad_ns; /* of all finished iterations */
	uint64_t ranges_skipped; /* asked for as iterations, but inside one, on another thread, or too many */
	uint64_t cells_skipped, by_time; /* cells: launches that none was kept for; by_time: work assigned by time */
	int has_calls;
	struct um_views views; /* where it was asked for */
	struct um_window window; /* of `o` */
	uint32_t last_process, last_lane; /* looked up last */
};

void um_report_init(struct um_report *r, const struct um_report_options *options);
void um_report_fini(struct um_report *r);
void um_report_reset(struct um_report *r); /* as it was after init */

/* What comes is of another recording: with a clock of its own, and processes that were not there before. 0 or -ENOMEM.
 */
int um_report_next_file(struct um_report *r);

/* After the last activity: compares iterations, sorts. 0 or -ENOMEM. */
int um_report_finish(struct um_report *r);

/* How it is known what iterations are: "marked" in the domain of ours, "asked" for by a pattern, by likely "ranges", or
 * by "repetition"; "mixed": in one process so, in another so; NULL: there are none. */
const char *um_report_iterations_by(const struct um_report *r);

/* Bytes that migrated one way, whatever the cause. */
uint64_t um_report_moved(const struct um_report_sums *s, enum um_activity_dir dir);

/* From the first to the last activity: of the file that took longest, and of all of them added up. */
uint64_t um_report_longest(const struct um_report *r);
static inline uint64_t um_report_together(const struct um_report *r)
{
	return (uint64_t)r->last_ns - (uint64_t)r->first_ns + r->together_ns;
}

#endif
