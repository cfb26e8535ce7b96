/* SPDX-License-Identifier: Apache-2.0
 *
 * wait.c - waits for a worker, and for work that other threads of the program enqueue later
 */
#include "sim/state.h"

#include "base/clock.h"

#include <time.h>

#define SLICE_NS 1000000 /* interval for polling a value in memory, which changes without a call */

void um_sim_notify(struct um_sim *sim)
{
	if (sim->node->waiting)
		pthread_cond_broadcast(&sim->node->changed);
}

int um_sim_progress(struct um_sim *sim)
{
	uint64_t seen = sim->node->changes, t, end;
	int changed = um_sim_process_event(sim, UM_SIM_FOREVER);

	if (changed || !sim->opt.timeout_ms || sim->node->lane)
		return changed;
	t = um_clock_ns(CLOCK_REALTIME);
	end = t + sim->opt.timeout_ms * (uint64_t)1000000;
	sim->node->waiting++;
	while (t < end && !changed) {
		struct timespec slice = {(time_t)((t + SLICE_NS) / 1000000000), (long)((t + SLICE_NS) % 1000000000)};

		pthread_cond_timedwait(&sim->node->changed, &sim->node->lock, &slice);
		changed = sim->node->changes != seen || um_sim_process_event(sim, UM_SIM_FOREVER);
		t = um_clock_ns(CLOCK_REALTIME);
	}
	sim->node->waiting--;
	return changed;
}

/* The program has waited for a worker since `begin`: before the op that it has announced, whose stream was idle. */
static void gate(struct um_sim *sim, uint64_t begin)
{
	struct um_sim_stream *s = sim->next_op;
	uint64_t from = s ? um_sim_later(begin, s->ready) : 0;

	if (s && s->announced && !um_sim_head(s) && sim->app > from)
		s->gate_ns += sim->app - from;
}

int um_sim_worker_wait(struct um_gpu *gpu, int (*done)(void *arg), void *arg)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t begin;
	int can = 1;

	um_sim_enter(sim);
	begin = sim->app;
	while (!done(arg) && !sim->node->lane && (can = um_sim_progress(sim)))
		;
	if (!sim->node->lane) {
		sim->app = um_sim_later(sim->app, sim->now);
		gate(sim, begin);
	}
	return um_sim_leave(sim, done(arg) ? UM_CUDA_OK : UM_CUDA_NOT_READY);
}
