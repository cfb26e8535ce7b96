/* SPDX-License-Identifier: Apache-2.0 */
#include "play/stream_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int has_streams(const struct um_trace *t)
{
	for (size_t i = 0; i < um_trace_length(t); i++) {
		const struct um_event *e = um_trace_event(t, i);

		if (e->kind == UM_EV_OP && e->op.stream > 0)
			return 1;
	}
	return 0;
}

int um_stream_order_init(struct um_stream_order *o, struct um_gpu *gpu, const struct um_trace *trace, size_t n_ids,
			 size_t n_moves)
{
	memset(o, 0, sizeof *o);
	o->gpu = gpu;
	if (!has_streams(trace))
		return 0;
	o->of = calloc(n_ids + 1, sizeof *o->of);
	o->moved = calloc(n_moves + 1, sizeof *o->moved);
	return o->of && o->moved && !gpu->api->cudaEventCreateWithFlags(gpu, &o->event, 0) ? 0 : -ENOMEM;
}

void um_stream_order_fini(struct um_stream_order *o)
{
	if (o->event)
		o->gpu->api->cudaEventDestroy(o->gpu, o->event);
	free(o->of);
	free(o->moved);
	memset(o, 0, sizeof *o);
}

void um_stream_order_born(struct um_stream_order *o, struct um_tensor_id id)
{
	if (o->of)
		o->of[id.v] = (struct um_play_uses){0};
}

/* The op of the other stream that has to be over before this use. */
static uint64_t needs(const struct um_stream_order *o, const struct um_use *u, unsigned other)
{
	const struct um_play_uses *s = &o->of[u->id.v];
	uint64_t after = s->wrote[other];

	return u->access & UM_WRITE && s->read[other] > after ? s->read[other] : after;
}

static int wait_for(struct um_stream_order *o, const um_stream *streams, unsigned stream, unsigned other)
{
	const struct um_gpu_api *api = o->gpu->api;

	if (api->cudaEventRecord(o->gpu, o->event, streams[other]) ||
	    api->cudaStreamWaitEvent(o->gpu, streams[stream], o->event, 0))
		return -EIO;
	o->waited[stream][other] = o->n;
	return 0;
}

int um_stream_order_op(struct um_stream_order *o, const struct um_op *op, const um_stream streams[UM_PLAY_STREAMS],
		       unsigned stream)
{
	int err = 0;

	if (!o->of)
		return 0;
	for (uint32_t i = 0; i < op->n_uses; i++)
		for (unsigned other = 0; other < UM_PLAY_STREAMS && !err; other++)
			if (other != stream && needs(o, &op->uses[i], other) > o->waited[stream][other])
				err = wait_for(o, streams, stream, other);
	o->n++;
	for (uint32_t i = 0; i < op->n_uses; i++) {
		struct um_play_uses *s = &o->of[op->uses[i].id.v];

		if (op->uses[i].access & UM_WRITE)
			s->wrote[stream] = o->n;
		if (op->uses[i].access & UM_READ)
			s->read[stream] = o->n;
	}
	return err;
}

void um_stream_order_join(struct um_stream_order *o)
{
	for (unsigned i = 0; i < UM_PLAY_STREAMS; i++)
		for (unsigned k = 0; k < UM_PLAY_STREAMS; k++)
			o->waited[i][k] = o->n;
}

void um_stream_order_move(struct um_stream_order *o, const struct um_trace_period *t)
{
	for (size_t i = 0; o->of && i < t->moves.n; i++)
		o->moved[i] = o->of[t->moves.at[i].from];
	for (size_t i = 0; o->of && i < t->moves.n; i++)
		o->of[t->moves.at[i].to] = o->moved[i];
}
