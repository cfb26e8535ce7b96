/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_spans.h - the iterations of a recording that a survey found (report/survey.h)
 *
 * Either a name of ranges, or, by process, spans of launches. A report borrows it.
 */
#ifndef UM_REPORT_ITERATION_SPANS_H
#define UM_REPORT_ITERATION_SPANS_H

#include "base/vec.h"
#include "report/period.h"

/* First and last kernel of an iteration: the correlations of their launches or, without them, their begins. */
struct um_iteration_spans_span {
	uint64_t first, last;
	int whole; /* 0: the recording ended in it */
	int joined; /* contiguous with the previous one: no kernel in between */
};

struct um_iteration_spans_process {
	uint64_t process;
	uint64_t number; /* its number in a report: `process`, unless um_iteration_spans_renumber changed it */
	int32_t device; /* its device with the analysed kernels */
	int by_time; /* there are no correlations */
	UM_VEC(struct um_iteration_spans_span) spans; /* in order; none: no repetition */
	uint64_t kernels; /* usual kernels per iteration */
	uint64_t other; /* kernels of another repetition, shorter or longer; 0: none */
	double covered; /* share of the device's kernel time in iterations: 0 to 1 */
	enum um_period_trust trust;
	char *first; /* first kernel of an iteration */
};

struct um_iteration_spans {
	char *name, *domain; /* name of the ranges, with their last number as '*'; NULL: no ranges */
	double covered; /* share of kernel time in them, as above */
	char *rival; /* another suitable name, or NULL */
	UM_VEC(struct um_iteration_spans_process) processes; /* if no ranges are iterations */
	uint64_t skipped; /* kernels beyond the limit */
};

void um_iteration_spans_fini(struct um_iteration_spans *f); /* zeroed: empty */
const struct um_iteration_spans_process *um_iteration_spans_of(const struct um_iteration_spans *f,
							       uint64_t process); /* by number, or NULL */

void um_iteration_spans_renumber(struct um_iteration_spans *f, uint64_t process, uint64_t number);

#endif
