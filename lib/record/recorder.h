/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.h - a sink that keeps the events of the current iteration
 *
 * in    events (with live tensors)
 * out   one struct um_iteration per iteration
 * owns  the iteration being recorded
 *
 * Op path: O(uses), no allocation once an iteration of this length was recorded before. What is recorded goes where the
 * iteration before the last one was: an op that stands there already is only looked at. When an allocation fails the
 * iteration is marked incomplete and the host program goes on. Names are interned once. Not thread-safe.
 *
 * Set-up (before the first iter) is not kept, only who was born in it. An iteration that grows beyond UM_RECORD_OPS or
 * UM_RECORD_USES is incomplete, so a program that stops marking iterations does not fill the memory. So is one in which
 * a tensor is born around live ones.
 * Writes into live tensors: born_iter and born_ord at birth; seen_iter and seen_at.
 */
#ifndef UM_RECORD_RECORDER_H
#define UM_RECORD_RECORDER_H

#include "model/iteration.h"
#include "model/sink.h"
#include "record/names.h"

#define UM_RECORD_OPS (4u << 20)
#define UM_RECORD_USES (32u << 20)

struct um_recorder {
	struct um_sink sink;
	struct um_iteration it; /* the current one; n == 0: set-up, before the first iter */
	struct um_names names; /* alive as long as the recorder */
	UM_VEC(uint32_t) last_use; /* by tensor of `it`: index of its last use, UINT32_MAX none */
	uint64_t turn; /* how often `it` was emptied: a tensor's seen_at holds until the next time */
	size_t old_ops, old_tensors; /* so many are in the memory of `it` since it was emptied last */
	uint32_t n_births; /* in this iteration, counted even where they could not be kept */
};

int um_recorder_init(struct um_recorder *r); /* 0 or -ENOMEM */
void um_recorder_fini(struct um_recorder *r);

/* At an iter event, before feeding it: hands the finished iteration over. Its strings stay valid while the recorder
 * lives. The memory of `*out` (initialised, or an earlier iteration of this recorder) is taken in exchange and used
 * again. */
void um_recorder_take(struct um_recorder *r, struct um_iteration *out);

#endif
