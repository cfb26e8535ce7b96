/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_ranges.h - the NVTX ranges that the calling thread is in, as a path
 *
 * in    ranges that a thread pushes and pops (gpu/nvtx_listen.h)
 * out   "forward/layer 3/aten::linear": the label of an op that the thread announces (um_nvtx_follower)
 * owns  a path for each thread that has pushed a range, until the thread ends
 *
 * A label is for people. It is no part of an op's name, by which iterations are compared, since texts of ranges may
 * count. Counters are left out of it where they are known as such: those of PyTorch's emit_nvtx, after ", seq = " or
 * ", op_id = ", and a number at the end of an outermost range, "step 17", until such a number was not greater than the
 * one before.
 *
 * Nothing is kept unless um_nvtx_ranges_keep was called. Each thread has its own path, so there is no lock. A push
 * copies its text; the first push of a thread allocates.
 */
#ifndef UM_INJECT_NVTX_RANGES_H
#define UM_INJECT_NVTX_RANGES_H

/* Paths are kept from now on. Start path, before the process has threads. */
void um_nvtx_ranges_keep(void);

#endif
