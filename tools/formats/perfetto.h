/* SPDX-License-Identifier: Apache-2.0
 *
 * perfetto.h - writes activities over time: trace JSON for Perfetto and chrome://tracing (doc/report.md)
 *
 * in    activities in order of `begin`
 * out   the file, gzip where its name ends in .gz: slices by thread, stream, direction and fault, counters, and an
 *       arrow from each hint to the operation that it is for
 * owns  open slices, and recent operations and launches for the ends of arrows
 *
 * Memory does not grow with activities, except 16 bytes for each 2 MiB that was migrated and not freed. Arrows span the
 * last 65,536 operations and calls. Not part of the shipped library.
 */
#ifndef UM_FORMATS_PERFETTO_H
#define UM_FORMATS_PERFETTO_H

#include "base/diag.h"
#include "model/activity.h"
#include "model/capture.h"

struct um_perfetto;

struct um_perfetto_options {
	const struct um_capture *capture; /* names of processes and devices; borrowed; NULL: none */
	/* The name of the tensor of a migration, fault or hint: borrowed until the next call; NULL: unknown. May be
	 * NULL. */
	const char *(*tensor)(void *user, const struct um_activity *a);
	void *user;
	int kernels_say_op; /* KERNEL has `op`, or UM_ACT_NO_OP: calls are not used to find it */
	int own_residency; /* no counter of resident bytes from migrations: the caller has exact ones */
};

/* 0, or -errno with `diag` (initialised here, may be NULL) set. "-": standard output. */
int um_perfetto_open(struct um_perfetto **out, const char *path, const struct um_perfetto_options *options,
		     struct um_diag *diag);

/* The sink to feed; -EINVAL: out of order. Borrowed; owned by the writer. */
struct um_activity_sink *um_perfetto_sink(struct um_perfetto *w);

/* A point of a counter of a device: several series, one above the other. 0 or -ENOMEM. */
int um_perfetto_count(struct um_perfetto *w, uint64_t process, int32_t device, int64_t at, const char *name, unsigned n,
		      const char *const *series, const uint64_t *values);

/* Ends it: 0 and the file is complete, or -errno and no file remains. keep 0 removes it. */
int um_perfetto_close(struct um_perfetto *w, int keep, struct um_diag *diag);

#endif
