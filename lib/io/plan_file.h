/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_file.h - reads and writes umplan files (doc/umplan.md)
 *
 * Written plain, or gzip if the name ends in .gz; read either way. Additional keys written and read by this library: a
 * slot's `place` (counted from the lowest block: a file holds no address), `carry`, `flags`, `ord`; an op's `order`,
 * `dead`, `measured`, `hash`. The reader checks ids, ranges, order and numbers; um_plan_check decides whether the plan
 * is sound. A diag is initialised here and may be NULL; `out` is unchanged when a plan is refused.
 */
#ifndef UM_IO_PLAN_FILE_H
#define UM_IO_PLAN_FILE_H

#include "base/diag.h"
#include "model/plan.h"

int um_plan_read(const char *path, struct um_plan *out, struct um_diag *diag); /* `out` initialised */
int um_plan_read_mem(const void *data, size_t bytes, struct um_plan *out, struct um_diag *diag);

/* Temporary beside `path`, then rename; 0, or -errno and nothing is written. "-": standard output. */
int um_plan_write(const char *path, const struct um_plan *p, struct um_diag *diag);

#endif
