/* SPDX-License-Identifier: Apache-2.0
 *
 * shard.h - the workload of one rank of several that share a batch (data parallelism)
 *
 * in    a trace of training with the whole batch on one device; how many ranks; the rate of their ring
 * out   the trace of a rank: its part of the batch, and all-reduces of the gradients
 *
 * Inputs and activations (roles input and act) are divided among the ranks. Parameters, gradients and optimizer state
 * are replicated, and so is what is born before the first iteration. Another tensor follows the op that uses it first:
 * it is divided if that op uses the batch. An op that uses the batch does its share of the work, as efficiently as with
 * the whole batch: real kernels on small batches take longer.
 *
 * Gradients are reduced as PyTorch's DistributedDataParallel does it: in buckets, each as soon as the backward pass has
 * written all of it, while the pass goes on. Before the first op that needs a bucket its end is waited for. A ring of n
 * ranks moves 2 (n - 1) / n of the bytes through each of them. An iteration in which nothing reads the gradients
 * (gradient accumulation) reduces none.
 */
#ifndef UM_PLAY_SHARD_H
#define UM_PLAY_SHARD_H

#include "io/umtrace.h"
#include "model/profile.h"

#define UM_SHARD_BUCKET (25ull << 20) /* bytes; the default of DistributedDataParallel */

struct um_shard_options {
	unsigned ranks; /* at least 1 */
	double bandwidth; /* bytes per second through each rank of the ring */
	const struct um_profile *profile; /* times of ops */
};

/* Of the last iteration that reduces gradients. */
struct um_shard_figures {
	uint64_t reduced_bytes;
	uint64_t collective_ns; /* of all buckets */
	uint64_t exposed_ns; /* that ops wait for them with all data resident */
	unsigned buckets;
};

/* 0; -EINVAL: no op uses a tensor with the role input or act; -ENOMEM. The caller frees `*out` (um_trace_free). */
int um_shard(const struct um_trace *t, const struct um_shard_options *o, struct um_trace **out,
	     struct um_shard_figures *figures);

#endif
