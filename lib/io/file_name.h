/* SPDX-License-Identifier: Apache-2.0
 *
 * file_name.h - names of files that each process of a job has for itself
 *
 * in    a name as a user gives it; the environment
 * out   the name with %p as the process id and %r as the rank (doc/ranks.md)
 *
 * Start path.
 */
#ifndef UM_IO_FILE_NAME_H
#define UM_IO_FILE_NAME_H

/* Gives a heap string. NULL: no memory. Other uses of % are kept. */
char *um_file_name(const char *pattern);

#endif
