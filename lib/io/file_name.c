/* SPDX-License-Identifier: Apache-2.0 */
#include "io/file_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGITS_MOST 20

/* The innermost launcher first: a job of Slurm starts mpirun or torchrun, and mpirun may start torchrun on each node.
 * RANK is a common name, so it counts before the others only together with torchrun's other variable. */
static const struct {
	const char *rank;
	const char *with; /* or NULL */
} launchers[] = {
	{"RANK", "WORLD_SIZE"}, {"OMPI_COMM_WORLD_RANK", NULL}, {"PMI_RANK", NULL}, {"SLURM_PROCID", NULL},
	{"RANK", NULL},
};

/* The value becomes part of a file's name: nothing but a number is accepted. */
static int read_rank(const char *text, unsigned long *rank)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*rank = strtoul(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

unsigned long um_file_rank(void)
{
	unsigned long rank;

	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
		if ((!launchers[i].with || secure_getenv(launchers[i].with)) &&
		    !read_rank(secure_getenv(launchers[i].rank), &rank))
			return rank;
	return 0;
}

char *um_file_name(const char *pattern)
{
	size_t room = strlen(pattern) + 1, at = 0;
	char *s;

	for (const char *p = pattern; (p = strchr(p, '%')); p++)
		room += DIGITS_MOST;
	s = malloc(room);
	if (!s)
		return NULL;
	for (const char *p = pattern; *p; p++) {
		if (p[0] == '%' && (p[1] == 'p' || p[1] == 'r')) {
			unsigned long n = p[1] == 'p' ? (unsigned long)getpid() : um_file_rank();

			at += (size_t)snprintf(s + at, room - at, "%lu", n);
			p++;
		} else {
			s[at++] = *p;
		}
	}
	s[at] = '\0';
	return s;
}
