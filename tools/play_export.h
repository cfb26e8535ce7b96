/* SPDX-License-Identifier: Apache-2.0
 *
 * play_export.h - what a simulated run showed, as a file: by its name an export of Nsight Systems or a trace
 *
 * A simulation does not know its events in order of time, and a trace wants them so: it is made from an export, which
 * lies beside it meanwhile.
 */
#ifndef UM_TOOLS_PLAY_EXPORT_H
#define UM_TOOLS_PLAY_EXPORT_H

#include "formats/nsys.h"
#include "play_args.h"

struct play_export {
	struct um_nsys_writer *writer;
	struct play_progress *progress; /* borrowed */
	const char *path;
	char *between; /* the export's name where `path` is a trace; else NULL */
};

/* 0 and what is to be fed, or -errno with `diag` (initialised here) set. */
int play_export_open(struct play_export *e, const char *path, const struct um_profile *device,
		     struct play_progress *progress, struct um_activity_sink **watch, struct um_diag *diag);

/* 0 and the file is there, or -errno and nothing is left behind; keep 0 throws it away and returns 0. */
int play_export_close(struct play_export *e, int keep, struct um_diag *diag);

#endif
