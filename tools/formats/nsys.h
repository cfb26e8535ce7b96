/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys.h - reads Nsight Systems exports (SQLite) of any version, and writes them
 *
 * in    a file of `nsys export --type sqlite`; to write: activities, in any order
 * out   activities in order of time, and other properties of the file (model/capture.h); an export
 *
 * Reading changes nothing, opens only the file itself, and needs memory independent of its size. Tables and columns are
 * probed: each may be absent. Not part of the shipped library: it needs libsqlite3.
 */
#ifndef UM_FORMATS_NSYS_H
#define UM_FORMATS_NSYS_H

#include "base/diag.h"
#include "model/activity.h"
#include "model/capture.h"
#include "model/profile.h"

struct um_nsys_read_options {
	/* Called regularly with the share of the file that was read; may be NULL. Non-zero ends reading: -ECANCELED. */
	int (*progress)(void *user, uint64_t rows, uint64_t of);
	/* Called if rows are out of order and the file is read again: drop all fed activities. */
	void (*again)(void *user);
	void *user;
	int sort; /* rows are known to be out of order: sort them from the start */
	unsigned kinds; /* wanted activities: bits 1 << UM_ACT_*; other tables are not read. 0: all */
	int shapes; /* shapes of kernels are wanted */
	uint64_t thread_rows; /* tables of at least so many rows get a reading thread; 0: default */
};

/* Reads `path` into the sink, in order of `begin`. `capture` is filled first; it is initialised here, and the caller
 * ends it. 0; -EINVAL: refused, explained by `diag` (initialised here); -ENOMEM; or the sink's result. */
int um_nsys_read(const char *path, const struct um_nsys_read_options *options, struct um_activity_sink *sink,
		 struct um_capture *capture, struct um_diag *diag);

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct um_nsys_writer;

/* Begins a file of a simulated run on `device` (copied). 0, or -errno with `diag` (initialised here) set. */
int um_nsys_create(struct um_nsys_writer **out, const char *path, const struct um_profile *device,
		   struct um_diag *diag);

/* The sink to feed; the first failure is returned at the end. Borrowed; owned by the writer. */
struct um_activity_sink *um_nsys_sink(struct um_nsys_writer *w);

/* Ends it: 0 and the file is complete, or -errno and no file remains. keep 0 removes it. */
int um_nsys_close(struct um_nsys_writer *w, int keep, struct um_diag *diag);

#endif
