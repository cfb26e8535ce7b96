/* SPDX-License-Identifier: Apache-2.0
 *
 * activity_source.h - reports tensors, ops, uses and hints of a context to activity sinks
 *
 * in    tensors, ops with their uses, hints issued to the driver
 * out   activities (model/activity.h): TENSOR, TENSOR_END, OP, USE, HINT; hints are reported late, so the order is not
 *       that of time
 * owns  nothing; sinks are borrowed until um_activity_source_fini
 *
 * On a simulated device with a watcher, times and addresses are those that the watcher receives; otherwise times are
 * those of CLOCK_MONOTONIC, or of the simulated clock. Without a sink the cost is one branch on `n`. Return values of
 * sinks are ignored. Not thread-safe: the caller holds the lock.
 */
#ifndef UM_RUNTIME_ACTIVITY_SOURCE_H
#define UM_RUNTIME_ACTIVITY_SOURCE_H

#include "model/activity.h"
#include "model/tensor.h"
#include "replay/hint_results.h"

#define UM_ACTIVITY_SOURCE_MOST 3

struct um_activity_source {
	unsigned n; /* sinks */
	struct um_activity_sink *sinks[UM_ACTIVITY_SOURCE_MOST];
	struct um_gpu *gpu;
	int watched; /* one of them is the watcher of the simulated device */
	uint64_t process, thread;
	int64_t last; /* latest time reported */
};

void um_activity_source_init(struct um_activity_source *t, struct um_gpu *gpu);

/* Adds a sink. `watched`: it is the watcher of the simulated device. 0, or -ENOSPC: UM_ACTIVITY_SOURCE_MOST sinks
 * exist. */
int um_activity_source_add(struct um_activity_source *t, struct um_activity_sink *sink, int watched);
void um_activity_source_fini(struct um_activity_source *t); /* removes all sinks */

static inline int um_activity_source_on(const struct um_activity_source *t)
{
	return t->n != 0;
}

/* Only while um_activity_source_on(): */
void um_activity_source_tensor(struct um_activity_source *t, const struct um_tensor *tensor);
void um_activity_source_tensor_end(struct um_activity_source *t, const struct um_tensor *tensor);
void um_activity_source_op(struct um_activity_source *t, uint64_t number, const struct um_op *op);
void um_activity_source_hint(struct um_activity_source *t, const struct um_issued_hint *hint);
/* The activity of a hint. Any thread. */
struct um_activity um_activity_source_hint_activity(const struct um_activity_source *t,
						    const struct um_issued_hint *hint);
uint64_t um_activity_source_now(const struct um_activity_source *t);

#endif
