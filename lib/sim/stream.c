/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c - streams of the simulated GPU: queues of commands
 */
#include "sim/state.h"

struct um_sim_stream *um_sim_stream_of(struct um_sim *sim, um_stream stream)
{
	if ((uintptr_t)stream <= 1) /* default, legacy */
		return sim->streams;
	if ((uintptr_t)stream == 2)
		return um_sim_thread_stream(sim);
	for (struct um_sim_stream *s = sim->streams->next; s; s = s->next)
		if (s->handle == stream && !s->gone && !s->thread)
			return s;
	um_sim_report_handle(sim);
	return NULL;
}

struct um_sim_stream *um_sim_stream_new(struct um_sim *sim)
{
	struct um_sim_stream *s = calloc(1, sizeof *s), **at = &sim->streams;

	if (!s)
		return NULL;
	s->serial = sim->stream_serial++;
	while (*at)
		at = &(*at)->next;
	*at = s;
	return s;
}

/* Releases resources of a command, executed or not. */
void um_sim_cmd_end(struct um_sim_cmd *c)
{
	switch (c->kind) {
	case UM_SIM_CMD_KERNEL:
		um_sim_walk_free(c->kernel);
		break;
	case UM_SIM_CMD_HINT:
		um_sim_hint_free(c->hint);
		break;
	case UM_SIM_CMD_RECORD:
	case UM_SIM_CMD_WAIT_EVENT:
		um_sim_record_put(c->record);
		break;
	default:
		break;
	}
}

void um_sim_stream_end(struct um_sim_stream *s)
{
	for (size_t i = s->first; i < s->queue.n; i++)
		um_sim_cmd_end(&s->queue.at[i]);
	um_vec_fini(&s->queue);
	um_vec_fini(&s->touches);
	free(s);
}

void um_sim_stream_forget(struct um_sim *sim, struct um_sim_stream *s)
{
	struct um_sim_stream **at = &sim->streams;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (sim->next_op == s)
		sim->next_op = NULL;
	sim->destroyed_until = um_sim_later(sim->destroyed_until, s->ready);
	if (!s->alone)
		sim->destroyed_order = um_sim_later(sim->destroyed_order, s->ready);
	um_sim_stream_end(s);
}

/* A full launch queue blocks the program; a worker's commands always find room. */
static int make_room(struct um_sim *sim, struct um_sim_stream *s)
{
	struct um_sim_waiter w;
	int err = UM_CUDA_OK;

	if (!um_sim_queue_is_full(sim, s))
		return err;
	s->waiters++;
	um_sim_waiter_add(sim, &w, UM_SIM_WAITS_ROOM, s, NULL);
	while (!err && um_sim_queue_is_full(sim, s)) {
		if (um_sim_progress(sim))
			sim->app = um_sim_later(sim->app, sim->now);
		else
			err = um_sim_deadlock(sim, s);
	}
	um_sim_waiter_remove(sim, &w);
	s->waiters--;
	return err;
}

int um_sim_stream_push(struct um_sim *sim, struct um_sim_stream *s, const struct um_sim_cmd *cmd)
{
	struct um_sim_cmd c = *cmd;
	int err = sim->node->lane ? UM_CUDA_OK : make_room(sim, s);

	if (err)
		return err;
	if (c.kind == UM_SIM_CMD_HINT || c.kind == UM_SIM_CMD_KERNEL || c.kind == UM_SIM_CMD_CALL)
		s->hinted = c.kind == UM_SIM_CMD_HINT;
	c.seq = ++sim->node->seq;
	c.at = *um_sim_clock(sim);
	sim->node->changes++;
	if (um_vec_push(&s->queue, c))
		return UM_CUDA_NO_MEMORY;
	if (sim->node->lane)
		um_sim_lane_fill(sim, sim->node->lane, s);
	return UM_CUDA_OK;
}

int um_sim_stream_create(struct um_gpu *gpu, um_stream *stream, unsigned flags)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;

	if (!stream || flags > UM_STREAM_NON_BLOCKING)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaStreamCreate");
	s = um_sim_stream_new(sim);
	if (s && um_sim_handle_take(sim, s)) {
		um_sim_stream_forget(sim, s);
		s = NULL;
	}
	if (s) {
		s->alone = (flags & UM_STREAM_NON_BLOCKING) != 0;
		*stream = s->handle;
	}
	return um_sim_leave(sim, s ? UM_CUDA_OK : UM_CUDA_NO_MEMORY);
}

int um_sim_stream_destroy(struct um_gpu *gpu, um_stream stream)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;

	um_sim_enter_call(sim, "cudaStreamDestroy");
	s = um_sim_stream_of(sim, stream);
	if (!s || s == sim->streams || s->thread)
		return um_sim_leave(sim, UM_CUDA_INVALID_HANDLE);
	s->gone = 1; /* as in CUDA: its remaining work still runs */
	um_sim_handle_give(sim, s);
	if (s->first == s->queue.n && !s->waiters)
		um_sim_stream_forget(sim, s);
	return um_sim_leave(sim, UM_CUDA_OK);
}

/* Waits until command `seq` of the stream has finished; for the default stream, also the streams that it is ordered
 * with. */
int um_sim_stream_await(struct um_sim *sim, struct um_sim_stream *s, uint64_t seq)
{
	struct um_sim_waiter w;
	int err = UM_CUDA_OK;

	s->waiters++;
	um_sim_waiter_add(sim, &w, UM_SIM_WAITS_STREAM, s, NULL);
	while (um_sim_behind(sim, s, seq) && !err)
		if (!um_sim_progress(sim))
			err = um_sim_deadlock(sim, s);
	um_sim_waiter_remove(sim, &w);
	s->waiters--;
	sim->app = um_sim_later(um_sim_later(sim->app, sim->now), um_sim_order_ready(sim, s));
	if (s->gone && !um_sim_head(s) && !s->waiters)
		um_sim_stream_forget(sim, s);
	return err ? err : sim->error;
}

