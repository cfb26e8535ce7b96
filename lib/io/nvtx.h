/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx.h - what the library is told and does, as NVTX marks for the profiler that watches the process
 *
 * in    activities (TENSOR, TENSOR_END, OP, USE) and iterations from the app's thread, hints from any
 * out   marks of the domain `umadvise` (io/nsys_mark.h), at the time at which they are given here; a range from each
 *       iteration's beginning to the next
 * owns  nothing but the range that is open; the domain stays as long as the process
 *
 * NVTX looks for a tool once, at the first call of a process: none is there, and nothing is ever marked. Op numbers go
 * on from context to context, so that a process has each once. Where the headers were missing when the library was
 * built, nobody listens.
 */
#ifndef UM_IO_NVTX_H
#define UM_IO_NVTX_H

#include "model/activity.h"

struct um_nvtx {
	struct um_activity_sink sink; /* takes TENSOR, TENSOR_END, OP and USE, and leaves out the rest */
	uint64_t first; /* number of the context's first op */
	uint64_t range; /* that is open */
	int open, in_range;
};

/* Were the headers there when the library was built? */
int um_nvtx_built(void);

/* 1: a tool is attached, and marks are welcome; else 0, and nothing below does anything. Control path. */
int um_nvtx_open(struct um_nvtx *m);
void um_nvtx_close(struct um_nvtx *m);

/* Iteration `n` begins, `name` may be NULL; what was open ends. Iteration path. */
void um_nvtx_iter(struct um_nvtx *m, uint64_t n, const char *name);

/* Any thread, while it is open: a hint was just given. 0 or -ENOMEM. */
int um_nvtx_hint(const struct um_nvtx *m, const struct um_activity *hint);

#endif
