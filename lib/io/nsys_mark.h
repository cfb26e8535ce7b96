/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_mark.h - tensors, ops, uses and hints as the texts of NVTX marks
 *
 * A mark of the domain UM_NSYS_MARKS, one line each, numbers as in C:
 *     tensor ADDRESS BYTES NAME    from now on, these addresses are called so (doc/report.md)
 *     tensor-end ADDRESS           what began there is over
 *     op N NAME                    what this thread launches from now on
 *     use N r|w|u ADDRESS BYTES    op N reads, overwrites, or reads and writes that
 *     hint N|- KIND ADDRESS BYTES ERROR
 *                                  prefetch, evict, discard or advise, for op N
 * Any program may write them. Private to the nsys_* files and nvtx.
 */
#ifndef UM_IO_NSYS_MARK_H
#define UM_IO_NSYS_MARK_H

#include "model/activity.h"

#define UM_NSYS_MARKS "umadvise"

/* The text of such an activity: 0 or -ENOMEM; *out NULL: it is none. Given; for free(). */
int um_nsys_mark_write(const struct um_activity *a, char **out);

/* What a text says: 1, and kind, address, bytes, op and so on are set, a name is borrowed from the text; 0: nothing. */
int um_nsys_mark_read(const char *text, struct um_activity *a);

#endif
