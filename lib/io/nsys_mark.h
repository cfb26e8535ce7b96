/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_mark.h - tensors, ops, uses and hints as texts of NVTX marks
 *
 * A mark of the domain UM_NSYS_MARKS, one line each, numbers as in C:
 *     tensor ADDRESS BYTES NAME    names these addresses from now on (doc/report.md)
 *     tensor-end ADDRESS           ends the tensor that began there
 *     op N NAME                    announces the following launches of this thread
 *     use N r|w|u ADDRESS BYTES    op N reads, overwrites, or updates the range
 *     hint N|- KIND ADDRESS BYTES ERROR
 *                                  prefetch, evict, discard or advise, for op N
 * Any program may write them. Private to the nsys_* files and nvtx.
 */
#ifndef UM_IO_NSYS_MARK_H
#define UM_IO_NSYS_MARK_H

#include "model/activity.h"

#define UM_NSYS_MARKS "umadvise"

/* The text of an activity, to be freed; *out NULL: it has no mark. 0 or -ENOMEM. */
int um_nsys_mark_write(const struct um_activity *a, char **out);

/* Parses a text: 1, with kind, address, bytes, op and so on set, a name borrowed from the text; 0: not a mark. */
int um_nsys_mark_read(const char *text, struct um_activity *a);

#endif
