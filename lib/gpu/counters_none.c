/* SPDX-License-Identifier: Apache-2.0
 *
 * counters_none.c - counters.h in a build without CUPTI headers: always refused
 */
#include "gpu/counters.h"

#include <errno.h>
#include <stdio.h>

const char *um_counters_soname(void)
{
	return NULL;
}

int um_counters_open(int64_t now, char *why, size_t size)
{
	(void)now;
	snprintf(why, size, "the headers of CUPTI were missing when the library was built");
	return -ENOTSUP;
}

int um_counters_take(int64_t now, int last, struct um_activity_sink *sink, uint64_t *lost)
{
	(void)now;
	(void)last;
	(void)sink;
	*lost = 0;
	return 0;
}
