/* SPDX-License-Identifier: Apache-2.0
 *
 * window.h - filters a recording by time, or by ranges in which activities begin
 */
#ifndef UM_REPORT_WINDOW_H
#define UM_REPORT_WINDOW_H

#include "model/activity.h"

struct um_window {
	int64_t from, to; /* ns: activity before `from` or from `to` on does not count; both 0: all counts */
	const char *within; /* shell pattern of ranges (NAME, DOMAIN:NAME): only activity that begins in one */
	int64_t end; /* of those ranges, so far; INT64_MIN at first */
};

/* Does it count? A range that opens the window does. In order of time. */
int um_window_has(struct um_window *w, const struct um_activity *a);

#define UM_RANGE_NAME_MAX 512 /* longest name with its domain, bytes; longer ones are cut */

/* The name with its final number replaced by '*'. */
void um_range_stem(const char *name, char stem[UM_RANGE_NAME_MAX]);

/* Does the range's name match a shell pattern for NAME and DOMAIN:NAME? */
int um_range_matches(const char *pattern, const struct um_activity *a);

#endif
