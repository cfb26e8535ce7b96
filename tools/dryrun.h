/* SPDX-License-Identifier: Apache-2.0
 *
 * dryrun.h - umadvise dryrun: declarations shared by its files
 *
 *     cmd_dryrun.c    options and the sequence of steps
 *     dryrun_run.c    the program under the stand-in driver: folder, environment, signals, status
 *     dryrun_elf.c    why a program may not load the stand-in
 *     dryrun_show.c   its reports as a table, JSON or CSV
 */
#ifndef UM_TOOLS_DRYRUN_H
#define UM_TOOLS_DRYRUN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "play_args.h"

struct dryrun {
	const char *profile; /* as given */
	int cuda; /* 0: 12.4; 1: 13.0 */
	int cpu_off;
	const char *log; /* or NULL */
	const char *log_place; /* path for the program; NULL: no log */
	const char *output; /* or NULL: standard error */
	uint64_t memory; /* bytes; 0: the profile's */
	uint64_t devices, per_link; /* 0: not given */
	enum play_format format;
	char **program; /* its arguments, NULL at the end */
	char path[4096]; /* of the program */
	char driver[4096]; /* of the stand-in */
	char folder[64]; /* ours, or empty */
};

/* Finds the stand-in. 0, or an exit code after an error message. */
int dryrun_find_driver(struct dryrun *d);

/* Creates the directory and blocks signals from then on; removes it with its content. */
int dryrun_folder_make(struct dryrun *d);
void dryrun_folder_remove(struct dryrun *d);

/* Unblocks signals and runs the program to its end. Its exit status, 128 + n for a signal. */
int dryrun_run(struct dryrun *d);

/* Will the loader miss the stand-in? 1 and why, or 0. */
int dryrun_cut_off(const char *program, char *why, size_t size);

/* Is it a statically linked program? */
int dryrun_is_static(const char *program);

/* Is it a dynamically linked program? */
int dryrun_loads(const char *program);

/* The first library that the loader does not find for the program; 1, or 0: none, or unknown. */
int dryrun_missing(const struct dryrun *d, char *name, size_t size);

/* Reads the reports in the directory and writes them to `to`. Their number, or -1 after an error message. `opened`:
 * processes that loaded the stand-in. */
int dryrun_show(const struct dryrun *d, FILE *to, int *opened);

#endif
