/* SPDX-License-Identifier: Apache-2.0
 *
 * reporting.h - the library's own log (io/log.h): who is told what, and when
 *
 * in    a context; where its iterations begin
 * out   a umlog file
 * owns  the log
 *
 * Iteration path. The front desk holds the lock.
 */
#ifndef UM_REPORTING_H
#define UM_REPORTING_H

#include "io/log.h"
#include "umadvise.h"

struct um_reporting {
	struct um_log *log; /* NULL: none */
	struct umadv_stats before; /* as of the beginning of the part at hand */
};

/* Begins the log that the options ask for, if they do. What goes wrong is said and counted. */
void um_reporting_open(struct umadv *adv);
/* Iteration `n` begins, called `name` (may be NULL): what was before is written. */
void um_reporting_iter(struct umadv *adv, uint64_t n, const char *name);
void um_reporting_close(struct umadv *adv);

#endif
