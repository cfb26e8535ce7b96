/* SPDX-License-Identifier: Apache-2.0
 *
 * report_survey.h - searches an export for iterations before the report
 */
#ifndef UM_TOOLS_REPORT_SURVEY_H
#define UM_TOOLS_REPORT_SURVEY_H

#include "report/report.h"

/* If the options request it, the search's result replaces *f, and the report borrows it. Read errors are left to the
 * report. 0 or -ENOMEM. */
int report_survey(struct um_report *r, struct um_iteration_spans *f, const char *path,
		  int (*progress)(void *user, uint64_t rows, uint64_t of), void *user);

#endif
