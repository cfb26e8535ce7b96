/* SPDX-License-Identifier: Apache-2.0
 *
 * report_load.h - a file of any kind that a report is made of, read into one, with progress
 */
#ifndef UM_TOOLS_REPORT_LOAD_H
#define UM_TOOLS_REPORT_LOAD_H

#include "report/report.h"

struct report_loaded {
	struct um_report report;
	struct um_capture capture;
	struct um_iteration_spans *found; /* iterations that nobody marks, by file: the report borrows them */
	int n_found;
};

struct report_source {
	const char *verb; /* for messages */
	const char *file;
	const char *nsys; /* to export a report with; NULL: from PATH */
	int quiet; /* no progress */
	struct um_activity_sink *sink; /* takes what is read, instead of the report; NULL: none */
	void (*again)(void *user); /* all of it is read once more; NULL: nobody else cares */
	void *user;
};

void report_load_init(struct report_loaded *l, const struct um_report_options *o);

/* 0, or the exit code after a line that says why. */
int report_load(struct report_loaded *l, const struct report_source *s);

/* All of them as one report, of which s->file, s->sink and s->again say nothing. The names are borrowed. The same. */
int report_load_merged(struct report_loaded *l, const struct report_source *s, char **files, int n);

void report_unload(struct report_loaded *l);

#endif
