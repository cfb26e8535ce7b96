/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys.h - Nsight Systems exports (SQLite): reading any version's, and writing one
 *
 * in    a file of `nsys export --type sqlite`; to write: activities, in any order
 * out   activities in order of time, and what else the file says (model/capture.h); a file of that shape
 *
 * Reading changes nothing, opens nothing but the file itself, and takes memory that does not grow with it. Tables and
 * columns are probed: each may be absent. Not part of the shipped library: it needs libsqlite3.
 */
#ifndef UM_FORMATS_NSYS_H
#define UM_FORMATS_NSYS_H

#include "base/diag.h"
#include "model/activity.h"
#include "model/capture.h"
#include "model/profile.h"

struct um_nsys_read_options {
	/* Called now and then, with how much of the file was read; may be NULL. Non-zero ends it: -ECANCELED. */
	int (*progress)(void *user, uint64_t rows, uint64_t of);
	/* Rows turned out not to lie in order of time, and all of it is read again: forget what was fed. */
	void (*again)(void *user);
	void *user;
	int sort; /* rows are known not to lie in order of time: they are sorted from the start */
	unsigned kinds; /* of activities: bits 1 << UM_ACT_*; tables without any of them are not read. 0: all are */
	int shapes; /* of kernels are wanted */
	uint64_t thread_rows; /* a table of so many rows or more has a thread that reads it; 0: the usual */
};

/* Reads `path` into the sink, in order of `begin`. `capture` is filled first; it is initialised here, and the caller
 * ends it. 0; -EINVAL: refused, and `diag` (initialised here) says why; -ENOMEM; or what the sink answered. */
int um_nsys_read(const char *path, const struct um_nsys_read_options *options, struct um_activity_sink *sink,
		 struct um_capture *capture, struct um_diag *diag);

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct um_nsys_writer;

/* Begins a file of a simulated run on `device` (copied). 0, or -errno with `diag` (initialised here) set. */
int um_nsys_create(struct um_nsys_writer **out, const char *path, const struct um_profile *device,
		   struct um_diag *diag);

/* What is fed here is written; the first failure sticks, and is told at the end. Borrowed; the writer's own. */
struct um_activity_sink *um_nsys_sink(struct um_nsys_writer *w);

/* Ends it: 0 and the file is there as a whole, or -errno and nothing is left behind. keep 0 throws it away. */
int um_nsys_close(struct um_nsys_writer *w, int keep, struct um_diag *diag);

#endif
