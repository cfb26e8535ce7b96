/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_listen.h - NVTX ranges of the program, as marks of iterations
 *
 * in    NVTX calls of every library of the process, through NVTX's injection interface (InitializeInjectionNvtx2);
 *       UMADVISE_ITERATION: which ranges; UMADVISE_NVTX_NEXT: another tool
 * out   the number of ranges that began so far and are iterations, and the name of the last one
 * owns  the names of domains and registered strings, as long as the process
 *
 * Each library that uses NVTX has a table of functions of its own, which NVTX fills when it is used first. The other
 * tool fills it before us; the functions that begin ranges, and those that make domains and strings, are then replaced
 * by ours, which call the tool's. All other calls go to the tool directly. Ranges that this library emits itself
 * (io/nvtx.h) are no marks.
 *
 * No lock is taken when a range begins, so it may begin anywhere, in any thread, also in a forked child. The calls of a
 * context look for a new mark. A range costs a comparison with the pattern.
 */
#ifndef UM_GPU_NVTX_LISTEN_H
#define UM_GPU_NVTX_LISTEN_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Ranges begun so far that are iterations. */
extern _Atomic uint64_t um_nvtx_marks;

/* Name of the last such range, without a number at its end; NULL: none. As long as the process. */
const char *um_nvtx_mark_name(void);

/* Puts this library before the tool that NVTX would load, if UMADVISE_ITERATION is set and the library is shared:
 * libraries that use NVTX for the first time from now on are heard. Changes the environment, once. Start path. */
void um_nvtx_listen(void);

/* Is a range an iteration? `pattern` is a shell pattern of its name, or of DOMAIN/NAME. `domain` NULL: the default
 * one. */
int um_nvtx_is_iteration(const char *pattern, const char *domain, const char *name);

#endif
