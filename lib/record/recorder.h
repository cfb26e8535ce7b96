/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.h - a sink that keeps the events of the current iteration
 *
 * in    events (with live tensors)
 * out   one struct um_iteration per iteration
 * owns  the iteration being recorded
 *
 * Op path: O(uses), no allocation once an iteration of this length was recorded before. When an allocation fails the
 * iteration is marked incomplete and the host program goes on. Names are interned once. Not thread-safe.
 */
#ifndef UM_RECORD_RECORDER_H
#define UM_RECORD_RECORDER_H

#include "model/iteration.h"
#include "model/sink.h"

struct um_recorder {
	struct um_sink sink;
	struct um_iteration it; /* the current one; n == 0: set-up, before the first iter */
	void *names; /* interned strings, alive as long as the recorder */
};

int um_recorder_init(struct um_recorder *r); /* 0 or -ENOMEM */
void um_recorder_fini(struct um_recorder *r);

/* At an iter event, before feeding it: hands the finished iteration over. Its strings stay valid while the recorder lives.
 * The memory of `*out` (initialised, perhaps of an earlier iteration) is taken in exchange and used again. */
void um_recorder_take(struct um_recorder *r, struct um_iteration *out);

#endif
