/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.h - several recordings as one report
 *
 * in    the activities of one file after the other, and the capture of each file
 * out   feeds the report with renumbered processes; the capture describes each number
 * owns  its numbers of processes
 *
 * Processes of different files are different even with equal ids. Files have unrelated clocks, so only durations are
 * compared. The report drops a file's pages and addresses at its end.
 */
#ifndef UM_REPORT_MERGE_H
#define UM_REPORT_MERGE_H

#include "report/report.h"

struct um_merge {
	struct um_activity_sink sink; /* first */
	struct um_report *report;
	struct um_capture *into;
	UM_VEC(uint64_t) file; /* processes of the current file, with its own ids */
	uint64_t before; /* processes of earlier files */
	uint32_t last; /* looked up */
	unsigned files; /* over */
	struct um_iteration_spans *found; /* unmarked iterations of the file, renumbered; borrowed; may be NULL */
};

/* Report and capture are borrowed, and empty. */
void um_merge_init(struct um_merge *m, struct um_report *report, struct um_capture *into);
void um_merge_fini(struct um_merge *m);

/* Begins a file, whose activities go to m->sink. 0 or -ENOMEM. */
int um_merge_begin(struct um_merge *m);

/* Ends a file with capture `of`. `file`: its name, borrowed. 0; -EINVAL: a log of the library after an export, or the
 * other way round; or -ENOMEM. */
int um_merge_end(struct um_merge *m, const struct um_capture *of, const char *file);

/* After the last one: joins the notes on data that all files lack. */
void um_merge_finish(struct um_merge *m);

/* Restarts with the first file. */
void um_merge_reset(struct um_merge *m);

#endif
