/* SPDX-License-Identifier: Apache-2.0
 *
 * hazard_lock.c - calls that wait, and the driver's lock that some of them hold meanwhile
 *
 * A call that waits for all work of the device (a free, a module's loading) or for room in a full queue holds the lock:
 * other threads' calls that need it wait. Workers may need it in any step, so they stand still. A worker's call cannot
 * wait, since it is made inside the event loop: its command finds room, and then the worker stands still until there
 * would have been room.
 */
#include "sim/state.h"

#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local const char *current_call = "a call";

void um_sim_waiter_add(struct um_sim *sim, struct um_sim_waiter *w, enum um_sim_waits waits,
		       const struct um_sim_stream *stream, const struct um_sim_record *record)
{
	*w = (struct um_sim_waiter){.next = sim->waiters,
				    .call = current_call,
				    .waits = waits,
				    .stream = stream,
				    .record = record,
				    .lane = sim->node->lane,
				    .thread = um_sim_hazards_on(sim) ? syscall(SYS_gettid) : 0};
	sim->waiters = w;
	if (sim->opt.hazards.locks && !sim->holder && (waits == UM_SIM_WAITS_ROOM || waits == UM_SIM_WAITS_FINISHED))
		sim->holder = w;
}

void um_sim_waiter_remove(struct um_sim *sim, struct um_sim_waiter *w)
{
	struct um_sim_waiter **at = &sim->waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (sim->holder == w)
		sim->holder = NULL;
	sim->node->changes++;
	um_sim_notify(sim);
}

void um_sim_enter_call(struct um_sim *sim, const char *call)
{
	struct um_sim_waiter w;
	uint64_t *clock;

	um_sim_enter(sim);
	current_call = call;
	clock = um_sim_clock(sim);
	if (sim->profile.serial_host && *clock >= sim->host_from && *clock < sim->host_until)
		*clock = sim->host_until;
	if (!sim->holder || sim->node->lane || sim->node->stepping)
		return;
	um_sim_waiter_add(sim, &w, UM_SIM_WAITS_LOCK, NULL, NULL);
	while (sim->holder)
		if (!um_sim_progress(sim)) {
			um_sim_deadlock(sim, NULL);
			if (sim->holder && sim->holder->lane) /* no other thread ends its wait */
				sim->holder = NULL;
		}
	um_sim_waiter_remove(sim, &w);
	sim->app = um_sim_later(sim->app, sim->now);
}

void um_sim_enter_free(struct um_sim *sim, const char *call)
{
	um_sim_enter(sim);
	current_call = call;
}

const char *um_sim_call_name(void)
{
	return current_call;
}

int um_sim_finish_locked(struct um_sim *sim)
{
	struct um_sim_waiter w;
	int err;

	um_sim_waiter_add(sim, &w, UM_SIM_WAITS_FINISHED, NULL, NULL);
	err = um_sim_finish(sim);
	um_sim_waiter_remove(sim, &w);
	return err;
}

void um_sim_lane_fill(struct um_sim *sim, struct um_sim_lane *l, struct um_sim_stream *s)
{
	if (!sim->opt.hazards.depth || l->full || !um_sim_queue_is_full(sim, s))
		return;
	s->waiters++;
	l->full = s;
	um_sim_waiter_add(sim, &l->waiter, UM_SIM_WAITS_ROOM, s, NULL);
	sim->lanes_full++;
}

void um_sim_lane_release(struct um_sim *sim, struct um_sim_lane *l)
{
	struct um_sim_stream *s = l->full;

	if (!s)
		return;
	l->full = NULL;
	um_sim_waiter_remove(sim, &l->waiter);
	sim->lanes_full--;
	if (!--s->waiters && s->gone && !um_sim_head(s))
		um_sim_stream_forget(sim, s);
}

/* A worker's calls return when there is room: checked at the device's clock, which a worker's never leads. */
void um_sim_lanes_resume(struct um_sim *sim)
{
	for (struct um_sim_lane *l = sim->lanes; l && sim->lanes_full; l = l->next)
		if (l->full && !um_sim_queue_is_full(sim, l->full)) {
			um_sim_lane_release(sim, l);
			l->at = um_sim_later(l->at, sim->now);
		}
}

int um_sim_lane_stands(const struct um_sim *sim, const struct um_sim_lane *l)
{
	return l->full || sim->holder;
}
