/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int privileged(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID);
}

static int found(const char *verb, const char *variable, const char *path)
{
	if (access(path, X_OK)) {
		tool_say(verb, "%s: %s", path, strerror(errno));
		return PROGRAM_NO_EXEC;
	}
	if (privileged(path)) {
		tool_say(verb, "%s is set-uid or set-gid: the loader ignores %s for it", path, variable);
		return PROGRAM_NO_EXEC;
	}
	return 0;
}

int program_find(const char *verb, const char *variable, const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(out, size, "%s", name);
		if (is_program(out))
			return found(verb, variable, out);
	}
	for (path = path ? path : "/usr/bin:/bin"; !strchr(name, '/') && *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		snprintf(out, size, "%.*s/%s", end > path ? (int)(end - path) : 1, end > path ? path : ".", name);
		if (is_program(out) && access(out, X_OK) == 0)
			return found(verb, variable, out);
	}
	tool_say(verb, "%s: %s", name, strchr(name, '/') ? "no such program" : "no such program in PATH");
	return PROGRAM_NOT_FOUND;
}

int program_become(const char *verb, const char *path, char **argv)
{
	int err;

	execv(path, argv);
	/* A script without an interpreter line runs in the shell. */
	if (errno == ENOEXEC)
		execvp(path, argv);
	err = errno;
	tool_say(verb, "%s: %s", path, strerror(err));
	return err == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXEC;
}

int program_part(const char *const *places, const char *installed, char *out)
{
	char here[PATH_MAX], try[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);

	for (here[n > 0 ? n : 0] = 0; n > 0 && *places; places++) {
		snprintf(try, sizeof try, "%.*s/%s", (int)(strrchr(here, '/') - here), here, *places);
		if (realpath(try, out))
			return 1;
	}
	/* The installed tree may have been moved as a whole. */
	if (n > 0 && !strncmp(UM_PKGLIBDIR, UM_PREFIX "/", sizeof UM_PREFIX)) {
		snprintf(try, sizeof try, "%.*s/..%s/%s", (int)(strrchr(here, '/') - here), here,
			 &UM_PKGLIBDIR[sizeof UM_PREFIX - 1], installed);
		if (realpath(try, out))
			return 1;
	}
	snprintf(try, sizeof try, "%s/%s", UM_PKGLIBDIR, installed);
	return realpath(try, out) != NULL;
}

char *program_absolute(const char *path)
{
	char here[PATH_MAX], *all;

	if (*path == '/')
		return strdup(path);
	if (!getcwd(here, sizeof here) || asprintf(&all, "%s/%s", here, path) < 0)
		return NULL;
	return all;
}
