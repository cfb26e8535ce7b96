/* SPDX-License-Identifier: Apache-2.0
 *
 * paged_op.h - which part of an op's ranges is prefetched, and which is left to page faults
 *
 * Of a range that an op touches here and there, page faults move fewer bytes than a prefetch. An op that alone exceeds
 * the device is assumed to access all of its ranges at the same fraction: an equal share of each is prefetched, from
 * its beginning, since more would evict blocks that the op accesses first. Op path.
 */
#ifndef UM_REPLAY_PAGED_OP_H
#define UM_REPLAY_PAGED_OP_H

#include "model/tensor.h"

#define UM_SPARSE 64 /* page faults for less than this share of a range take less time than a prefetch of it */
#define UM_PAGED_SPARE 32 /* this share of the blocks stays free for the first page faults */

static inline int um_range_is_sparse(uint64_t touched, uint64_t bytes)
{
	return touched < bytes / UM_SPARSE;
}

/* The share of each range that is prefetched, of an op that uses `bytes` on a device of `most` bytes. */
static inline double um_paged_share(uint64_t bytes, uint64_t most)
{
	return bytes <= most ? 1 : (double)(most - most / UM_PAGED_SPARE) / (double)bytes;
}

/* The bytes of a range that are prefetched. Of a share, whole blocks only. */
static inline uint64_t um_paged_part(uint64_t bytes, double share)
{
	return share < 1 ? (uint64_t)((double)bytes * share) & ~(UM_BLOCK_BYTES - 1) : bytes;
}

#endif
