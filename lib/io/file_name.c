/* SPDX-License-Identifier: Apache-2.0 */
#include "io/file_name.h"

#include "io/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGITS_MOST 20

char *um_file_name(const char *pattern)
{
	size_t room = strlen(pattern) + 1, at = 0;
	struct um_rank rank;
	char *s;

	for (const char *p = pattern; (p = strchr(p, '%')); p++)
		room += DIGITS_MOST;
	s = malloc(room);
	if (!s)
		return NULL;
	um_rank_find(&rank);
	for (const char *p = pattern; *p; p++) {
		if (p[0] == '%' && (p[1] == 'p' || p[1] == 'r')) {
			unsigned long n = p[1] == 'p' ? (unsigned long)getpid() : rank.rank;

			at += (size_t)snprintf(s + at, room - at, "%lu", n);
			p++;
		} else {
			s[at++] = *p;
		}
	}
	s[at] = '\0';
	return s;
}
