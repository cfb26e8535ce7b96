/* SPDX-License-Identifier: Apache-2.0
 *
 * telling.h - what the library is told and does, as activities, to whoever listens
 *
 * in    tensors, ops with their uses, hints that the driver was given
 * out   activities (model/activity.h): TENSOR, TENSOR_END, OP, USE, HINT; hints come late, so not all in order of time
 * owns  nothing; listeners are borrowed until um_telling_fini
 *
 * On a simulated device that is watched, times and addresses are those that the watcher is told; else times are those
 * of CLOCK_MONOTONIC, or of the simulated clock. Nobody listens: one branch on `n`. What a listener answers is its own
 * matter. Not thread-safe: the front desk holds the lock.
 */
#ifndef UM_TELLING_H
#define UM_TELLING_H

#include "model/activity.h"
#include "model/tensor.h"
#include "replay/outcomes.h"

#define UM_TELLING_MOST 3

struct um_telling {
	unsigned n; /* who listen */
	struct um_activity_sink *to[UM_TELLING_MOST];
	struct um_gpu *gpu;
	int watched; /* by a watcher of the simulated device */
	uint64_t process, thread;
	int64_t last; /* told */
};

void um_telling_init(struct um_telling *t, struct um_gpu *gpu);

/* One more listens. `watched`: it is the watcher of the simulated device. -ENOSPC: there are too many. */
int um_telling_add(struct um_telling *t, struct um_activity_sink *sink, int watched);
void um_telling_fini(struct um_telling *t); /* nobody listens any more */

static inline int um_telling_on(const struct um_telling *t)
{
	return t->n != 0;
}

/* Only where somebody listens: */
void um_telling_tensor(struct um_telling *t, const struct um_tensor *tensor);
void um_telling_tensor_end(struct um_telling *t, const struct um_tensor *tensor);
void um_telling_op(struct um_telling *t, uint64_t number, const struct um_op *op);
void um_telling_hint(struct um_telling *t, const struct um_hint_given *hint);
/* What that is told as. Any thread. */
struct um_activity um_telling_hint_as(const struct um_telling *t, const struct um_hint_given *hint);
uint64_t um_telling_now(const struct um_telling *t);

#endif
