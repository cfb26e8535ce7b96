/* SPDX-License-Identifier: Apache-2.0
 *
 * survey.h - searches a recording for iterations before the report
 *
 * in    ranges and kernels in order of time (others are ignored): it is a sink
 * out   the definition of iterations (report/iteration_spans.h)
 * owns  16 bytes a kernel, for the first UM_SURVEY_KERNELS of them, and the names
 *
 * Ranges come first: a name with at least three consecutive ranges of about equal length, in which four fifths of the
 * kernel time begin; of several names the least frequent one, which contains the others. Otherwise the iterations of a
 * process are the repetition in the kernels of its busiest device, in launch order. Kernels of one launch, a graph,
 * count as one.
 */
#ifndef UM_REPORT_SURVEY_H
#define UM_REPORT_SURVEY_H

#include "model/activity.h"
#include "report/iteration_spans.h"
#include "report/index.h"
#include "report/window.h"

#define UM_SURVEY_KERNELS (1u << 23)

struct um_survey_lane;
struct um_survey_name;
struct um_survey_group;
struct um_survey_open;

struct um_survey_options {
	int64_t from, to; /* as of a report */
	const char *within;
	int no_ranges; /* search repetitions only */
	int shapes; /* kernels are distinguished by grid and blocks, too */
};

struct um_survey {
	struct um_activity_sink sink; /* first */
	struct um_survey_options o;
	struct um_window window; /* of `o` */
	UM_VEC(struct um_survey_lane) lanes;
	UM_VEC(struct um_survey_group) groups;
	UM_VEC(struct um_survey_open) open; /* ranges, as they began */
	UM_VEC(struct um_survey_name) names; /* of kernels */
	struct um_index name_index, group_index;
	uint64_t kernels, skipped;
	int marked; /* the library's ranges are iterations; reading ended with -ECANCELED */
};

void um_survey_init(struct um_survey *s, const struct um_survey_options *o);
void um_survey_fini(struct um_survey *s);
void um_survey_reset(struct um_survey *s); /* back to the state after init */

/* After the last one; initialises *f, for um_iteration_spans_fini in every case. 0 or -ENOMEM. */
int um_survey_find(struct um_survey *s, struct um_iteration_spans *f);

#endif
