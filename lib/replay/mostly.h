/* SPDX-License-Identifier: Apache-2.0
 *
 * mostly.h - what the driver has been told is read mostly
 *
 * in    runs of blocks that shall be, from now on; writes and new owners
 * out   advice
 * owns  the runs that are
 *
 * Advice holds the caller until hints under way are over, and keeps others waiting: it is given when a plan is taken
 * up, and taken back where something is to be written or a plan does without. Plan path, but for um_mostly_has, which
 * is a search among the runs. Not thread-safe; who calls sees to it that no worker is at these blocks.
 */
#ifndef UM_REPLAY_MOSTLY_H
#define UM_REPLAY_MOSTLY_H

#include "gpu/gpu.h"
#include "replay/program.h"

struct um_mostly {
	UM_VEC(struct um_program_run) runs; /* ascending, apart */
	uint64_t refused; /* calls */
};

/* Just these runs (ascending, apart) are read mostly from now on, but for what the device refuses. 0; -ENOMEM: none
 * are. */
int um_mostly_set(struct um_mostly *m, struct um_gpu *gpu, const struct um_program_run *runs, size_t n);

/* Takes it back for the blocks that [addr, addr + bytes) touches. */
void um_mostly_clear(struct um_mostly *m, struct um_gpu *gpu, uint64_t addr, uint64_t bytes);

int um_mostly_touches(const struct um_mostly *m, uint64_t addr, uint64_t bytes); /* any of it */
int um_mostly_has(const struct um_mostly *m, uint64_t addr, uint64_t bytes); /* all of it */

void um_mostly_fini(struct um_mostly *m); /* gives no advice */

#endif
