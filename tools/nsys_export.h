/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_export.h - exports a report of Nsight Systems with nsys, in a temporary directory
 *
 * One export at a time. SIGINT, SIGTERM and SIGHUP also remove it before they end the process.
 */
#ifndef UM_TOOLS_NSYS_EXPORT_H
#define UM_TOOLS_NSYS_EXPORT_H

/* Is it a report that nsys has to export, by its name? */
int nsys_export_needed(const char *file);

/* Runs `nsys` (a path, or NULL: from PATH). `verb` is for messages; `quiet`: no progress. 0 and the path of the export
 * (static), or the exit code, after a line that says why. */
int nsys_export_make(const char *verb, const char *nsys, const char *file, int quiet, const char **path);
void nsys_export_remove(void);

#endif
