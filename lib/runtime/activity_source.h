/* SPDX-License-Identifier: Apache-2.0
 *
 * activity_source.h - what the library is told and does, as activities, to whoever listens
 *
 * in    tensors, ops with their uses, hints that the driver was given
 * out   activities (model/activity.h): TENSOR, TENSOR_END, OP, USE, HINT; hints come late, so not all in order of time
 * owns  nothing; listeners are borrowed until um_activity_source_fini
 *
 * On a simulated device that is watched, times and addresses are those that the watcher is told; else times are those
 * of CLOCK_MONOTONIC, or of the simulated clock. Nobody listens: one branch on `n`. What a listener answers is its own
 * matter. Not thread-safe: the caller holds the lock.
 */
#ifndef UM_RUNTIME_ACTIVITY_SOURCE_H
#define UM_RUNTIME_ACTIVITY_SOURCE_H

#include "model/activity.h"
#include "model/tensor.h"
#include "replay/hint_results.h"

#define UM_ACTIVITY_SOURCE_MOST 3

struct um_activity_source {
	unsigned n; /* who listen */
	struct um_activity_sink *to[UM_ACTIVITY_SOURCE_MOST];
	struct um_gpu *gpu;
	int watched; /* by a watcher of the simulated device */
	uint64_t process, thread;
	int64_t last; /* told */
};

void um_activity_source_init(struct um_activity_source *t, struct um_gpu *gpu);

/* One more listens. `watched`: it is the watcher of the simulated device. -ENOSPC: there are too many. */
int um_activity_source_add(struct um_activity_source *t, struct um_activity_sink *sink, int watched);
void um_activity_source_fini(struct um_activity_source *t); /* nobody listens any more */

static inline int um_activity_source_on(const struct um_activity_source *t)
{
	return t->n != 0;
}

/* Only where somebody listens: */
void um_activity_source_tensor(struct um_activity_source *t, const struct um_tensor *tensor);
void um_activity_source_tensor_end(struct um_activity_source *t, const struct um_tensor *tensor);
void um_activity_source_op(struct um_activity_source *t, uint64_t number, const struct um_op *op);
void um_activity_source_hint(struct um_activity_source *t, const struct um_issued_hint *hint);
/* What that is told as. Any thread. */
struct um_activity um_activity_source_hint_activity(const struct um_activity_source *t,
						    const struct um_issued_hint *hint);
uint64_t um_activity_source_now(const struct um_activity_source *t);

#endif
