/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.c - the event loop of the simulated GPU
 *
 * The loop takes the stream or worker with the earliest next event. Ties go to the lower sequence number, given when
 * the command was enqueued or the step scheduled. A command takes effect when it begins and determines how long its
 * stream is busy; a kernel that faults has an event for each batch.
 *
 * `now` never goes back. The program's clock is never behind it: every call first processes the events due by that
 * clock, before and after it acts. Calls of a worker are made at `now` and do not run the loop.
 */
#include "sim/state.h"

#include <assert.h>

/* The next event of a stream or a worker. */
struct next {
	struct um_sim *sim;
	struct um_sim_stream *stream;
	struct um_sim_lane *lane;
	uint64_t at, seq;
};

/* Compared modulo 2^32, as on the device. */
static int reached(const struct um_sim_cmd *c)
{
	uint32_t v = __atomic_load_n(c->v.addr, __ATOMIC_ACQUIRE);

	return (int32_t)(v - c->v.value) >= 0;
}

/* Time at which the stream's next command can begin; UM_SIM_FOREVER: blocked. */
static uint64_t stream_due(const struct um_sim *sim, const struct um_sim_stream *s)
{
	const struct um_sim_cmd *c = um_sim_head(s);
	uint64_t start;

	if (!c)
		return UM_SIM_FOREVER;
	start = um_sim_order_due(sim, s, c);
	if (start == UM_SIM_FOREVER)
		return start;
	start = um_sim_later(start, um_sim_queue_due(sim, s, c));
	if (start == UM_SIM_FOREVER)
		return start;
	start = um_sim_later(start, um_sim_later(s->ready, c->at));
	switch (c->kind) {
	case UM_SIM_CMD_HINT:
		return um_sim_later(start, um_sim_later(sim->worker_free, sim->writer_until));
	case UM_SIM_CMD_WAIT_EVENT:
		return c->record->done ? um_sim_later(start, c->record->at) : UM_SIM_FOREVER;
	case UM_SIM_CMD_WAIT_VALUE:
		return reached(c) ? um_sim_later(start, sim->now) : UM_SIM_FOREVER;
	default:
		return start;
	}
}

/* Likewise for a worker: asleep, stopped, or waiting for an event that is not complete: blocked. */
static uint64_t lane_due(const struct um_sim *sim, const struct um_sim_lane *l)
{
	if (um_sim_lane_stands(sim, l))
		return UM_SIM_FOREVER;
	if (l->state == UM_SIM_READY)
		return l->at;
	if (l->state == UM_SIM_WAITING && l->record->done)
		return um_sim_later(l->at, l->record->at);
	return UM_SIM_FOREVER;
}

/* Removes the stream's first command. */
static void pop(struct um_sim *sim, struct um_sim_stream *s)
{
	s->popped = um_sim_head(s)->seq;
	um_sim_cmd_end(um_sim_head(s));
	s->first++;
	if (s->first == s->queue.n) {
		s->first = 0;
		um_vec_clear(&s->queue);
		if (s->gone && !s->waiters)
			um_sim_stream_forget(sim, s);
	} else if (s->first >= UM_SIM_QUEUE) { /* keep the array small */
		s->queue.n -= s->first;
		memmove(s->queue.at, s->queue.at + s->first, s->queue.n * sizeof *s->queue.at);
		s->first = 0;
	}
}

/* A number was written: wakes workers that poll. */
static void poke_watchers(struct um_sim *sim, uint64_t t)
{
	for (struct um_sim_lane *l = sim->lanes; l; l = l->next) {
		if (l->state != UM_SIM_WATCHING)
			continue;
		l->state = UM_SIM_READY;
		l->at = um_sim_later(l->at, t);
		l->seq = ++sim->node->seq;
	}
}

/* Begins the stream's first command at `t` (or continues a kernel). */
static void stream_step(struct um_sim *sim, struct um_sim_stream *s, uint64_t t)
{
	struct um_sim_cmd *c = um_sim_head(s);
	uint64_t start = um_sim_later(s->ready, c->at), cpu;
	int done = 1;

	s->ready = t;
	if (!c->running)
		um_sim_queue_begun(sim, s, t);
	switch (c->kind) {
	case UM_SIM_CMD_KERNEL:
		s->ready = um_sim_walk_step(sim, s, c, t, &done);
		break;
	case UM_SIM_CMD_HINT:
		if (um_sim_hint_run(sim, c->hint, t, &cpu, &s->ready))
			sim->tally.refused++;
		sim->worker_free = cpu;
		break;
	case UM_SIM_CMD_RECORD:
		c->record->done = 1;
		c->record->at = t;
		break;
	case UM_SIM_CMD_WAIT_EVENT:
		s->gate_ns += c->record->hint ? t - start : 0;
		break;
	case UM_SIM_CMD_WRITE_VALUE:
		__atomic_store_n(c->v.addr, c->v.value, __ATOMIC_RELEASE);
		poke_watchers(sim, t);
		break;
	case UM_SIM_CMD_WAIT_VALUE:
		s->gate_ns += t - start;
		break;
	case UM_SIM_CMD_MARK:
		if (--sim->marks.at[c->mark].streams)
			break;
		um_sim_tally_at(sim, t, &sim->marks.at[c->mark].tally);
		sim->peak = sim->resident;
		sim->prefetched_peak = sim->prefetched;
		break;
	case UM_SIM_CMD_CALL:
		um_sim_ledger_call(sim);
		um_sim_cpu_access_rearm(sim);
		c->call.fn(c->call.arg);
		um_sim_cpu_access_serve(sim, &s->ready);
		break;
	case UM_SIM_CMD_FREE:
		um_sim_free_now(sim, c->addr);
		break;
	}
	if (done)
		pop(sim, s);
}

