/* SPDX-License-Identifier: Apache-2.0
 *
 * survey_state.h - private to the survey*.c
 */
#ifndef UM_REPORT_SURVEY_STATE_H
#define UM_REPORT_SURVEY_STATE_H

#include "report/survey.h"

struct um_survey_name {
	char *name;
	uint64_t shape;
};

struct um_survey_kernel {
	uint64_t key; /* correlation, or when it began */
	uint32_t name;
	float ns;
};

/* A device of one process. */
struct um_survey_lane {
	uint64_t process;
	int32_t device;
	int by_time, unordered; /* no correlations; not in order */
	double ns;
	UM_VEC(struct um_survey_kernel) kernels;
};

/* Ranges of one name, without its final number. */
struct um_survey_group {
	char *name, *domain; /* domain NULL: the default one */
	uint64_t process, thread, n;
	int64_t last_end;
	double ns, kernel_ns; /* of the ranges; of kernels that began in them */
	int mixed; /* one lies in another or on another thread */
	UM_VEC(float) times; /* ns, of ended ones */
};

struct um_survey_open {
	uint64_t process;
	int64_t end;
	uint32_t group;
};

/* survey_ranges.c: 0 or -ENOMEM. */
int um_survey_on_range(struct um_survey *s, const struct um_activity *a);
void um_survey_in_ranges(struct um_survey *s, const struct um_activity *kernel);
/* Stores the name of ranges that are iterations in *f, if there is one. 0 or -ENOMEM. */
int um_survey_choose_range(struct um_survey *s, struct um_iteration_spans *f);
void um_survey_ranges_fini(struct um_survey *s);

#endif
