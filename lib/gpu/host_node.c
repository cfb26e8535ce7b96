/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/host_node.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* A list as "0-1,3": the last node of a range is read as a negative number. */
int um_host_node_matters(const char *root, int node)
{
	int first = 0, last, n = 0, has = 0;
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof path, "%s/sys/devices/system/node/has_memory", root);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d%*[,]", &last) == 1) {
		first = last < 0 ? first + 1 : last;
		last = abs(last);
		n += last - first + 1;
		has |= first <= node && node <= last;
		first = last;
	}
	if (f)
		fclose(f);
	return n > 1 && has;
}
