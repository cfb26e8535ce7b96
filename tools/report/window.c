/* SPDX-License-Identifier: Apache-2.0 */
#include "report/window.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

void um_range_stem(const char *name, char stem[UM_RANGE_NAME_MAX])
{
	size_t n;

	snprintf(stem, UM_RANGE_NAME_MAX - 1, "%s", name);
	n = strlen(stem);
	while (n && isdigit((unsigned char)stem[n - 1]))
		n--;
	if (stem[n])
		strcpy(stem + n, "*");
}

int um_range_matches(const char *pattern, const struct um_activity *a)
{
	char both[UM_RANGE_NAME_MAX];

	if (fnmatch(pattern, a->name, 0) == 0)
		return 1;
	snprintf(both, sizeof both, "%s:%s", a->domain ? a->domain : "", a->name);
	return fnmatch(pattern, both, 0) == 0;
}

int um_window_has(struct um_window *w, const struct um_activity *a)
{
	if ((w->from || w->to) && (a->begin < w->from || a->begin >= w->to))
		return 0;
	if (!w->within)
		return 1;
	if (a->kind == UM_ACT_RANGE && a->end > w->end && um_range_matches(w->within, a))
		w->end = a->end;
	return a->begin < w->end;
}