int um_sim_stream_sync(struct um_gpu *gpu, um_stream stream)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;

	um_sim_enter_free(sim, "cudaStreamSynchronize");
	s = um_sim_stream_of(sim, stream);
	if (!s)
		return um_sim_leave(sim, UM_CUDA_INVALID_HANDLE);
	/* A worker must not block here: it returns UM_STEP_WAIT instead. */
	if (sim->node->lane)
		return um_sim_leave(sim, um_sim_busy(sim, s, sim->node->lane->at) ? UM_CUDA_NOT_SUPPORTED : UM_CUDA_OK);
	return um_sim_leave(sim, um_sim_stream_await(sim, s, sim->node->seq));
}

int um_sim_stream_query(struct um_gpu *gpu, um_stream stream)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;
	int err = UM_CUDA_INVALID_HANDLE;

	um_sim_enter_free(sim, "cudaStreamQuery");
	s = um_sim_stream_of(sim, stream);
	if (s && um_sim_busy(sim, s, *um_sim_clock(sim))) {
		err = UM_CUDA_NOT_READY;
		*um_sim_clock(sim) += sim->opt.query_ns;
	} else if (s) {
		err = sim->error;
	}
	return um_sim_leave(sim, err);
}

int um_sim_call(struct um_gpu *gpu, um_stream stream, void (*fn)(void *arg), void *arg)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;
	int err = UM_CUDA_INVALID_VALUE;

	um_sim_enter_call(sim, "cudaLaunchHostFunc");
	s = um_sim_stream_of(sim, stream);
	if (s && fn)
		err = um_sim_stream_push(sim, s,
					 &(struct um_sim_cmd){.kind = UM_SIM_CMD_CALL, .call.fn = fn, .call.arg = arg});
	return um_sim_leave(sim, err);
}

int um_sim_stream_wait(struct um_gpu *gpu, um_stream stream, um_event_handle event, unsigned flags)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_event *e = event;
	struct um_sim_stream *s;
	int err = UM_CUDA_OK;

	if (!e || flags)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaStreamWaitEvent");
	s = um_sim_stream_of(sim, stream);
	if (!s) {
		err = UM_CUDA_INVALID_HANDLE;
	} else if (e->last) { /* never recorded: nothing to wait for */
		struct um_sim_record *r = e->last;

		r->refs++;
		err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_WAIT_EVENT, .record = r});
		if (err)
			um_sim_record_put(r);
	}
	return um_sim_leave(sim, err);
}

int um_sim_stream_capturing(struct um_gpu *gpu, um_stream stream, int *status)
{
	(void)gpu;
	(void)stream;
	*status = 0;
	return UM_CUDA_OK;
}

int um_sim_stream_id(struct um_gpu *gpu, um_stream stream, unsigned long long *id)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;

	um_sim_enter(sim);
	s = um_sim_stream_of(sim, stream);
	if (s)
		*id = s->serial + 1;
	return um_sim_leave(sim, s ? UM_CUDA_OK : UM_CUDA_INVALID_HANDLE);
}

int um_sim_announce(struct um_gpu *gpu, um_stream stream, const struct um_announcement *next)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;
	int err = UM_CUDA_OK;

	um_sim_enter_free(sim, "announce");
	s = um_sim_stream_of(sim, stream);
	if (!s)
		return um_sim_leave(sim, UM_CUDA_INVALID_VALUE);
	s->announced = 0; /* on failure no earlier announcement remains */
	um_vec_clear(&s->touches);
	if (!next) {
		sim->next_op = sim->next_op == s ? NULL : sim->next_op;
	} else if (um_vec_reserve(&s->touches, next->n + 1)) {
		err = UM_CUDA_NO_MEMORY;
	} else {
		if (next->n)
			memcpy(s->touches.at, next->touch, next->n * sizeof *next->touch);
		s->touches.n = next->n;
		s->announced_ns = next->ns;
		s->announced_pattern = next->pattern;
		s->announced = 1;
		sim->next_op = s;
	}
	return um_sim_leave(sim, err);
}

/* Waiting and writing differ only when the device reaches the command. */
static int value(struct um_gpu *gpu, um_stream stream, enum um_sim_cmd_kind kind, uint32_t *addr, uint32_t v)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;
	int err;

	um_sim_enter_call(sim, kind == UM_SIM_CMD_WAIT_VALUE ? "cuStreamWaitValue32" : "cuStreamWriteValue32");
	s = um_sim_stream_of(sim, stream);
	if (!s)
		err = UM_CUDA_INVALID_HANDLE;
	else if (!addr || (uintptr_t)addr % sizeof *addr)
		err = UM_CUDA_INVALID_VALUE;
	else
		err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = kind, .v.addr = addr, .v.value = v});
	return um_sim_leave(sim, err);
}

int um_sim_write_value(struct um_gpu *gpu, um_stream stream, uint32_t *addr, uint32_t v)
{
	return value(gpu, stream, UM_SIM_CMD_WRITE_VALUE, addr, v);
}

int um_sim_wait_value(struct um_gpu *gpu, um_stream stream, uint32_t *addr, uint32_t v)
{
	return value(gpu, stream, UM_SIM_CMD_WAIT_VALUE, addr, v);
}
