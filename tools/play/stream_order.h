/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_order.h - ops of several streams wait for those of others whose data they need
 *
 * in    the ops of a trace with their streams, in program order
 * out   events and waits for them
 * owns  per tensor its latest uses, one event
 *
 * A trace names the streams of its ops, but not the events by which the program ordered these streams. An op waits for
 * all that was launched so far in a stream whose ops have written a tensor that it uses, or have read one that it
 * writes. A correct program has at least these waits. Parts of a tensor are not told apart.
 *
 * Without a second stream nothing is done. O(uses x streams) per op. Not thread-safe.
 */
#ifndef UM_PLAY_STREAM_ORDER_H
#define UM_PLAY_STREAM_ORDER_H

#include "gpu/gpu.h"
#include "io/umtrace.h"
#include "play/trace_period.h"

#define UM_PLAY_STREAMS 8u /* those of the trace are taken modulo this */

/* Numbers of ops in program order, which begin at 1; 0: none. */
struct um_play_uses {
	uint64_t read[UM_PLAY_STREAMS], wrote[UM_PLAY_STREAMS]; /* by stream: the latest op that did */
};

struct um_stream_order {
	struct um_gpu *gpu;
	um_event_handle event;
	uint64_t n; /* ops so far */
	uint64_t waited[UM_PLAY_STREAMS][UM_PLAY_STREAMS]; /* by stream: it has waited for the other's ops up to this */
	struct um_play_uses *of, *moved; /* by tensor; buffer for moves. NULL: the trace has one stream */
};

/* 0 or -ENOMEM. `n_ids`: tensors; `n_moves`: of its period. um_stream_order_fini in any case. */
int um_stream_order_init(struct um_stream_order *o, struct um_gpu *gpu, const struct um_trace *trace, size_t n_ids,
			 size_t n_moves);
void um_stream_order_fini(struct um_stream_order *o);

/* The tensor was born: the trace played again has the same tensors, but no op has used this one. */
void um_stream_order_born(struct um_stream_order *o, struct um_tensor_id id);

/* The op is about to be launched in streams[stream]. 0 or -EIO. */
int um_stream_order_op(struct um_stream_order *o, const struct um_op *op, const um_stream streams[UM_PLAY_STREAMS],
		       unsigned stream);

/* The CPU has waited for all streams. */
void um_stream_order_join(struct um_stream_order *o);

/* A period has ended. */
void um_stream_order_move(struct um_stream_order *o, const struct um_trace_period *t);

#endif
