/* SPDX-License-Identifier: Apache-2.0
 *
 * views.h - the course of a run: of all of it, and of a few iterations
 *
 * in    what report.h has decided: this activity, in this iteration
 * out   series over the whole run, of the first iteration, of a slow one and of a typical one
 * owns  its series
 *
 * Which iteration is typical is known at the end only, so that every so many are kept; whenever there are too many of
 * them, every other one goes. What lies between kernels waits, as in report.h, until it is known whose it is. The sums
 * of an iteration's series are those of its row, to the byte.
 */
#ifndef UM_REPORT_VIEWS_H
#define UM_REPORT_VIEWS_H

#include "base/vec.h"
#include "report/resident.h"
#include "report/bins.h"

#define UM_VIEWS_BINS 1024u /* of the whole run */
#define UM_VIEW_BINS 384u /* of an iteration */
#define UM_VIEWS_KEPT 32u

struct um_view {
	uint32_t iteration; /* row of the report's */
	uint64_t level; /* bytes in use when it began */
	struct um_bins series;
};

struct um_views_lane {
	uint32_t process;
	struct um_bins pending; /* between kernels */
	int64_t busy_until;
};

struct um_views {
	int on; /* else nothing is kept */
	struct um_bins all; /* of the file that is fed */
	UM_VEC(struct um_bins) files; /* of those before it */
	UM_VEC(struct um_view) of; /* iterations kept, in order of their rows */
	UM_VEC(struct um_view) spare; /* whose memory can be used again */
	UM_VEC(uint32_t) last; /* by process: the last iteration that began on the GPU */
	UM_VEC(struct um_views_lane) lanes;
	struct um_resident resident;
	uint32_t stride; /* iterations whose row is a multiple of it are kept */
	uint32_t slowest; /* of those over; UM_REPORT_NONE: none yet */
	uint64_t slowest_ns;
};

struct um_report;

void um_views_fini(struct um_views *v); /* one of zeroes, too */

/* All return 0 or -ENOMEM. `lane` is a row of the report's lanes; `belongs` says that the iteration is known: where it
 * is UM_REPORT_NONE, it is outside of all; else it pends. */
int um_views_work(struct um_report *r, uint32_t lane, uint32_t iteration, const struct um_activity *a);
int um_views_memory(struct um_report *r, uint32_t lane, uint32_t iteration, int belongs, const struct um_activity *a);
int um_views_cpu_fault(struct um_report *r, uint32_t process, uint32_t iteration, const struct um_activity *a);
int um_views_next_file(struct um_views *v);
int um_views_leave(struct um_report *r, uint32_t process, const struct um_activity *a); /* FREE, HINT */

/* Of a finished report, the iterations to look at: the first, the one nearest to the median, the slowest of the others.
 * Writes rows that differ, in order of time, and which of the three they are; returns how many. */
enum um_view_role { UM_VIEW_FIRST, UM_VIEW_TYPICAL, UM_VIEW_SLOWEST, UM_VIEW_ROLES };
unsigned um_views_choose(const struct um_report *r, const struct um_view *chosen[UM_VIEW_ROLES],
			 enum um_view_role roles[UM_VIEW_ROLES]);

#endif
