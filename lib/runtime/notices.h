/* SPDX-License-Identifier: Apache-2.0
 *
 * notices.h - log lines of a context, warnings once per cause, and the count of failures
 *
 * in    lines, causes
 * out   calls of the program's log function, or lines on stderr
 * owns  the set of logged causes, the number of failures
 *
 * Outside the op path. The caller holds the context's lock.
 */
#ifndef UM_RUNTIME_NOTICES_H
#define UM_RUNTIME_NOTICES_H

#include "umadvise.h"

enum um_warned {
	UM_WARN_POINTER = 1,
	UM_WARN_PLAN = 2,
	UM_WARN_TRACE = 4,
	UM_WARN_LOST = 8,
	UM_WARN_CAPTURE = 16,
	UM_WARN_GATES = 32,
	UM_WARN_RUN_LOG = 64,
	UM_WARN_COUNTERS = 128,
	UM_WARN_FREED = 256,
	UM_WARN_RANGE = 512,
	UM_WARN_STREAM = 1024,
	UM_WARN_OUTSIDE = 2048,
	UM_WARN_LONG = 4096,
	UM_WARN_RESERVED = 8192,
	UM_WARN_DESTROYED = 16384,
	UM_WARN_REFEREE = 32768,
	UM_WARN_KERNEL = 65536,
	UM_WARN_HOST = 131072,
	UM_WARN_OTHER = 262144
};

struct um_notices {
	umadv_log_fn log; /* NULL: stderr */
	void *log_user;
	enum umadv_log_level level; /* less important lines are not logged */
	unsigned warned; /* enum um_warned: each cause is logged once */
	uint64_t errors; /* failed allocations and device calls of the library */
};

void um_notices_init(struct um_notices *n, const struct umadv_options *options);

void um_notices_log(struct um_notices *n, enum umadv_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A warning, once per cause. */
void um_notices_warn(struct um_notices *n, enum um_warned cause, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
