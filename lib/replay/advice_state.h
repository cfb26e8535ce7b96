/* SPDX-License-Identifier: Apache-2.0
 *
 * advice_state.h - what the driver has been told of memory
 *
 * in    runs of blocks that shall be read mostly, or far (model/far.h), from now on; who uses them otherwise
 * out   advice
 * owns  the runs that are
 *
 * Advice holds the caller until hints under way are over, and keeps others waiting: it is given when a plan is taken
 * up, and taken back where what it says is not so any more. Plan path, but for um_advice_state_touches and
 * um_advice_state_has, which search among the runs. Not thread-safe; the caller makes
 * sure that no worker is at these blocks.
 */
#ifndef UM_REPLAY_ADVICE_STATE_H
#define UM_REPLAY_ADVICE_STATE_H

#include "gpu/gpu.h"
#include "replay/compiled_plan.h"

struct um_advice_state {
	UM_VEC(struct um_compiled_plan_run) runs; /* ascending, apart */
	int far; /* reached from the device and preferred on the host; else: read mostly */
	uint64_t refused; /* calls */
};

/* Just these runs (ascending, apart) are so from now on, but for what the device refuses. 0; -ENOMEM: none are. */
int um_advice_state_set(struct um_advice_state *m, struct um_gpu *gpu, const struct um_compiled_plan_run *runs,
			size_t n);

/* Takes it back for the blocks that [addr, addr + bytes) touches. */
void um_advice_state_clear(struct um_advice_state *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes);

int um_advice_state_search(const struct um_advice_state *m, uint64_t addr, uint64_t bytes); /* any of it */
int um_advice_state_has(const struct um_advice_state *m, uint64_t addr, uint64_t bytes); /* all of it */

/* um_advice_state_search, where that may find something. */
static inline int um_advice_state_touches(const struct um_advice_state *m, uint64_t addr, uint64_t bytes)
{
	const struct um_compiled_plan_run *first = m->runs.at, *end = first + m->runs.n;

	return m->runs.n && addr + bytes > first->addr && addr < end[-1].addr + end[-1].bytes &&
	       um_advice_state_search(m, addr, bytes);
}

void um_advice_state_fini(struct um_advice_state *m); /* gives no advice */

#endif
