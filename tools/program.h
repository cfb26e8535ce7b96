/* SPDX-License-Identifier: Apache-2.0
 *
 * program.h - programs that a verb runs: finding them, and parts of this package that they load
 *
 * in    a command line
 * out   paths, or an exit code after an error message
 */
#ifndef UM_TOOLS_PROGRAM_H
#define UM_TOOLS_PROGRAM_H

#include <stddef.h>

#ifndef UM_PKGLIBDIR
#define UM_PREFIX "/usr/local"
#define UM_PKGLIBDIR "/usr/local/lib/libumadvise"
#endif

/* Exit codes of a program that could not be run, as of env(1) and shells. */
enum { PROGRAM_FAILED = 125, PROGRAM_NO_EXEC = 126, PROGRAM_NOT_FOUND = 127 };

/* Finds the program as execvp would. Refuses one with more rights than its user, because the loader ignores `variable`
 * for it. 0, or an exit code after an error message. */
int program_find(const char *verb, const char *variable, const char *name, char *path, size_t size);

/* Runs it in place of the tool. Returns only an exit code, after an error message. */
int program_become(const char *verb, const char *path, char **argv);

/* Finds a file of this package: at one of `places` (relative to the tool's folder, NULL at the end), or by its
 * installed name, beside the tool or where it was configured to be. `out`: PATH_MAX bytes. 1, or 0: it is not there. */
int program_part(const char *const *places, const char *installed, char *out);

/* A program may change its folder, so names that it gets are made absolute. A heap string, or NULL. */
char *program_absolute(const char *path);

#endif
