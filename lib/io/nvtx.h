/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx.h - activities of the library as NVTX marks for an attached profiler
 *
 * in    activities (TENSOR, TENSOR_END, OP, USE) and iterations from the program's thread, hints from any thread
 * out   marks of the domain `umadvise` (io/nsys_mark.h), at the time of the call; a range from each iteration's
 *       beginning to the next
 * owns  only the open range; the domain lives as long as the process
 *
 * NVTX looks for a tool once, at the first call of a process; without a tool nothing is ever marked. Op numbers
 * continue from context to context, so that they are unique in a process. If the NVTX headers were missing at build
 * time, no tool is found.
 */
#ifndef UM_IO_NVTX_H
#define UM_IO_NVTX_H

#include "model/activity.h"

struct um_nvtx {
	struct um_activity_sink sink; /* takes TENSOR, TENSOR_END, OP and USE, ignores other kinds */
	uint64_t first; /* number of the context's first op */
	uint64_t range; /* the open range */
	int open, in_range;
};

/* Was the library built with NVTX headers? */
int um_nvtx_built(void);

/* 1: a tool is attached; otherwise 0, and the functions below do nothing. Control path. */
int um_nvtx_open(struct um_nvtx *m);
void um_nvtx_close(struct um_nvtx *m);

/* Iteration `n` begins, `name` may be NULL; ends the open range. Iteration path. */
void um_nvtx_iter(struct um_nvtx *m, uint64_t n, const char *name);

/* Marks a hint that was just issued; from any thread while it is open. 0 or -ENOMEM. */
int um_nvtx_hint(const struct um_nvtx *m, const struct um_activity *hint);

#endif
