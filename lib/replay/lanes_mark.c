/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes_mark.c - marks: how far the program's streams are
 *
 * One worker for each stream waits for its marks, in their order, so that no worker of the lanes waits in a call for
 * what the program does, and a stream that is held up holds up only the evictions that come after its own ops.
 */
#include "replay/lanes.h"

static struct um_step step_mark(void *arg)
{
	struct um_lanes_mark *m = arg;
	struct um_lanes *l = m->lanes;
	_Atomic uint32_t *reached = &l->reached[m - l->mark];
	uint32_t n = atomic_load_explicit(reached, memory_order_relaxed);

	if (atomic_load_explicit(&l->closing, memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_STOP};
	if (m->waits) {
		m->waits = 0;
		atomic_store_explicit(reached, n + 1, memory_order_release);
		um_lanes_poke(l);
		um_lanes_notify(l);
		return (struct um_step){.kind = UM_STEP_AGAIN};
	}
	if (n == atomic_load_explicit(&l->marked[m - l->mark], memory_order_acquire))
		return (struct um_step){.kind = UM_STEP_IDLE};
	m->waits = 1;
	return (struct um_step){.kind = UM_STEP_WAIT, .event = m->event[(n + 1) % UM_LANES_EVENTS]};
}

static int has_event(const struct um_lanes *l, const void *arg)
{
	const struct um_lanes_mark *m = arg;

	return um_lanes_unreached(l, (unsigned)(m - l->mark)) < UM_LANES_EVENTS / 2;
}

int um_lanes_update_mark_limit(struct um_lanes *l, unsigned i)
{
	struct um_lanes_mark *m = &l->mark[i];
	struct um_gpu *gpu = l->gpu;
	uint32_t n = l->latest_mark[i] + 1;
	um_event_handle *e = &m->event[n % UM_LANES_EVENTS];

	if (um_lanes_unreached(l, i) + 1 >= UM_LANES_EVENTS)
		um_lanes_wait(l, has_event, m);
	if (um_lanes_unreached(l, i) + 1 >= UM_LANES_EVENTS ||
	    (!*e && gpu->api->cudaEventCreateWithFlags(gpu, e, UM_LANES_EVENT_FLAGS)))
		return -EAGAIN;
	if (!m->runner.started &&
	    um_runner_start(&m->runner, gpu, &l->group, UM_LANES_BIT_MARK + i, "umadvise-mark", step_mark, m))
		return -EAGAIN;
	/* events are created in their order: if the next one exists, all do */
	l->mark_limit[i] = m->event[(n + 1) % UM_LANES_EVENTS]
				   ? atomic_load_explicit(&l->reached[i], memory_order_acquire) + UM_LANES_EVENTS
				   : n + 1;
	return 0;
}

int um_lanes_marks_passed(struct um_lanes *l, const struct um_lanes_marks *m)
{
	for (uint32_t rest = m->streams; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		if (!um_lanes_reached(atomic_load_explicit(&l->reached[i], memory_order_acquire), m->at[i]) &&
		    l->gpu->api->cudaEventQuery(l->gpu, l->mark[i].event[m->at[i] % UM_LANES_EVENTS]) ==
			    UM_CUDA_NOT_READY)
			return 0;
	}
	return 1;
}
