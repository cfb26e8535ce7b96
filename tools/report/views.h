/* SPDX-License-Identifier: Apache-2.0
 *
 * views.h - series over time: of the whole run, and of a few iterations
 *
 * in    activities with their iteration, from report.h
 * out   series over the whole run, of the first iteration, of a slow one and of a typical one
 * owns  its series
 *
 * The typical iteration is known only at the end, so iterations are kept at regular distance; when there are too many,
 * every other one is dropped. Events between kernels wait, as in report.h, until their iteration is known. The sums of
 * an iteration's series equal those of its row, to the byte.
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
	int on; /* otherwise nothing is kept */
	struct um_bins all; /* of the current file */
	UM_VEC(struct um_bins) files; /* of earlier files */
	UM_VEC(struct um_view) of; /* kept iterations, in order of their rows */
	UM_VEC(struct um_view) spare; /* free for reuse */
	UM_VEC(uint32_t) last; /* by process: the last iteration that began on the GPU */
	UM_VEC(struct um_views_lane) lanes;
	struct um_resident resident;
	uint32_t stride; /* iterations whose row is a multiple of it are kept */
	uint32_t slowest; /* of finished ones; UM_REPORT_NONE: none yet */
	uint64_t slowest_ns;
};

struct um_report;

void um_views_fini(struct um_views *v); /* also a zeroed one */

/* All return 0 or -ENOMEM. `lane` is a row of the report's lanes; `belongs`: the iteration is known, and UM_REPORT_NONE
 * means outside of all; otherwise the event waits. */
int um_views_work(struct um_report *r, uint32_t lane, uint32_t iteration, const struct um_activity *a);
int um_views_memory(struct um_report *r, uint32_t lane, uint32_t iteration, int belongs, const struct um_activity *a);
int um_views_cpu_fault(struct um_report *r, uint32_t process, uint32_t iteration, const struct um_activity *a);
int um_views_next_file(struct um_views *v);
int um_views_remove(struct um_report *r, uint32_t process, const struct um_activity *a); /* FREE, HINT */

/* The iterations of a finished report to show: the first, the one nearest to the median, the slowest of the others.
 * Writes distinct rows in order of time, and their roles; returns their number. */
enum um_view_role { UM_VIEW_FIRST, UM_VIEW_TYPICAL, UM_VIEW_SLOWEST, UM_VIEW_ROLES };
unsigned um_views_choose(const struct um_report *r, const struct um_view *chosen[UM_VIEW_ROLES],
			 enum um_view_role roles[UM_VIEW_ROLES]);

#endif
