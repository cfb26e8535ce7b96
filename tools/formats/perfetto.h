/* SPDX-License-Identifier: Apache-2.0
 *
 * perfetto.h - activities as a picture over time: trace JSON for Perfetto and chrome://tracing (doc/report.md)
 *
 * in    activities in order of `begin`
 * out   the file, gzip where its name ends in .gz: slices by thread, stream, direction and fault, counters, and an
 *       arrow from each hint to the operation that it is for
 * owns  what is open at the moment, and so much of operations and launches that arrows find their ends
 *
 * Memory does not grow with the activities, but for addresses: 16 bytes for each 2 MiB that was ever migrated and not
 * freed. Arrows reach over the last 65,536 operations and calls. Not part of the shipped library.
 */
#ifndef UM_FORMATS_PERFETTO_H
#define UM_FORMATS_PERFETTO_H

#include "base/diag.h"
#include "model/activity.h"
#include "model/capture.h"

struct um_perfetto;

struct um_perfetto_options {
	const struct um_capture *capture; /* names of processes and devices, looked up from the first activity on:
					     borrowed; NULL: none */
	/* What lies at the address of a migration, fault or hint: borrowed until the next call; NULL: that is not
	 * known. May be NULL. */
	const char *(*tensor)(void *user, const struct um_activity *a);
	void *user;
	int kernels_say_op; /* KERNEL has `op`, or UM_ACT_NO_OP: they are not found by calls */
	int own_residency; /* no counter of what is resident is made from migrations: the caller has better */
};

/* 0, or -errno with `diag` (initialised here, may be NULL) set. "-": standard output. */
int um_perfetto_open(struct um_perfetto **out, const char *path, const struct um_perfetto_options *options,
		     struct um_diag *diag);

/* Takes activities; -EINVAL: not in order of time. Borrowed; the writer's own. */
struct um_activity_sink *um_perfetto_sink(struct um_perfetto *w);

/* A point of a counter of a device: several series, one above the other. 0 or -ENOMEM. */
int um_perfetto_count(struct um_perfetto *w, uint64_t process, int32_t device, int64_t at, const char *name, unsigned n,
		      const char *const *series, const uint64_t *values);

/* Ends it: 0 and the file is there as a whole, or -errno and nothing is left behind. keep 0 throws it away. */
int um_perfetto_close(struct um_perfetto *w, int keep, struct um_diag *diag);

#endif
