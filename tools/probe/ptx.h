/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.h - kernels as PTX text, for the driver to compile
 */
#ifndef UM_PROBE_PTX_H
#define UM_PROBE_PTX_H

/* um_spin(u64 ns), um_touch(u64 at, u64 stride, u32 n, u32 rows, u32 write, u32 serial), um_sweep(u64 from, u64 at, u64
 * bytes, u64 chunk), um_fma(u64 rounds). */
extern const char um_probe_ptx[];

#endif
