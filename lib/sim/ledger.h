/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.h - cost of each kernel and allocation on the simulated GPU
 *
 * in    activity of a device that was opened with the option `ledger`
 * out   sums per kernel name and per managed allocation, for a report
 * owns  its rows and copies of the names
 *
 * Row 0 of both lists is for kernels and allocations without a row of their own: too many, or out of memory. Rows are
 * in order of first launch, and of allocation. Cost: an access to a hash table for each launch; nothing if it is off.
 */
#ifndef UM_SIM_LEDGER_H
#define UM_SIM_LEDGER_H

#include "base/vec.h"
#include "sim/sim.h"

struct um_ledger_kernel {
	char *name; /* NULL: row 0 */
	int xfer; /* a copy or a fill */
	uint64_t launches; /* begun */
	uint64_t computed; /* computed by host code */
	uint64_t ns; /* from its beginning to its end */
	uint64_t stall_ns; /* of that, stalled on memory */
	uint64_t faults, h2d_bytes, d2h_bytes, remote_bytes, evictions;
};

struct um_ledger_memory {
	uint32_t serial; /* as in the log; 0: row 0 */
	int alive;
	uint64_t bytes;
	uint64_t stall_ns; /* time that kernels waited for it */
	uint64_t faults, cpu_faults, h2d_bytes, d2h_bytes, evictions;
	UM_VEC(char *) names; /* of what was in it, each once, in order of appearance; stays when it is freed */
	uint64_t names_left_out; /* namings for which there was no room or no memory */
};

struct um_ledger_kind {
	uint64_t bytes, peak_bytes; /* allocated now; peak */
	uint64_t n; /* allocations so far */
};

struct um_ledger {
	UM_VEC(struct um_ledger_kernel) kernel;
	UM_VEC(struct um_ledger_memory) memory;
	struct um_ledger_kind kind[UM_SIM_REGISTERED + 1]; /* by enum um_sim_kind */
	uint64_t calls; /* host functions called in stream order */
	UM_VEC(uint32_t) slot; /* hash table: rows of `kernel`, 0 is free; n is a power of two */
};

#define UM_LEDGER_NAMES 32 /* of an allocation */

/* The program calls a range of managed memory so. Nothing happens where there is no ledger or no such memory; where
 * memory runs out the name is missing. */
void um_sim_ledger_name(struct um_gpu *gpu, const void *at, const char *name);

/* Calls `fn` with the current sums; it must not call the device. May be called from anywhere, also while a kernel's
 * host code runs. 0; -ENOENT: there is no ledger; -EBUSY: another thread is inside the device for seconds. */
int um_sim_ledger_show(struct um_gpu *gpu,
		       void (*fn)(void *user, const struct um_tally *tally, const struct um_ledger *ledger),
		       void *user);

#endif
