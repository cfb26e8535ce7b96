/* SPDX-License-Identifier: Apache-2.0
 *
 * op_timer.h - measures the ops of an iteration on the device, by pairs of events
 *
 * in    ops as they are announced, after the call that makes them wait for memory
 * out   ns by op: the least of UM_OP_TIMER_PASSES iterations
 * owns  events for UM_OP_TIMER_OPS ops; longer iterations are measured a window at a time
 *
 * An op ends when the next one on its stream is announced, or at the end of the iteration. There no event is recorded
 * on a stream that may be destroyed (app_stream.h): its last op ends with its next one, and if there is none in the
 * next iteration, the window is measured again. So the time includes idle time of the device before the next launch,
 * but not waits for memory. No event can be recorded on another host thread's per-thread stream: at the end of the
 * iteration it is recorded on the legacy default stream, which waits for that one. An event costs the device and the
 * program's thread about a microsecond each, so ops are measured in few iterations. Op path: two event records, no
 * allocation. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_OP_TIMER_H
#define UM_RUNTIME_OP_TIMER_H

#include "base/vec.h"
#include "gpu/app_stream.h"

#define UM_OP_TIMER_OPS 8192
#define UM_OP_TIMER_PASSES 2
#define UM_OP_TIMER_STREAMS 16

struct um_op_timer_pair {
	um_event_handle start, end;
	int ended;
};

struct um_op_timer {
	struct um_gpu *gpu;
	UM_VEC(struct um_op_timer_pair) pairs;
	UM_VEC(uint64_t) ns; /* by op; 0: not measured */
	uint32_t first, n; /* window: pairs 0 to n - 1 are those of ops first to first + n - 1 */
	unsigned pass; /* of this window */
	enum {
		UM_OP_TIMER_OFF,
		UM_OP_TIMER_RUNS,
		UM_OP_TIMER_ENDS, /* the iteration has ended, and not all of its ops */
		UM_OP_TIMER_WAITS,
		UM_OP_TIMER_DONE
	} state;
	struct {
		struct um_app_stream stream;
		uint32_t op;
	} open[UM_OP_TIMER_STREAMS]; /* the running op of each stream */
	unsigned n_open;
	int invalid; /* this iteration's times are not used */
	int ends_known; /* as in struct um_app_streams */
};

void um_op_timer_init(struct um_op_timer *w, struct um_gpu *gpu);
void um_op_timer_fini(struct um_op_timer *w);

/* The next iteration has `n_ops` ops and is to be measured, from the first window on. 0, -ENOMEM, -EIO. */
int um_op_timer_begin(struct um_op_timer *w, uint32_t n_ops);

/* Does an op end when the next one on its stream is announced? */
static inline int um_op_timer_listens(const struct um_op_timer *w)
{
	return w->state == UM_OP_TIMER_RUNS || w->state == UM_OP_TIMER_ENDS;
}

/* An op is announced on `stream`: the running op there ends, and op number `op` begins. */
void um_op_timer_stop_op(struct um_op_timer *w, um_stream stream);
void um_op_timer_start_op(struct um_op_timer *w, um_stream stream, uint32_t op);

/* The iteration has ended; `whole`: it was followed to its end. 1: all ops are measured, see `ns`; otherwise 0, and the
 * next iteration is measured, or passes until the device has reached the events. */
int um_op_timer_end(struct um_op_timer *w, int whole);

void um_op_timer_off(struct um_op_timer *w); /* drops the measured times */

#endif
