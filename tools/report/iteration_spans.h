/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_spans.h - the iterations of a recording that a survey found (report/survey.h)
 *
 * Either a name of ranges, or, by process, spans of what its kernels were launched by. A report borrows it.
 */
#ifndef UM_REPORT_ITERATION_SPANS_H
#define UM_REPORT_ITERATION_SPANS_H

#include "base/vec.h"
#include "report/period.h"

/* First and last kernel of an iteration: the correlations of their launches, or, without any, when they began. */
struct um_iteration_spans_span {
	uint64_t first, last;
	int whole; /* 0: the recording ended in it */
	int joined; /* to the one before: no kernel is between */
};

struct um_iteration_spans_process {
	uint64_t process;
	uint64_t number; /* that a report knows it by: `process`, unless um_iteration_spans_renumber says otherwise */
	int32_t device; /* whose kernels were looked at */
	int by_time; /* there are no correlations */
	UM_VEC(struct um_iteration_spans_span) spans; /* in order; none: nothing repeats */
	uint64_t kernels; /* that an iteration usually has */
	uint64_t other; /* kernels of something shorter or longer that repeats, too; 0: nothing does */
	double covered; /* of the device's kernel time, the share in iterations: 0 to 1 */
	enum um_period_trust trust;
	char *first; /* the kernel that an iteration begins with */
};

struct um_iteration_spans {
	char *name, *domain; /* of ranges, their last number as '*'; NULL: none are iterations */
	double covered; /* by them, as above */
	char *rival; /* another name that would do as well; NULL: there is none */
	UM_VEC(struct um_iteration_spans_process) processes; /* where no ranges are iterations */
	uint64_t skipped; /* kernels that there was no room for */
};

void um_iteration_spans_fini(struct um_iteration_spans *f); /* one of zeroes is empty */
const struct um_iteration_spans_process *um_iteration_spans_of(const struct um_iteration_spans *f,
							       uint64_t process); /* by number, or NULL */

void um_iteration_spans_renumber(struct um_iteration_spans *f, uint64_t process, uint64_t number);

#endif
