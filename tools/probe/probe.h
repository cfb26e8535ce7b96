/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - experiments on a device, and their observations
 *
 * in    a device (gpu/gpu.h), a launcher for it, a limit of managed memory
 * out   observed figures, which derive.h converts to constants
 * owns  nothing after a probe has returned
 *
 * Probes are independent and can run in separate processes, so that a hanging probe does not affect others. Nothing is
 * ever oversubscribed (guard.h). Start path.
 */
#ifndef UM_PROBE_PROBE_H
#define UM_PROBE_PROBE_H

#include "probe/launcher.h"
#include "probe/stats.h"

/* Observations: name, unit, meaning. Times of calls are those of the calling thread. */
#define UM_OBSERVATIONS(X)                                                                                             \
	X(PF_RES_CALL, "pf_res_call", "ns", "prefetch of resident memory: the call")                                   \
	X(PF_RES_BLOCK, "pf_res_block", "ns", "prefetch of resident memory: each block")                               \
	X(PF_NEW_BLOCK, "pf_new_block", "ns", "prefetch of unused memory: each block")                                 \
	X(PF_FIRST_BLOCK, "pf_first_block", "ns", "prefetch after a write of the CPU: each block")                     \
	X(PF_AGAIN_BLOCK, "pf_again_block", "ns", "the same, resident on the device before: each block")               \
	X(PF_SPLIT_BLOCK, "pf_split_block", "ns", "prefetch of blocks split by advice: each block")                    \
	X(DISCARD_BLOCK, "discard_block", "ns", "a discard: each block")                                               \
	X(RENEW_BLOCK, "renew_block", "ns", "discard and prefetch in one call: each block")                            \
	X(DISCARD_FAULTS, "discard_faults", "", "1: a write after a discard faults")                                   \
	X(ADVISE_BLOCK, "advise_block", "ns", "a preferred location: each block")                                      \
	X(ADVISE_AB_BLOCK, "advise_accessed_by_block", "ns", "accessed-by: each block")                                \
	X(H2D_PAGE, "h2d_page", "ns", "prefetch to the device: each 64 KiB of a block")                                \
	X(H2D_RUN, "h2d_run", "ns", "the same bytes in one piece more")                                                \
	X(D2H_PAGE, "d2h_page", "ns", "prefetch to the host: each 64 KiB of a block")                                  \
	X(D2H_BLOCK, "d2h_block", "ns", "prefetch of a block to the host, call and all")                               \
	X(D2H_BLOCK_FIRST, "d2h_block_first", "ns", "the same, never before on the host")                              \
	X(MAP_PAGE, "map_page", "ns", "prefetch to the host of unmapped host memory: each 64 KiB")                     \
	X(MAP_BLOCK, "map_block", "ns", "the same for a block, call and all")                                          \
	X(MAP_NOTHING, "map_nothing", "ns", "the same call again, without effect")                                     \
	X(DUPLEX, "duplex", "", "rate to the device while the other direction is busy, share of the rate alone")       \
	X(LINK_H2D, "link_h2d", "bytes/s", "pinned copy to the device")                                                \
	X(LINK_D2H, "link_d2h", "bytes/s", "pinned copy to the host")                                                  \
	X(RATE_H2D, "rate_h2d", "bytes/s", "prefetch of many blocks to the device")                                    \
	X(RATE_D2H, "rate_d2h", "bytes/s", "prefetch of many blocks to the host")                                      \
	X(FAULT_SERIAL, "fault_serial", "ns", "a fault at a time: each")                                               \
	X(FAULT_PLACE, "fault_place", "ns", "faults at once, in different blocks: each")                               \
	X(FAULT_ENTRY, "fault_entry", "ns", "faults at once, in one block: each")                                      \
	X(FAULT_PERM, "fault_perm", "ns", "a written read-mostly page, with its 16 faults")                            \
	X(FAULT_NARROW, "fault_narrow", "bytes/s", "faults, one region at a time")                                     \
	X(FAULT_WIDE, "fault_wide", "bytes/s", "faults, all regions at once")                                          \
	X(FAULT_LIBRARY, "fault_library", "bytes/s", "faults of library kernels")                                      \
	X(REMOTE, "remote", "bytes/s", "reads of host memory over the link")                                           \
	X(CPU_FIRST, "cpu_first", "ns", "the CPU's first touch of a block")                                            \
	X(CPU_FAULT, "cpu_fault", "ns", "the CPU's touch of the next 64 KiB")                                          \
	X(LAUNCH, "launch", "ns", "an empty kernel after another")                                                     \
	X(MEMORY, "memory", "bytes/s", "reading and writing device memory")                                            \
	X(FLOPS, "flops", "FLOP/s", "multiply and add in registers")                                                   \
	X(CALL_PF_BUSY, "call_pf_busy", "ns", "a prefetch call on a busy stream")                                      \
	X(CALL_PF_HOST_BUSY, "call_pf_host_busy", "ns", "the same to the host")                                        \
	X(CALL_DISCARD_BUSY, "call_discard_busy", "ns", "a discard call on a busy stream")                             \
	X(CALL_RENEW_BUSY, "call_renew_busy", "ns", "discard and prefetch on a busy stream")                           \
	X(CALL_ADVISE_BUSY, "call_advise_busy", "ns", "advice while the device computes")                              \
	X(HOST_BLOCKS, "host_blocks", "", "share of a prefetch to the host that blocks its caller")                    \
	X(PACK_4K, "pack_4k", "bytes", "distance of allocations of 4 KiB")                                             \
	X(PACK_64K, "pack_64k", "bytes", "distance of allocations of 64 KiB")                                          \
	X(PACK_1M, "pack_1m", "bytes", "distance of allocations of 1 MiB")

enum um_observation {
#define UM_OBSERVATION_ID(id, name, unit, text) UM_OBS_##id,
	UM_OBSERVATIONS(UM_OBSERVATION_ID)
#undef UM_OBSERVATION_ID
		UM_OBS_N
};

struct um_observed {
	struct um_figure at[UM_OBS_N];
};

const char *um_observation_name(enum um_observation o);
const char *um_observation_unit(enum um_observation o);
const char *um_observation_text(enum um_observation o);
int um_observation_find(const char *name); /* enum um_observation, or -ENOENT */

struct um_probe_setup {
	struct um_gpu *gpu; /* borrowed */
	struct um_launcher *launcher; /* borrowed */
	uint64_t budget; /* limit of managed bytes; 0: the guard's limit, or less if more is useless */
	unsigned rounds; /* repetitions, UM_ROUNDS_MAX at most; 0: 11, or 2 with simulated time, which has no noise */
};

#define UM_PROBE_LEAST (5 * UM_BLOCK_BYTES) /* least useful managed memory */

/* The n-th probe's name ("prefetch", "link", ...), or NULL past the last. */
const char *um_probe_name(unsigned n);
int um_probe_find(const char *name); /* its number, or -ENOENT */

/* Runs it; sets its observations in `out`. 0; -EPERM: too little memory (guard.h); -EIO: a call failed. `why` explains
 * it in one line. */
int um_probe_run(unsigned n, const struct um_probe_setup *setup, struct um_observed *out, char *why, size_t size);

#endif
