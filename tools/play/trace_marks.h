/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_marks.h - where the library finds iterations in a recorded workload that has no `iter` lines
 *
 * in    a trace
 * out   the same trace with iterations
 * owns  a context without a device, while it looks
 *
 * The events pass the public API once, so what is found is what a program's run finds. The two periods that told are
 * iterations, too. Where the recording ends in the middle of an iteration, that is cut off. O(events).
 */
#ifndef UM_PLAY_TRACE_MARKS_H
#define UM_PLAY_TRACE_MARKS_H

#include "io/umtrace.h"

/* Inserts iterations into a trace that has none. Where nothing repeats, its ops are one. 0; -ENODATA: it has no ops;
 * -ENOMEM. */
int um_trace_marks_find(struct um_trace *t);

#endif
