/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_listen.h - takes NVTX ranges of the program as marks of iterations, and tells a follower of those of threads
 *
 * in    NVTX calls of every library of the process, through NVTX's injection interface (InitializeInjectionNvtx2);
 *       UMADVISE_ITERATION: which ranges; UMADVISE_NVTX_NEXT: another tool
 * out   the number of iterations marked by ranges so far, and the name of the last one; pushes and pops to a follower
 * owns  the names of domains and registered strings, until the process ends
 *
 * Each library that uses NVTX has its own table of functions, which NVTX fills at the first call. The other tool fills
 * it first. This library then replaces the functions that begin ranges and create domains and strings, and with a
 * follower those that pop ranges; the replacements call the tool's functions. All other calls go to the tool directly.
 * Ranges emitted by this library (io/nvtx.h) are no marks.
 *
 * No lock is taken when a range begins, so it may begin anywhere, in any thread, also in a forked child. The calls of a
 * context look for a new mark. A range costs a comparison with the pattern.
 */
#ifndef UM_GPU_NVTX_LISTEN_H
#define UM_GPU_NVTX_LISTEN_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Number of ranges so far that mark an iteration. */
extern _Atomic uint64_t um_nvtx_marks;

/* Name of the last such range, without a number at its end; NULL: none. Valid until the process ends. */
const char *um_nvtx_mark_name(void);

/* Follows the ranges of each thread, in that thread. `domain`: a handle, NULL for the default one. */
struct um_nvtx_follower {
	/* The calling thread enters a range. `of`: the domain's name, NULL: it has none; `text` NULL: the range has
	 * none, or is an iteration. */
	void (*push)(const void *domain, const char *of, const char *text);
	/* It leaves its latest range of the domain. */
	void (*pop)(const void *domain);
	/* Label of what it does, until its next push or pop. NULL: none. */
	const char *(*label)(void);
};

/* NULL: none. Set before um_nvtx_listen, while the process has one thread. */
extern const struct um_nvtx_follower *um_nvtx_follower;

/* Puts this library before the tool that NVTX would load, if UMADVISE_ITERATION is set or there is a follower, and the
 * library is shared: it receives the ranges of libraries that use NVTX for the first time after this call. Changes the
 * environment, once. Start path. */
void um_nvtx_listen(void);

/* 1: the range marks an iteration. `pattern`: a shell pattern for its name, or for DOMAIN/NAME. `domain` NULL: the
 * default one. */
int um_nvtx_is_iteration(const char *pattern, const char *domain, const char *name);

#endif
