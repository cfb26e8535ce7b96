/* SPDX-License-Identifier: Apache-2.0
 *
 * report_survey.h - an export is looked through for iterations, before a report is made of it
 */
#ifndef UM_TOOLS_REPORT_SURVEY_H
#define UM_TOOLS_REPORT_SURVEY_H

#include "report/report.h"

/* Where the report's options ask for it, what is found goes into *f, anew, and the report borrows that. What cannot be
 * read is told of when all of it is. 0 or -ENOMEM. */
int report_survey(struct um_report *r, struct um_iteration_spans *f, const char *path,
		  int (*progress)(void *user, uint64_t rows, uint64_t of), void *user);

#endif
