/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_file.h - umplan files (doc/umplan.md): read and write
 *
 * Written plain, or gzip where the name ends in .gz; read either way. Keys beyond the format that we add and read back:
 * a slot's `place` (counted from the lowest block: a file holds no address), `carry`, `flags`, `ord`; an op's `order`,
 * `dead`, `measured`, `hash`. The reader checks ids, ranges, order and numbers; whether the plan is sound is
 * um_plan_check's matter. A diag is initialised here and may be NULL; `out` stays as it was when a plan is refused.
 */
#ifndef UM_IO_PLAN_FILE_H
#define UM_IO_PLAN_FILE_H

#include "base/diag.h"
#include "model/plan.h"

int um_plan_read(const char *path, struct um_plan *out, struct um_diag *diag); /* `out` initialised */
int um_plan_read_mem(const void *data, size_t bytes, struct um_plan *out, struct um_diag *diag);

/* Temporary beside `path`, then rename; 0 or -errno and nothing half-written. "-": standard output. */
int um_plan_write(const char *path, const struct um_plan *p, struct um_diag *diag);

#endif
