/* SPDX-License-Identifier: Apache-2.0
 *
 * streams.h - the streams of a trace that is played, and how its ops wait for those of other streams
 *
 * in    the ops of a trace, in program order
 * out   the stream of each op, which waits for what the op needs
 * owns  streams, one event, per tensor its latest uses
 *
 * A trace names the streams of its ops, but not the events by which the program ordered these streams. An op waits for
 * all that was launched so far in a stream whose ops have written a tensor that it uses, or have read one that it
 * writes. A correct program has at least these waits. Parts of a tensor are not told apart.
 *
 * O(uses x streams) per op; nothing where the trace has one stream. Not thread-safe.
 */
#ifndef UM_PLAY_STREAMS_H
#define UM_PLAY_STREAMS_H

#include "gpu/gpu.h"
#include "io/umtrace.h"
#include "play/trace_period.h"

#define UM_PLAY_STREAMS 8u /* those of the trace are taken modulo this */

/* Numbers of ops in program order, which begin at 1; 0: none. */
struct um_play_uses {
	uint64_t read[UM_PLAY_STREAMS], wrote[UM_PLAY_STREAMS]; /* by stream: the latest op that did */
};

struct um_play_streams {
	struct um_gpu *gpu;
	um_stream at[UM_PLAY_STREAMS]; /* the first is the default one; of the others, NULL: no op so far */
	um_event_handle event;
	uint64_t n; /* ops so far */
	uint64_t waited[UM_PLAY_STREAMS][UM_PLAY_STREAMS]; /* by stream: it has waited for the other's ops up to this */
	struct um_play_uses *of, *moved; /* by tensor; buffer for moves. NULL: the trace has one stream */
};

/* 0 or -ENOMEM. `n_ids`: tensors; `n_moves`: of its period. um_play_streams_fini in any case. */
int um_play_streams_init(struct um_play_streams *s, struct um_gpu *gpu, const struct um_trace *trace, size_t n_ids,
			 size_t n_moves);
void um_play_streams_fini(struct um_play_streams *s); /* before the device is closed, which ends its streams */

/* The op is about to be launched: its stream. 0, -ENOMEM, -EIO. */
int um_play_streams_of(struct um_play_streams *s, const struct um_op *op, um_stream *out);

/* The CPU waits for all of them, not for the library's. 0 or -EIO. */
int um_play_streams_await(struct um_play_streams *s);

/* The point that all of them have reached when the ops so far have ended: as um_sim_mark. */
int um_play_streams_mark(const struct um_play_streams *s);

/* The tensor was born: the trace played again has the same tensors, but no op has used this one. */
void um_play_streams_born(struct um_play_streams *s, struct um_tensor_id id);

/* A period has ended. */
void um_play_streams_move(struct um_play_streams *s, const struct um_trace_period *t);

#endif
