/* SPDX-License-Identifier: Apache-2.0
 *
 * derive.h - computes the constants of a profile from observations
 *
 * in    the probes' observations
 * out   a profile; for each constant, whether it was measured, and its spread
 *
 * Pure: no device, no clock. A constant without observations keeps the profile's value.
 */
#ifndef UM_PROBE_DERIVE_H
#define UM_PROBE_DERIVE_H

#include "model/profile.h"
#include "probe/probe.h"

/* Measurable constants, in the order of a profile file, which also has sizes and names. */
/* clang-format off */
#define UM_CONSTANTS(X)                                                                                            \
	X(flops) X(mem_bandwidth) X(launch_ns) X(h2d) X(d2h) X(duplex) X(duplex_evict) X(eta) X(c_batch) X(c_fault)  \
	X(c_blk) X(c_perm) X(c_unmap) X(c_dma) X(c_dma_4k) X(c_hostpop) X(c_hostzero) X(c_evict) X(c_evict_unused)   \
	X(c_zero) X(c_api) X(c_pf) X(c_pf_res) X(c_pf_cpu) X(c_disc) X(c_disc_u) X(c_adv) X(c_adv_ab) X(c_cpuf)      \
	X(o_seg) X(b_remote)
/* clang-format on */

enum um_constant {
#define UM_CONSTANT_ID(c) UM_CONST_##c,
	UM_CONSTANTS(UM_CONSTANT_ID)
#undef UM_CONSTANT_ID
		UM_CONST_N
};

const char *um_constant_name(enum um_constant c);
const char *um_constant_unit(enum um_constant c);
double um_constant_get(const struct um_profile *p, enum um_constant c);
void um_constant_set(struct um_profile *p, enum um_constant c, double value);

struct um_derived {
	struct um_figure at[UM_CONST_N]; /* n 0: not measured */
	struct um_figure visits; /* visits of the fault handler to a block, with single faults */
};

/* Sets the constants of `p` from `seen`. */
void um_derive(const struct um_observed *seen, struct um_profile *p, struct um_derived *out);

/* Why a constant was not measured. */
const char *um_constant_why(enum um_constant c);

#endif
