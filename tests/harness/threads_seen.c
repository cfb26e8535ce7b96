/* SPDX-License-Identifier: Apache-2.0
 *
 * threads_seen.c - a preloaded library that notes whether a program starts a thread
 *
 *     UM_THREADS_SEEN=folder   a file is made there, with the program's name, when it starts its first thread
 *
 * So `quickstart check` finds out which tests the thread sanitizer has anything to see in.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note(void)
{
	const char *folder = getenv("UM_THREADS_SEEN");
	char path[4096];
	int fd;

	if (!folder || snprintf(path, sizeof path, "%s/%s", folder, program_invocation_short_name) >= (int)sizeof path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *fn = dlsym(RTLD_NEXT, "pthread_create");

	memcpy(&real, &fn, sizeof real);
	note();
	return real ? real(thread, attr, run, arg) : EAGAIN;
}
