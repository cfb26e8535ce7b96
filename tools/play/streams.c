/* SPDX-License-Identifier: Apache-2.0 */
#include "play/streams.h"

#include "sim/sim.h"

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

int um_play_streams_init(struct um_play_streams *s, struct um_gpu *gpu, const struct um_trace *trace, size_t n_ids,
			 size_t n_moves)
{
	memset(s, 0, sizeof *s);
	s->gpu = gpu;
	if (!has_streams(trace))
		return 0;
	s->of = calloc(n_ids + 1, sizeof *s->of);
	s->moved = calloc(n_moves + 1, sizeof *s->moved);
	return s->of && s->moved && !gpu->api->cudaEventCreateWithFlags(gpu, &s->event, 0) ? 0 : -ENOMEM;
}

void um_play_streams_fini(struct um_play_streams *s)
{
	if (s->event)
		s->gpu->api->cudaEventDestroy(s->gpu, s->event);
	free(s->of);
	free(s->moved);
	memset(s, 0, sizeof *s);
}

void um_play_streams_born(struct um_play_streams *s, struct um_tensor_id id)
{
	if (s->of)
		s->of[id.v] = (struct um_play_uses){0};
}

/* The op of the other stream that has to be over before this use. */
static uint64_t needs(const struct um_play_streams *s, const struct um_use *u, unsigned other)
{
	const struct um_play_uses *x = &s->of[u->id.v];
	uint64_t after = x->wrote[other];

	return u->access & UM_WRITE && x->read[other] > after ? x->read[other] : after;
}

static int wait_for(struct um_play_streams *s, unsigned stream, unsigned other)
{
	const struct um_gpu_api *api = s->gpu->api;

	if (api->cudaEventRecord(s->gpu, s->event, s->at[other]) ||
	    api->cudaStreamWaitEvent(s->gpu, s->at[stream], s->event, 0))
		return -EIO;
	s->waited[stream][other] = s->n;
	return 0;
}

static int wait_for_data(struct um_play_streams *s, const struct um_op *op, unsigned stream)
{
	int err = 0;

	for (uint32_t i = 0; i < op->n_uses; i++)
		for (unsigned other = 0; other < UM_PLAY_STREAMS && !err; other++)
			if (other != stream && needs(s, &op->uses[i], other) > s->waited[stream][other])
				err = wait_for(s, stream, other);
	s->n++;
	for (uint32_t i = 0; i < op->n_uses; i++) {
		struct um_play_uses *x = &s->of[op->uses[i].id.v];

		if (op->uses[i].access & UM_WRITE)
			x->wrote[stream] = s->n;
		if (op->uses[i].access & UM_READ)
			x->read[stream] = s->n;
	}
	return err;
}

int um_play_streams_of(struct um_play_streams *s, const struct um_op *op, um_stream *out)
{
	unsigned i = (unsigned)op->stream % UM_PLAY_STREAMS;

	if (i && !s->at[i] && s->gpu->api->cudaStreamCreateWithFlags(s->gpu, &s->at[i], UM_STREAM_NON_BLOCKING))
		return -ENOMEM;
	*out = s->at[i];
	return s->of ? wait_for_data(s, op, i) : 0;
}

/* Those that ops have used, and the default one. */
static unsigned used(const struct um_play_streams *s, um_stream out[UM_PLAY_STREAMS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < UM_PLAY_STREAMS; i++)
		if (!i || s->at[i])
			out[n++] = s->at[i];
	return n;
}

int um_play_streams_await(struct um_play_streams *s)
{
	um_stream at[UM_PLAY_STREAMS];
	unsigned n = used(s, at);

	for (unsigned i = 0; i < n; i++)
		if (s->gpu->api->cudaStreamSynchronize(s->gpu, at[i]))
			return -EIO;
	for (unsigned i = 0; i < UM_PLAY_STREAMS; i++)
		for (unsigned k = 0; k < UM_PLAY_STREAMS; k++)
			s->waited[i][k] = s->n;
	return 0;
}

int um_play_streams_mark(const struct um_play_streams *s)
{
	um_stream at[UM_PLAY_STREAMS];
	unsigned n = used(s, at);

	return um_sim_mark(s->gpu, at, n);
}

void um_play_streams_move(struct um_play_streams *s, const struct um_trace_period *t)
{
	for (size_t i = 0; s->of && i < t->moves.n; i++)
		s->moved[i] = s->of[t->moves.at[i].from];
	for (size_t i = 0; s->of && i < t->moves.n; i++)
		s->of[t->moves.at[i].to] = s->moved[i];
}
