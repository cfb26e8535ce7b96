/* SPDX-License-Identifier: Apache-2.0
 *
 * content_check.h - UMADVISE_CHECK: compares the content that a relaunch makes with the content that was dropped
 *
 * in    tensors whose content is dropped, or was made anew, in the order of their stream
 * out   a log line for each tensor with other content; the ops that must not be launched again
 * owns  a record of each dropped tensor until it is compared
 *
 * Simulated kernels without uses compute the checksums, so simulated time is the same without them. A kernel runs when
 * simulated time reaches it, on any thread; its result is read under the context's lock. Only where the device is
 * simulated: on a real one the CPU would have to migrate the content to read it.
 */
#ifndef UM_RUNTIME_CONTENT_CHECK_H
#define UM_RUNTIME_CONTENT_CHECK_H

#include "base/vec.h"
#include "gpu/simulation.h"
#include "record/registry.h"
#include "runtime/notices.h"

struct um_content_sum;

struct um_content_check {
	UM_VEC(struct um_content_sum *) sums; /* in order of the drops */
	UM_VEC(uint64_t) refused; /* hashes of the names of ops */
	int refuses_more; /* since this was last reset: the plan that is followed launches such an op again */
	uint64_t wrong; /* contents */
};

void um_content_check_fini(struct um_content_check *c); /* after the device is closed */

/* The library drops the tensor's content after the work of `stream` so far: enqueues a checksum of it. A second call
 * before the relaunch does nothing. */
void um_content_check_dropped(struct um_content_check *c, struct um_gpu *gpu, um_stream stream,
			      const struct um_tensor *t);
/* The op was launched again on `stream`: enqueues a second checksum. */
void um_content_check_made(struct um_content_check *c, struct um_gpu *gpu, um_stream stream, const struct um_tensor *t,
			   const char *op, uint64_t iteration);
/* Compares the checksums that are complete, and logs each difference. */
void um_content_check_report(struct um_content_check *c, const struct um_registry *r, struct um_notices *notices);

int um_content_check_refuses(const struct um_content_check *c, const char *op);

#endif
