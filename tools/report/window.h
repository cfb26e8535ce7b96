/* SPDX-License-Identifier: Apache-2.0
 *
 * window.h - what of a recording counts: from a time to another, or what begins in certain ranges
 */
#ifndef UM_REPORT_WINDOW_H
#define UM_REPORT_WINDOW_H

#include "model/activity.h"

struct um_window {
	int64_t from, to; /* ns: what begins at or after `to`, or before `from`, does not count; both 0: all does */
	const char *within; /* shell pattern over NAME and DOMAIN:NAME: only what begins in such a range; NULL: all */
	int64_t end; /* of those ranges, so far; INT64_MIN at first */
};

/* Does it count? A range that opens the window does. In order of time. */
int um_window_has(struct um_window *w, const struct um_activity *a);

#define UM_RANGE_NAME_MAX 512 /* bytes of a name, with its domain: more is cut */

/* The name without the number that it ends with, which is '*' then. */
void um_range_stem(const char *name, char stem[UM_RANGE_NAME_MAX]);

/* Does the range's name match a shell pattern over NAME and DOMAIN:NAME? */
int um_range_matches(const char *pattern, const struct um_activity *a);

#endif
