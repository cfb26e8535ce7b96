/* SPDX-License-Identifier: Apache-2.0
 *
 * null.h - a device whose calls succeed at once and are counted
 *
 * Everything is host memory, every event is complete, workers are real threads of the library. Used by tests, and to
 * measure the library's own cost. Thread-safe.
 */
#ifndef UM_GPU_NULL_H
#define UM_GPU_NULL_H

#include "gpu/gpu.h"

struct um_null_counts {
	uint64_t allocs, frees, prefetches, prefetch_bytes, evicts, evict_bytes;
	uint64_t discards, discard_bytes, advices, events, waits;
};

/* `fail_nth` > 0 makes the n-th hint call (prefetch, discard, advise) and every n-th after it fail with
 * UM_CUDA_INVALID_VALUE. */
int um_null_open(struct um_gpu **out, uint64_t capacity, unsigned fail_nth);
void um_null_counts(struct um_gpu *gpu, struct um_null_counts *out);

#endif
