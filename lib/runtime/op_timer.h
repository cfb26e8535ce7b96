/* SPDX-License-Identifier: Apache-2.0
 *
 * op_timer.h - how long the ops of an iteration take on the device, by pairs of events
 *
 * in    ops as they are announced, behind what makes them wait for memory
 * out   ns by op: the least of UM_OP_TIMER_PASSES iterations
 * owns  events for UM_OP_TIMER_OPS ops; longer iterations are measured a window at a time
 *
 * An op ends where the next one on its stream is announced, or the iteration. So what the device idles for want of a
 * launch counts; what it waits for memory does not. An event cannot be recorded on another host thread's per-thread
 * stream: at the end of the iteration it is recorded on the legacy default stream, which waits for that one. Events
 * cost the device and the app's thread about a microsecond each, so this runs in few iterations. Op path: two event
 * records, no allocation. Not thread-safe: the front desk holds the lock.
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
	enum { UM_OP_TIMER_OFF, UM_OP_TIMER_RUNS, UM_OP_TIMER_WAITS, UM_OP_TIMER_DONE } state;
	struct {
		struct um_app_stream stream;
		uint32_t op;
	} open[UM_OP_TIMER_STREAMS]; /* the op that is under way on each stream */
	unsigned n_open;
	int spoilt; /* of this iteration nothing counts */
};

void um_op_timer_init(struct um_op_timer *w, struct um_gpu *gpu);
void um_op_timer_fini(struct um_op_timer *w);

/* The next iteration has `n_ops` ops and is to be measured, from the first window on. 0, -ENOMEM, -EIO. */
int um_op_timer_begin(struct um_op_timer *w, uint32_t n_ops);

/* An op is announced on `stream`: what was under way there ends. Op number `op` begins. */
void um_op_timer_stop_op(struct um_op_timer *w, um_stream stream);
void um_op_timer_start_op(struct um_op_timer *w, um_stream stream, uint32_t op);

/* The iteration has ended; `whole`: as was expected. 1: all ops are measured, see `ns`; else 0, and the next iteration
 * is measured too, or waited through for the device to get there. */
int um_op_timer_end(struct um_op_timer *w, int whole);

void um_op_timer_off(struct um_op_timer *w); /* forgets what was measured */

#endif
