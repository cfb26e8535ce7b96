/* SPDX-License-Identifier: Apache-2.0
 *
 * event.c - events of the simulated GPU
 *
 * A wait refers to the event's last record at the time of the wait call, whatever is recorded later, and on which
 * stream.
 */
#include "sim/state.h"

void um_sim_record_put(struct um_sim_record *r)
{
	if (--r->refs == 0)
		free(r);
}

/* Complete for a caller whose clock is `t`? The device may be ahead of a worker. */
static int is_done(const struct um_sim_event *e, uint64_t t)
{
	return !e->last || (e->last->done && e->last->at <= t);
}

int um_sim_event_create(struct um_gpu *gpu, um_event_handle *event, unsigned flags)
{
	struct um_sim_event *e;

	(void)gpu;
	if (!event)
		return UM_CUDA_INVALID_VALUE;
	e = calloc(1, sizeof *e);
	if (!e)
		return UM_CUDA_NO_MEMORY;
	e->flags = flags;
	*event = e;
	return UM_CUDA_OK;
}

int um_sim_event_destroy(struct um_gpu *gpu, um_event_handle event)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_event *e = event;

	if (!e)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter(sim);
	if (e->last)
		um_sim_record_put(e->last);
	free(e);
	return um_sim_leave(sim, UM_CUDA_OK);
}

int um_sim_event_record(struct um_gpu *gpu, um_event_handle event, um_stream stream)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_event *e = event;
	struct um_sim_record *r;
	struct um_sim_stream *s;
	int err;

	if (!e)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaEventRecord");
	s = um_sim_stream_of(sim, stream);
	if (!s)
		return um_sim_leave(sim, UM_CUDA_INVALID_HANDLE);
	r = calloc(1, sizeof *r);
	if (!r)
		return um_sim_leave(sim, UM_CUDA_NO_MEMORY);
	r->hint = s->hinted;
	r->refs = 2; /* the command's and the event's */
	err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_RECORD, .record = r});
	if (err) {
		free(r);
		return um_sim_leave(sim, err);
	}
	if (e->last)
		um_sim_record_put(e->last);
	e->last = r; /* later waits for the event wait for this record */
	return um_sim_leave(sim, UM_CUDA_OK);
}

int um_sim_event_query(struct um_gpu *gpu, um_event_handle event)
{
	struct um_sim *sim = um_sim_of(gpu);

	if (!event)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter(sim);
	if (is_done(event, *um_sim_clock(sim)))
		return um_sim_leave(sim, UM_CUDA_OK);
	*um_sim_clock(sim) += sim->opt.query_ns;
	return um_sim_leave(sim, UM_CUDA_NOT_READY);
}

int um_sim_event_sync(struct um_gpu *gpu, um_event_handle event)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_event *e = event;
	struct um_sim_waiter w;
	struct um_sim_record *r;
	int err = UM_CUDA_OK;

	if (!e)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_free(sim, "cudaEventSynchronize");
	if (sim->node->lane)
		return um_sim_leave(sim, is_done(e, sim->node->lane->at) ? UM_CUDA_OK : UM_CUDA_NOT_SUPPORTED);
	/* other streams and workers continue meanwhile, in order of time */
	r = e->last;
	if (r)
		r->refs++;
	um_sim_waiter_add(sim, &w, UM_SIM_WAITS_EVENT, NULL, r);
	while (r && !r->done && !err)
		if (!um_sim_progress(sim))
			err = um_sim_deadlock(sim, sim->streams);
	um_sim_waiter_remove(sim, &w);
	if (r && r->done) /* by another device, perhaps */
		sim->app = um_sim_later(sim->app, r->at);
	if (r)
		um_sim_record_put(r);
	sim->app = um_sim_later(sim->app, sim->now);
	return um_sim_leave(sim, err ? err : sim->error);
}

int um_sim_event_elapsed(struct um_gpu *gpu, float *ms, um_event_handle start, um_event_handle end)
{
	struct um_sim *sim = um_sim_of(gpu);
	const struct um_sim_event *a = start, *b = end;

	if (!ms || !a || !b || (a->flags | b->flags) & UM_EVENT_DISABLE_TIMING)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter(sim);
	if (!a->last || !b->last)
		return um_sim_leave(sim, UM_CUDA_INVALID_VALUE);
	if (!is_done(a, *um_sim_clock(sim)) || !is_done(b, *um_sim_clock(sim)))
		return um_sim_leave(sim, UM_CUDA_NOT_READY);
	*ms = (float)(((double)b->last->at - (double)a->last->at) / 1e6);
	return um_sim_leave(sim, UM_CUDA_OK);
}