/* Calls made inside step() are charged to the worker: its clock then says when its next step can be. */
static void lane_step(struct um_sim *sim, struct um_sim_lane *l, uint64_t t)
{
	struct um_step step;

	if (l->record)
		um_sim_record_put(l->record);
	l->record = NULL;
	l->state = UM_SIM_STEPPING;
	l->poked = 0;
	l->at = t;
	assert(!sim->node->lane);
	sim->node->lane = l;
	step = l->worker->step(l->worker->arg);
	sim->node->lane = NULL;
	l->seq = ++sim->node->seq;
	switch (step.kind) {
	case UM_STEP_AGAIN:
		l->state = UM_SIM_READY;
		l->at += l->at ==
			 t; /* a step takes some time, so that a worker that always asks for the next one cannot stop
			       the clock */
		break;
	case UM_STEP_IDLE:
		l->state = l->poked ? UM_SIM_READY : UM_SIM_ASLEEP;
		break;
	case UM_STEP_POLL:
		l->state = l->poked ? UM_SIM_READY : UM_SIM_WATCHING;
		break;
	case UM_STEP_WAIT:
		l->state = UM_SIM_READY;
		l->record = step.event ? ((struct um_sim_event *)step.event)->last : NULL;
		if (l->record) {
			l->state = UM_SIM_WAITING;
			l->record->refs++;
		}
		break;
	case UM_STEP_STOP:
		l->state = UM_SIM_STOPPED;
		break;
	}
}

/* The device's next event, if it is earlier than `best`. */
static void find_next(struct um_sim *sim, struct next *best)
{
	um_sim_lanes_resume(sim);
	for (struct um_sim_stream *s = sim->streams; s; s = s->next) {
		uint64_t at = stream_due(sim, s);

		if (at < best->at || (at == best->at && at != UM_SIM_FOREVER && um_sim_head(s)->seq < best->seq))
			*best = (struct next){sim, s, NULL, at, um_sim_head(s)->seq};
	}
	for (struct um_sim_lane *l = sim->lanes; l; l = l->next) {
		uint64_t at = lane_due(sim, l);

		if (at < best->at || (at == best->at && at != UM_SIM_FOREVER && l->seq < best->seq))
			*best = (struct next){sim, NULL, l, at, l->seq};
	}
}

static struct next next_of_all(struct um_sim *sim)
{
	const struct um_sim_node *node = sim->node;
	struct next best = {NULL, NULL, NULL, UM_SIM_FOREVER, 0};

	for (unsigned d = 0; d < node->n; d++)
		if (node->sim[d])
			find_next(node->sim[d], &best);
	return best;
}

/* May an event, of this device or one that it waits for, still come? */
static int unfinished(struct um_sim *sim)
{
	struct next own = {NULL, NULL, NULL, UM_SIM_FOREVER, 0};

	find_next(sim, &own);
	for (const struct um_sim_stream *s = sim->streams; s && !own.sim; s = s->next)
		if (um_sim_head(s))
			return 1;
	return own.sim != NULL;
}

int um_sim_process_event(struct um_sim *sim, uint64_t limit)
{
	struct next best = next_of_all(sim);

	if (sim->program.turns && limit == UM_SIM_FOREVER && !unfinished(sim)) /* only other programs go on */
		return 0;
	while (best.at != UM_SIM_FOREVER && best.at <= limit && um_sim_turn_of_other(sim, best.at)) {
		if (um_sim_turn_give(sim, limit == UM_SIM_FOREVER))
			return 1;
		best = next_of_all(sim);
	}
	if (best.at == UM_SIM_FOREVER || best.at > limit)
		return 0;
	sim = best.sim;
	sim->now = um_sim_later(sim->now, best.at);
	sim->node->changes++;
	if (best.stream) {
		sim->node->stepping++;
		stream_step(sim, best.stream, best.at);
		sim->node->stepping--;
	} else {
		lane_step(sim, best.lane, best.at);
	}
	return 1;
}

static void run_until(struct um_sim *sim, uint64_t t)
{
	while (um_sim_process_event(sim, t))
		;
	sim->now = um_sim_later(sim->now, t);
}

