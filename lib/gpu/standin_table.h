/* SPDX-License-Identifier: Apache-2.0
 *
 * standin_table.h - functions of the stand-in driver besides CUDA's
 *
 * The stand-in libcuda.so.1 (standin/) returns this table from cuGetProcAddress for UM_STANDIN_NAME; a real driver does
 * not know the name. `version` and `size` must match on both sides, otherwise the table is not used. Streams are driver
 * handles (CUstream); errors are CUDA error codes.
 */
#ifndef UM_GPU_STANDIN_TABLE_H
#define UM_GPU_STANDIN_TABLE_H

#include "gpu/gpu.h"
#include "model/activity.h"
#include "model/profile.h"
#include "model/tally.h"

#define UM_STANDIN_NAME "umStandinTable"
#define UM_STANDIN_VERSION 5u
#define UM_STANDIN_KERNEL "umStandinKernel" /* register_kernel alone: for include/umadvise_dryrun.h */

struct um_standin_table {
	unsigned version;
	size_t size;
	const struct um_profile *(*profile)(void); /* of the device; NULL before cuInit */
	void (*tally)(struct um_tally *out);
	uint64_t (*now)(void); /* the caller's clock, ns */
	int (*announce)(um_stream stream, const struct um_announcement *next); /* as in struct um_gpu_api */
	/* as in struct um_gpu_api */
	int (*worker_start)(struct um_worker *worker);
	void (*worker_stop)(struct um_worker *worker);
	void (*worker_poke)(struct um_worker *worker);
	int (*worker_wait)(int (*done)(void *arg), void *arg);
	/* Registers a host function for a kernel (a CUfunction or CUkernel): it runs when the kernel executes, with
	 * copies of the kernel's parameters. Must not call CUDA. */
	int (*register_kernel)(void *function,
			       void (*host)(void **args, const unsigned grid[3], const unsigned block[3]));
	/* Launches a kernel without device code, as the stand-ins for CUDA's libraries do: `fn(arg)` is called when it
	 * executes (possibly often, in a graph), `free_arg(arg)` when it cannot execute any more, also on failure.
	 * Either may be NULL. `what` is copied; an announcement on the stream takes precedence. */
	int (*launch_host)(um_stream stream, const char *name, const struct um_announcement *what,
			   void (*fn)(void *arg), void *arg, void (*free_arg)(void *arg));
	/* As um_sim_count_moves. CUDA error code. */
	int (*count_moves)(struct um_activity_sink *sink);
	/* The error code that UMADVISE_DRYRUN_FAIL sets for a call of that name, or 0. */
	int (*fail)(const char *name);
	/* The program calls the managed memory at `at` so: a name for the report, copied. */
	void (*name_memory)(const void *at, const char *name);
	/* Kernels use the first `bytes` of the allocation at `at`: the rest only rounds its size up. */
	void (*use_memory)(const void *at, uint64_t bytes);
};

#endif
