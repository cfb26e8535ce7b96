/* SPDX-License-Identifier: Apache-2.0
 *
 * report_load.h - reads an input file of any kind into a report, with progress
 */
#ifndef UM_TOOLS_REPORT_LOAD_H
#define UM_TOOLS_REPORT_LOAD_H

#include "report/report.h"

struct report_loaded {
	struct um_report report;
	struct um_capture capture;
	struct um_iteration_spans *found; /* unmarked iterations, by file; borrowed by the report */
	int n_found;
};

struct report_source {
	const char *verb; /* for messages */
	const char *file;
	const char *nsys; /* program nsys; NULL: from PATH */
	int quiet; /* no progress */
	struct um_activity_sink *sink; /* receives activities instead of the report; NULL: none */
	void (*again)(void *user); /* called when all files are read again; may be NULL */
	void *user;
};

void report_load_init(struct report_loaded *l, const struct um_report_options *o);

/* 0, or the exit code after an error message. */
int report_load(struct report_loaded *l, const struct report_source *s);

/* All files as one report; s->file, s->sink and s->again are ignored. The names are borrowed. 0, or the exit code. */
int report_load_merged(struct report_loaded *l, const struct report_source *s, char **files, int n);

void report_unload(struct report_loaded *l);

#endif
