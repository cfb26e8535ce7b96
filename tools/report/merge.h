/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.h - several recordings as one report
 *
 * in    the activities of one file behind the other, and what each file says of itself
 * out   they go to the report, their processes numbered anew; the capture says what is behind each number
 * owns  the numbers that it has given
 *
 * Processes of two files are two, whatever their numbers in those. The clocks of two files have nothing to do with each
 * other, so that no time of one is compared with one of the other: how long things took is. What the report knows of a
 * file's pages and addresses is given up with the file.
 */
#ifndef UM_REPORT_MERGE_H
#define UM_REPORT_MERGE_H

#include "report/report.h"

struct um_merge {
	struct um_activity_sink sink; /* first */
	struct um_report *report;
	struct um_capture *into;
	UM_VEC(uint64_t) file; /* processes of the file that is read, as it has them */
	uint64_t before; /* processes of the files before it */
	uint32_t last; /* looked up */
	unsigned files; /* over */
	struct um_iteration_spans *found; /* in the file that is read, borrowed: renumbered, too; NULL: nothing was */
};

/* Report and capture are borrowed, and empty. */
void um_merge_init(struct um_merge *m, struct um_report *report, struct um_capture *into);
void um_merge_fini(struct um_merge *m);

/* A file begins: its activities come to m->sink. 0 or -ENOMEM. */
int um_merge_begin(struct um_merge *m);

/* It is over, and says `of` of itself. `file`: its name, kept borrowed. 0, -EINVAL: it is a log of the library and
 * those before it are none, or the other way round; or -ENOMEM. */
int um_merge_end(struct um_merge *m, const struct um_capture *of, const char *file);

/* After the last one: what all files lack is said once. */
void um_merge_finish(struct um_merge *m);

/* All of it is read anew. */
void um_merge_reset(struct um_merge *m);

#endif
