/* SPDX-License-Identifier: Apache-2.0
 *
 * play_export.h - writes a simulated run as an export of Nsight Systems or, by its name, as a trace for Perfetto
 *
 * A simulation produces its events out of order, but a trace needs them in order of time: it is made from a temporary
 * export beside it.
 */
#ifndef UM_TOOLS_PLAY_EXPORT_H
#define UM_TOOLS_PLAY_EXPORT_H

#include "formats/nsys.h"
#include "play_args.h"

struct play_export {
	struct um_nsys_writer *writer;
	struct play_progress *progress; /* borrowed */
	const char *path;
	char *between; /* the export's name if `path` is a trace; else NULL */
};

/* 0 and the sink to feed, or -errno with `diag` (initialised here) set. */
int play_export_open(struct play_export *e, const char *path, const struct um_profile *device,
		     struct play_progress *progress, struct um_activity_sink **watch, struct um_diag *diag);

/* 0 and the file exists, or -errno and no file remains; keep 0 removes it and returns 0. */
int play_export_close(struct play_export *e, int keep, struct um_diag *diag);

#endif
