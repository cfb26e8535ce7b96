/* SPDX-License-Identifier: Apache-2.0
 *
 * found.h - which activities are iterations, where the program does not say: the answer of a survey (report/survey.h)
 *
 * Either a name of ranges, or, by process, spans of what its kernels were launched by. A report borrows it.
 */
#ifndef UM_REPORT_FOUND_H
#define UM_REPORT_FOUND_H

#include "base/vec.h"
#include "report/period.h"

/* First and last kernel of an iteration: the correlations of their launches, or, without any, when they began. */
struct um_found_span {
	uint64_t first, last;
	int whole; /* 0: the recording ended in it */
	int joined; /* to the one before: no kernel is between */
};

struct um_found_process {
	uint64_t process;
	uint64_t number; /* that a report knows it by: `process`, unless um_found_renumber says otherwise */
	int32_t device; /* whose kernels were looked at */
	int by_time; /* there are no correlations */
	UM_VEC(struct um_found_span) spans; /* in order; none: nothing repeats */
	uint64_t kernels; /* that an iteration usually has */
	uint64_t other; /* kernels of something shorter or longer that repeats, too; 0: nothing does */
	double covered; /* of the device's kernel time, the share in iterations: 0 to 1 */
	enum um_period_trust trust;
	char *first; /* the kernel that an iteration begins with */
};

struct um_found {
	char *name, *domain; /* of ranges, their last number as '*'; NULL: none are iterations */
	double covered; /* by them, as above */
	char *rival; /* another name that would do as well; NULL: there is none */
	UM_VEC(struct um_found_process) processes; /* where no ranges are iterations */
	uint64_t skipped; /* kernels that there was no room for */
};

void um_found_fini(struct um_found *f); /* one of zeroes is empty */
const struct um_found_process *um_found_of(const struct um_found *f, uint64_t process); /* by number, or NULL */

void um_found_renumber(struct um_found *f, uint64_t process, uint64_t number);

#endif