void um_sim_settle(struct um_sim *sim, struct um_sim_stream *s, uint64_t t)
{
	const struct um_sim_cmd *c;

	while ((c = um_sim_head(s)) && c->kind != UM_SIM_CMD_KERNEL && c->kind != UM_SIM_CMD_HINT &&
	       c->kind != UM_SIM_CMD_CALL && c->kind != UM_SIM_CMD_FREE) {
		uint64_t at = stream_due(sim, s);

		if (at == UM_SIM_FOREVER || at > t)
			break;
		stream_step(sim, s, at);
	}
}

void um_sim_enter(struct um_sim *sim)
{
	pthread_mutex_lock(&sim->node->lock);
	if (!sim->node->lane) {
		um_sim_carry_in(sim);
		um_sim_cpu_access_serve(sim, &sim->app);
		run_until(sim, sim->app);
		while (um_sim_turn_of_other(sim, sim->app))
			um_sim_turn_give(sim, 0);
	}
}

int um_sim_leave(struct um_sim *sim, int error)
{
	if (!sim->node->lane) {
		run_until(sim, sim->app);
		um_sim_cpu_access_rearm(sim);
		um_sim_carry_out(sim);
	}
	um_sim_notify(sim);
	pthread_mutex_unlock(&sim->node->lock);
	return error;
}

int um_sim_deadlock(struct um_sim *sim, const struct um_sim_stream *s)
{
	if (s)
		um_sim_log(sim, sim->now, "deadlock stream %u", s->serial);
	else
		um_sim_log(sim, sim->now, "deadlock calls");
	um_sim_report_deadlock(sim);
	return UM_CUDA_LAUNCH_TIMEOUT;
}

int um_sim_finish(struct um_sim *sim)
{
	struct um_sim_stream *stuck = NULL;
	uint64_t end;

	if (sim->node->lane) { /* a worker cannot wait: only finished work counts */
		for (struct um_sim_stream *s = sim->streams; s; s = s->next)
			if (um_sim_head(s) || s->ready > sim->node->lane->at)
				return UM_CUDA_NOT_SUPPORTED;
		return sim->error;
	}
	/* Sleeping workers stay asleep; waits that cannot end are left. */
	do {
		while (unfinished(sim) && um_sim_process_event(sim, UM_SIM_FOREVER))
			;
		stuck = NULL;
		for (struct um_sim_stream *s = sim->streams; s && !stuck; s = s->next)
			stuck = um_sim_head(s) ? s : NULL;
	} while (stuck && um_sim_progress(sim));
	end = um_sim_later(um_sim_later(sim->now, sim->app), sim->destroyed_until);
	for (struct um_sim_stream *s = sim->streams; s; s = s->next)
		end = um_sim_later(end, s->ready);
	for (struct um_sim_lane *l = sim->lanes; l; l = l->next)
		end = um_sim_later(end, l->at);
	sim->now = sim->app = end;
	return stuck ? um_sim_deadlock(sim, stuck) : sim->error;
}

/* --- workers ---------------------------------------------------------------------------------------------------- */

int um_sim_worker_start(struct um_gpu *gpu, struct um_worker *worker)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_lane *l = calloc(1, sizeof *l), **at = &sim->lanes;

	if (!l)
		return UM_CUDA_NO_MEMORY;
	um_sim_enter(sim);
	l->worker = worker;
	l->state = UM_SIM_READY;
	l->at = *um_sim_clock(sim);
	l->seq = ++sim->node->seq;
	worker->impl = l;
	while (*at)
		at = &(*at)->next;
	*at = l;
	return um_sim_leave(sim, UM_CUDA_OK);
}

void um_sim_worker_stop(struct um_gpu *gpu, struct um_worker *worker)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_lane *l = worker->impl, **at = &sim->lanes;

	if (!l)
		return;
	um_sim_enter(sim);
	/* A worker that waits for an event that never completes is stopped in that state. */
	while (!sim->node->lane && l->state != UM_SIM_ASLEEP && l->state != UM_SIM_WATCHING &&
	       l->state != UM_SIM_STOPPED && um_sim_process_event(sim, UM_SIM_FOREVER))
		;
	if (!sim->node->lane)
		sim->app = um_sim_later(um_sim_later(sim->app, sim->now), l->at);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (l->record)
		um_sim_record_put(l->record);
	um_sim_lane_release(sim, l);
	free(l);
	worker->impl = NULL;
	um_sim_leave(sim, UM_CUDA_OK);
}

void um_sim_worker_poke(struct um_gpu *gpu, struct um_worker *worker)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_lane *l;

	pthread_mutex_lock(&sim->node->lock);
	l = worker->impl;
	if (l && (l->state == UM_SIM_ASLEEP || l->state == UM_SIM_WATCHING)) {
		l->state = UM_SIM_READY;
		/* A callback from the device pokes at the device's time. */
		l->at = um_sim_later(l->at, sim->node->stepping ? sim->now : *um_sim_clock(sim));
		l->seq = ++sim->node->seq;
	} else if (l && l->state == UM_SIM_STEPPING) {
		l->poked = 1;
	}
	sim->node->changes++;
	um_sim_notify(sim);
	pthread_mutex_unlock(&sim->node->lock);
}
